package conformance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

type spoiled struct {
	name, key string
	where     []string // in the line of the log, or in the error
	one       bool     // it is about partition 2 only: the others go on
	fatal     bool     // Run ends
}

var spoiledKeys = []spoiled{
	{name: "partition", key: partitionKey(2), where: []string{"level=ERROR", "partition 2", "stream parcels", "wrong Redis type", partitionKey(2)}, one: true},
	{name: "lock", key: "__lock:post.parcels.check.2", where: []string{"level=ERROR", "__lock:post.parcels.check.2", "partition 2", "stream parcels", "processor check", "wrong Redis type"}, one: true},
	{name: "ownership", key: "__own:post.parcels.check.2", where: []string{"level=ERROR", "__own:post.parcels.check.2", "partition 2", "stream parcels", "processor check", "wrong Redis type"}, one: true},
	{name: "membership", key: "__memb:post.parcels.check", where: []string{"parcels", "check", "membership", "WRONGTYPE"}},
	{name: "control stream", key: "__ctrl:post.parcels.check", where: []string{"__ctrl:post.parcels.check", "wrong Redis type"}, one: true},
	{name: "metadata", key: "__meta:post.parcels", where: []string{"__meta:post.parcels", "stream parcels", "metadata", "wrong Redis type", "delete that key"}, fatal: true},
}

// spoil gives the key a type that is wrong for every use.
func spoil(t *testing.T, rdb *redis.Client, key string) {
	t.Helper()
	_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Del(t.Context(), key)
		p.SAdd(t.Context(), key, "what is this?")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func startTyped(t *testing.T, srv *redistest.Server, tr *tracker) *parcelApp {
	a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) {
		o.Stream.Partitions = 4
		o.Processor.Lease = shortExpiry
	})
	tr.process(a, "check", nil, func(context.Context, *runnel.Event, parcel) error { return nil })
	return a
}

// othersPassed reports whether all partitions but 2 have completed the seq.
func othersPassed(tr *tracker, seq int64) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.seq[place{"check", 0}] >= seq && tr.seq[place{"check", 1}] >= seq && tr.seq[place{"check", 3}] >= seq
}

// told is how long the line of an error takes that has taken the place of another one, on a busy machine.
const told = 90 * time.Second

// A worker starts on a key of a wrong type. It names the key, and processes the other partitions;
// once the key is deleted it processes all.
func TestWrongTypeAtTheStart(t *testing.T) {
	for _, tt := range spoiledKeys {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			rdb, keys, tr := srv.Client(t), keysOf(4), newTracker(history.Memory())
			spoil(t, rdb, tt.key)
			producer := newProducer(t, srv.URL(), 4)
			a := startTyped(t, srv, tr).run()
			if tt.fatal {
				names(t, a.ended(30*time.Second), append(tt.where, "app post")...)
				names(t, producer.parcels.Send(t.Context(), parcel{Key: keys[0], Seq: 1}), tt.where...)
				rdb.Del(t.Context(), tt.key)
				a = startTyped(t, srv, tr).run()
			} else {
				await(t, fmt.Sprintf("a line with %q", tt.where), told, func() bool { return a.log.line(tt.where...) != "" })
			}
			if tt.one {
				for _, p := range []int{0, 1, 3} {
					producer.send(parcel{Key: keys[p], Seq: 1})
				}
				await(t, "the other partitions", 30*time.Second, func() bool { return othersPassed(tr, 1) })
			}
			if line := a.log.line("locks not released"); line != "" {
				t.Errorf("a free lock is reported to expire: %s", line)
			}
			rdb.Del(t.Context(), tt.key)
			for _, key := range keys {
				producer.send(parcel{Key: key, Seq: 2})
			}
			took := await(t, "all partitions", 30*time.Second, func() bool { return tr.passed("check", 4, 2) })
			ready(t, 30*time.Second, a)
			t.Logf("mended after %v; %d lines logged", took.Round(time.Millisecond), a.log.count())
			awaitRest(t, srv, 4, 1)
			a.stop()
			tr.judge(t, srv, 4, history.Options{Processors: []string{"check"}})
		})
	}
}

// A key gets a wrong type while the worker runs.
func TestWrongTypeMeanwhile(t *testing.T) {
	for _, tt := range spoiledKeys {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			rdb, keys, tr := srv.Client(t), keysOf(4), newTracker(history.Memory())
			producer := newProducer(t, srv.URL(), 4)
			a := startTyped(t, srv, tr).run()
			for _, key := range keys {
				producer.send(parcel{Key: key, Seq: 1})
			}
			await(t, "all partitions", 30*time.Second, func() bool { return tr.passed("check", 4, 1) })
			fault := history.Lost
			if tt.name == "partition" {
				fault = history.Flush // its events go with it
			}
			if err := tr.history.Fault("", fault); err != nil {
				t.Fatal(err)
			}
			spoil(t, rdb, tt.key)
			for _, p := range []int{0, 1, 3} {
				producer.send(parcel{Key: keys[p], Seq: 2})
			}
			await(t, "the other partitions", 30*time.Second, func() bool { return othersPassed(tr, 2) })
			if !tt.fatal {
				await(t, fmt.Sprintf("a line with %q", tt.where), told, func() bool { return a.log.line(tt.where...) != "" })
			}
			rdb.Del(t.Context(), tt.key)
			for _, key := range keys {
				producer.send(parcel{Key: key, Seq: 3})
			}
			took := await(t, "all partitions", 30*time.Second, func() bool { return tr.passed("check", 4, 3) })
			ready(t, 30*time.Second, a)
			t.Logf("mended after %v; %d lines logged", took.Round(time.Millisecond), a.log.count())
			awaitRest(t, srv, 4, 1)
			a.stop()
			tr.judge(t, srv, 4, history.Options{Processors: []string{"check"}})
		})
	}
}
