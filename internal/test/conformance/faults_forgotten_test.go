package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const mayBeGone = "events may be gone"

func partitionsOf(t *testing.T, s *redistest.Server) []inspect.PartitionState {
	t.Helper()
	client, err := store.Open(redisconn.Options{URL: s.URL(), Keys: postKeys})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	state, err := inspect.App(t.Context(), client, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Streams) == 0 || len(state.Streams[0].Processors) == 0 {
		return nil
	}
	return state.Streams[0].Processors[0].Partitions
}

// forgotten describes the forgotten data reported for each partition.
func forgotten(t *testing.T, s *redistest.Server) (out []string) {
	for _, p := range partitionsOf(t, s) {
		if p.Forgotten != nil {
			out = append(out, fmt.Sprint(p.Partition, " ", p.Forgotten.What))
		}
	}
	return out
}

// stored reports whether the end of a partition is stored as its committed position.
func stored(t *testing.T, rdb *redis.Client, partition int) bool {
	floor := rdb.HGet(t.Context(), fmt.Sprintf("__own:post.parcels.check.%d", partition), "floor").Val()
	return floor == rdb.XInfoStream(t.Context(), partitionKey(partition)).Val().LastGeneratedID
}

// Data that Redis forgets under live workers is reported, stored, and shown; later events are
// processed.
func TestWhatRedisForgetsIsTold(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		prepare func(*testing.T, *redistest.Server, *redis.Client) // then more is sent and processed
		forget  func(*testing.T, *redistest.Server, *redis.Client)
		want    string // in these partitions, at least
	}{
		{"a partition is deleted", nil, nil, command("DEL", partitionKey(1)), "1 partition"},
		{"a partition is renamed", nil, nil, command("RENAME", partitionKey(1), "aside"), "1 partition"},
		{"all is flushed", nil, nil, command("FLUSHALL"), "0 state 1 state"},
		{"a partition is evicted", nil, nil, evictOne, ""},
		{"Redis is restarted with an older copy", []string{"--dbfilename", "old.rdb"}, command("SAVE"), func(t *testing.T, s *redistest.Server, _ *redis.Client) {
			s.Kill()
			s.Restart()
		}, "0 state 1 state"},
		{"Redis is restarted without data", nil, nil, func(t *testing.T, s *redistest.Server, _ *redis.Client) {
			s.Kill()
			s.Restart()
		}, "0 state 1 state"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, tt.args...)
			rdb, tr := srv.Client(t), newTracker(history.Memory())
			workers := []*parcelApp{tr.worker(t, srv.URL(), "w1", 2), tr.worker(t, srv.URL(), "w2", 2)}
			ready(t, 60*time.Second, workers...)
			producer, seq := newProducer(t, srv.URL(), 2), int64(0)
			round := func() {
				seq++
				for _, key := range keysOf(2) {
					producer.send(parcel{Key: key, Seq: seq})
				}
				await(t, "a round to be processed", 60*time.Second, func() bool { return tr.passed("check", 2, seq) })
			}
			round()
			if tt.prepare != nil {
				tt.prepare(t, srv, rdb)
			}
			for range 5 {
				round()
			}
			if said := forgotten(t, srv); len(said) > 0 || workers[0].log.line("ERROR", mayBeGone) != "" || workers[1].log.line("ERROR", mayBeGone) != "" {
				t.Fatalf("reported before: %v", said)
			}
			await(t, "the positions to be stored", 60*time.Second, func() bool { return stored(t, rdb, 0) && stored(t, rdb, 1) })
			tt.forget(t, srv, rdb)
			await(t, "workers to tell it", 60*time.Second, func() bool {
				told := forgotten(t, srv)
				return len(told) > 0 && strings.Contains(strings.Join(told, " "), tt.want) && (workers[0].log.line("ERROR", mayBeGone) != "" || workers[1].log.line("ERROR", mayBeGone) != "")
			})
			ready(t, 60*time.Second, workers...)
			round()
			if len(forgotten(t, srv)) == 0 {
				t.Error("not shown any more")
			}
		})
	}
}

func evictOne(t *testing.T, _ *redistest.Server, rdb *redis.Client) {
	set := func(name, value string) {
		if err := rdb.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string]string{} // of what matters to this test only a partition may go
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		if !strings.HasPrefix(key, "__lock") && !strings.HasPrefix(key, "__beat") && !strings.HasPrefix(key, "__strm:post.parcels.") {
			kept[key] = rdb.Dump(t.Context(), key).Val()
		}
	}
	set("maxmemory-policy", "allkeys-random")
	set("maxmemory", "8mb")
	for n := 0; rdb.Exists(t.Context(), partitionKey(0), partitionKey(1)).Val() == 2; n++ {
		if err := rdb.Set(t.Context(), fmt.Sprint("other", n), strings.Repeat("x", 1<<20), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("maxmemory", "0")
	set("maxmemory-policy", "noeviction")
	for key, value := range kept {
		rdb.Restore(t.Context(), key, 0, value) // where it is gone
	}
}

func TestAWorkerSaysAtItsStartThatRedisEvicts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		args  []string
		level string
		want  string
	}{
		{"it does not", nil, "", ""},
		{"with a limit", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, "ERROR", "maxmemory-policy is allkeys-lru, with maxmemory 100 MiB"},
		{"without one", []string{"--maxmemory-policy", "volatile-lru"}, "ERROR", "maxmemory-policy is volatile-lru, and nothing is evicted as long as"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, tt.args...)
			a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) { o.Stream.Partitions = 2 })
			a.parcels.Process("check", runnel.Each(func(context.Context, *runnel.Event, parcel) error { return nil }), nil)
			a.run()
			ready(t, 30*time.Second, a)
			const evicts = "redis may evict keys"
			if got := a.log.line(evicts) != ""; got != (tt.want != "") {
				t.Errorf("eviction reported: %v", got)
			}
			if tt.want != "" {
				names(t, fmt.Errorf("%s", a.log.String()), tt.level, tt.want, "troubleshooting.md#eviction")
			}
		})
	}
}
