// Atomic processors and what they park; what they emit to, and bad keys.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// What lies behind an event that waits to be parked is not processed together with what is before it: a position cannot pass a part of
// an iteration.
func TestABatchEndsAtAnEventThatIsToBeParked(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { app.Close() })
		key := func(i item) string { return fmt.Sprint(i.N / 10) }
		s := runnel.NewStream(app, "items", key, &runnel.StreamOptions{Partitions: 1, MaxLen: 4})
		table := runnel.NewTable[sum](s, "sums", nil)
		s.Process("p", runnel.EachBatch(3, time.Second, func(ctx context.Context, _ []*runnel.Event, is []item) error {
			for _, i := range is {
				if i.N/10 == 1 {
					return errors.New("no")
				}
				table.Rows(ctx).Update(key(i), func(row sum) sum { return sum{row.Total + i.N, row.Times + 1} })
			}
			return nil
		}), &runnel.ProcessorOptions{
			Tables: []runnel.State{table}, Retry: &runnel.Retry{Max: 10, Order: runnel.OrderKey, MinBackoff: time.Hour, MaxBackoff: time.Hour},
		})
		running(t, app)
		const parked = "__parked:contract.items.p.0"
		ctx := t.Context()
		row := func(want sum) func() bool {
			return func() bool { got, _, err := table.Get(ctx, "2"); return err == nil && got == want }
		}
		send := func(all ...item) {
			if err := s.Send(ctx, all...); err != nil {
				t.Fatal(err)
			}
		}
		send(item{11})
		redistest.Eventually(t, "11 is parked", func() bool { return rdb.HLen(ctx, parked).Val() == 1 })
		rdb.HSet(ctx, parked, "x", "", "y", "", "z", "") // for the scripts it is full, which the owner has not heard of
		send(items(21, 12, 22)...)
		redistest.Eventually(t, "21 is committed", row(sum{21, 1}))
		rdb.HDel(ctx, parked, "x", "y", "z")
		redistest.Eventually(t, "12 is parked", func() bool { return rdb.HLen(ctx, parked).Val() == 2 })
		redistest.Eventually(t, "22 is committed", row(sum{43, 2}))
	})
}

// The commit of an attempt waits for room while workers come and go: nothing crashes, and nothing has failed since the first attempt.
func TestAHeldCommitOfAParkedEventIsNoCrash(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		var n notes
		ctx := t.Context()
		build := func(name string) (*runnel.App, *runnel.Stream[item], *runnel.Stream[sum]) {
			app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
			t.Cleanup(func() { app.Close() })
			s := runnel.NewStream(app, "items", mod10, &runnel.StreamOptions{Partitions: 1})
			to := runnel.NewStream(app, "sums", func(sum) string { return "0" }, &runnel.StreamOptions{Partitions: 1, MaxLen: 1})
			s.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
				if n.add(name); len(n.all()) == 1 {
					return runnel.RetryAfter(errBad, time.Millisecond)
				}
				return to.Emit(ctx, sum{Total: i.N})
			}), &runnel.ProcessorOptions{Atomic: true, Grace: 300 * time.Millisecond, Retry: &runnel.Retry{Max: 2, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}})
			return app, s, to
		}
		for i, name := range []string{"a", "b", "c", "d"} {
			app, s, to := build(name)
			if i == 0 {
				if err := errors.Join(to.Send(ctx, sum{}), s.Send(ctx, item{1})); err != nil {
					t.Fatal(err)
				}
			}
			stop := running(t, app)
			redistest.Eventually(t, name+" attempts it", func() bool { return n.has(name) && len(n.all()) >= i+2 })
			stop()
		}
		if dead := rdb.XLen(ctx, "__dead:contract.items.p.0").Val(); dead > 0 {
			t.Errorf("%d dead letters", dead)
		}
	})
}

// An app of the same name may have another server: its streams are not reached by what is committed here.
func TestEmitToAnotherAppOfTheSameName(t *testing.T) {
	a, b := newSumming(nil, nil, nil), newSumming(nil, nil, nil)
	a.process(runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error { return b.sums.Emit(ctx, sum{Total: i.N}) }), runnel.ProcessorOptions{})
	if r := runneltest.Process(t, a.items, "p", item{1}); !errors.Is(r.Err, runnel.ErrNotAtomic) {
		t.Errorf("got %v", r.Err)
	}
}

// A key that cannot be told fails its own event alone.
func TestAKeyThatPanicsInABatch(t *testing.T) {
	app := runnel.New("contract", nil)
	in := runnel.NewStream(app, "items", func(i item) string {
		if i.N == 2 {
			panic("no key")
		}
		return fmt.Sprint(i.N)
	}, &runnel.StreamOptions{Partitions: 1})
	table := runnel.NewTable[int](in, "t", nil)
	in.Process("p", runnel.EachBatch(3, 0, func(ctx context.Context, _ []*runnel.Event, all []item) error {
		for range all {
			table.Rows(ctx).Update("all", func(k int) int { return k + 1 })
		}
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{table}})
	script := runneltest.Events(t, in, "p")
	for i := range 3 {
		script.Raw(map[string]string{"data": "\x81\xa1n" + string(rune(i+1))})
	}
	if r := script.Run(); r.Err != nil || runneltest.Rows(t, r, table)["all"] != 3 {
		t.Errorf("got %v, %v", r.Err, runneltest.Rows(t, r, table))
	}
}

// A Forward without its function, or without its target, is noticed where it is declared.
func TestForwardOfNothing(t *testing.T) {
	s := newSumming(nil, nil, nil)
	for name, forward := range map[string]func(){
		"function": func() { runnel.Forward[item, sum](s.items, "function", s.sums, nil, nil) },
		"stream":   func() { runnel.Forward(s.items, "stream", nil, func(i item) sum { return sum{} }, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("nil %s: no panic", name)
				}
			}()
			forward()
		}()
	}
}
