// A commit that is refused holds its partition, and nothing else; what it would have done is done once.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// held is an app over two partitions that emits every item to partition 0 of "sums", which has room for three.
func newHeld(url string, log slog.Handler) *summing {
	s := &summing{app: runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(log)})}
	byNumber := &runnel.Partitioner{Name: "number", Func: func(key string, n int) int { return int(key[len(key)-1]-'0') % n }}
	s.items = runnel.NewStream(s.app, "items", mod10, &runnel.StreamOptions{Partitions: 2, Partitioner: byNumber})
	s.sums = runnel.NewStream(s.app, "sums", func(sum) string { return "0" }, &runnel.StreamOptions{Partitions: 1, MaxLen: 3, Partitioner: byNumber})
	s.table = runnel.NewTable[sum](s.items, "sums", nil)
	s.items.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
		row := s.table.Rows(ctx).Update(mod10(i), func(row sum) sum { return sum{row.Total + i.N, row.Times + 1} })
		if i.N%2 == 1 {
			return nil // of partition 1
		}
		return s.sums.Emit(ctx, row)
	}), &runnel.ProcessorOptions{Tables: []runnel.State{s.table}})
	return s
}

func (s *summing) await(t *testing.T, key string, want sum) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("row %s is %v", key, want), func() bool {
		row, _, err := s.table.Get(t.Context(), key)
		return err == nil && row == want
	})
}

func TestAFullTargetHoldsItsPartition(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		var log lines
		first := newHeld(url, slog.NewTextHandler(&log, nil))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- first.app.Run(ctx) }()
		send := func(numbers ...int) {
			t.Helper()
			for _, n := range numbers { // iterations of their own commits, or not
				if err := first.items.Send(t.Context(), item{n}); err != nil {
					t.Fatal(err)
				}
			}
		}
		send(2, 2, 2)
		first.await(t, "2", sum{6, 3})
		send(2, 2, 1, 1)
		first.await(t, "1", sum{2, 2}) // of the other partition
		redistest.Eventually(t, "a line that names the stream that is full", func() bool {
			return log.has("partition 0 of stream sums", "partition=0")
		})
		first.await(t, "2", sum{6, 3})
		stop() // what waits is the next owner's
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		second := newHeld(url, slog.DiscardHandler)
		stop = running(t, second.app)
		send(1)
		second.await(t, "1", sum{3, 3})
		second.await(t, "2", sum{6, 3})
		if n := rdb.XLen(t.Context(), "__strm:contract.sums.0").Val(); n != 3 {
			t.Errorf("%d outputs where three have room", n)
		}
		if err := rdb.XTrimMaxLen(t.Context(), "__strm:contract.sums.0", 0).Err(); err != nil {
			t.Fatal(err)
		}
		second.await(t, "2", sum{10, 5})
		if n := rdb.XLen(t.Context(), "__strm:contract.sums.0").Val(); n != 2 {
			t.Errorf("%d outputs, want the two that waited", n)
		}
		stop()
		first.app.Close()
		second.app.Close()
	})
}

func TestAWrongTypeHoldsItsPartition(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		var log lines
		s := newHeld(url, slog.NewTextHandler(&log, nil))
		t.Cleanup(func() { s.app.Close() })
		running(t, s.app)
		if err := s.items.Send(t.Context(), items(1, 2)...); err != nil {
			t.Fatal(err)
		}
		s.await(t, "2", sum{2, 1})
		const key = "__rows:contract.items.sums.0"
		kept := rdb.HGetAll(t.Context(), key).Val()
		rdb.Del(t.Context(), key)
		rdb.Set(t.Context(), key, "x", 0)
		if err := s.items.Send(t.Context(), items(2, 1, 2, 1)...); err != nil {
			t.Fatal(err)
		}
		s.await(t, "1", sum{3, 3}) // of the other partition
		redistest.Eventually(t, "a line that names the key", func() bool { return log.has(key, "partition=0") })
		_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error { // at once: the owner tries all the time
			p.Del(t.Context(), key)
			return p.HSet(t.Context(), key, kept).Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		s.await(t, "2", sum{6, 3})
	})
}
