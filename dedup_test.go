// What is sent twice under one DedupID is in the stream once; SendID gives what an event sends an
// ID of its own.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestSendingAnIDTwiceIsSendingItOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		_, s := full(t, url, runnel.Reject, nil)
		first, err := s.SendEvents(t.Context(), runnel.Outgoing[item]{Record: item{1}, DedupID: "order-1"}, runnel.Outgoing[item]{Record: item{2}})
		if err != nil || first[0].Duplicate || first[1].Duplicate {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := s.SendEvents(t.Context(),
			runnel.Outgoing[item]{Record: item{5}, DedupID: "order-1"}, // of the same partition
			runnel.Outgoing[item]{Record: item{3}, DedupID: "order-1"}, // of another one
			runnel.Outgoing[item]{Record: item{2}})
		if err != nil {
			t.Fatal(err)
		}
		want := first[0]
		want.Duplicate = true
		if again[0] != want || again[1].Duplicate || again[2].Duplicate {
			t.Errorf("sent %+v, then %+v", first, again)
		}
		for p, n := range map[int]int64{1: 1, 2: 2, 3: 1} {
			if got := rdb.XLen(t.Context(), fmt.Sprint("__strm:contract.items.", p)).Val(); got != n {
				t.Errorf("partition %d has %d entries, want %d", p, got, n)
			}
		}
	})
}

// A handler that sends under its event's ID sends once, though it fails and runs
// again.
func TestAHandlerThatIsRetriedSendsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { app.Close() }) // after the worker has ended
		out := runnel.NewStream(app, "out", keyOfItem, &runnel.StreamOptions{Partitions: 1})
		in := runnel.NewStream(app, "in", keyOfItem, &runnel.StreamOptions{Partitions: 1})
		done := make(chan []runnel.Sent, 3)
		runs := 0
		again := func(next runnel.Handler) runnel.Handler {
			return func(ctx context.Context, b *runnel.Batch) error {
				for range 2 {
					_ = next(ctx, b) // fails, and is called again
				}
				return next(ctx, b)
			}
		}
		in.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
			sent, err := out.SendEvents(ctx, runnel.Outgoing[item]{Record: i, DedupID: e.SendID(0)})
			done <- sent
			if runs++; err == nil && runs < 3 {
				err = errBad
			}
			return err
		}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{again}})
		running(t, app)
		if err := in.Send(t.Context(), item{7}); err != nil {
			t.Fatal(err)
		}
		first, second, third := <-done, <-done, <-done
		if first[0].Duplicate || !second[0].Duplicate || !third[0].Duplicate || second[0].ID != first[0].ID {
			t.Errorf("sent %v, %v, %v", first, second, third)
		}
		if n := rdb.XLen(t.Context(), "__strm:contract.out.0").Val(); n != 1 {
			t.Errorf("%d entries", n)
		}
	})
}

func TestATestSeesDuplicates(t *testing.T) {
	app := runnel.New("contract", nil)
	out := runnel.NewStream(app, "out", keyOfItem, nil)
	in := runnel.NewStream(app, "in", keyOfItem, nil)
	var second []runnel.Sent
	in.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) (err error) {
		o := runnel.Outgoing[item]{Record: i, DedupID: e.SendID(0)}
		if _, err = out.SendEvents(ctx, o); err == nil {
			second, err = out.SendEvents(ctx, o)
		}
		return err
	}), nil)
	got := runneltest.Process(t, in, "p", item{1})
	all := runneltest.SentEvents(t, got, out)
	if got.Err != nil || !second[0].Duplicate || len(all) != 1 || all[0].DedupID != "in/p/0/1-0/0" {
		t.Errorf("%+v, second %+v", got, second)
	}
}

// The ID of a delayed record is remembered like any other.
func TestADelayedRecordIsSentOnceUnderItsID(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		_, s := full(t, url, runnel.Reject, nil)
		delayed := runnel.Outgoing[item]{Record: item{1}, DedupID: "order-1", After: time.Hour}
		first, err := s.SendEvents(t.Context(), delayed)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.SendEvents(t.Context(), delayed, runnel.Outgoing[item]{Record: item{1}, DedupID: "order-1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range again {
			if !got.Duplicate || got.ID != first[0].ID {
				t.Errorf("sent %+v, then %+v", first[0], got)
			}
		}
		if n := rdb.XLen(t.Context(), "__strm:contract.items.1").Val(); n != 0 {
			t.Errorf("%d entries", n)
		}
	})
}

// numberedPartitions puts item n into partition n of any number of partitions.
var numberedPartitions = &runnel.Partitioner{Name: "number", Func: func(key string, partitions int) int {
	n := 0
	fmt.Sscan(key, &n)
	return n % partitions
}}

func numberOf(i item) string { return fmt.Sprint(i.N) }

// Events of several partitions may have one entry ID: those of one Send do, most of
// the time. What a function sends for each of them arrives all the same, wherever it
// goes.
func TestEventsOfOneEntryIDSendEachTheirOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to int
		key      func(item) string
	}{
		"16 to 1":          {16, 1, numberOf},
		"8 to 4":           {8, 4, numberOf},
		"with another key": {16, 16, keyOfItem},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
				app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
				t.Cleanup(func() { app.Close() })
				in := runnel.NewStream(app, "in", numberOf, &runnel.StreamOptions{Partitions: tt.from, Partitioner: numberedPartitions})
				out := runnel.NewStream(app, "out", tt.key, &runnel.StreamOptions{Partitions: tt.to, Partitioner: numberedPartitions})
				handled := make(chan error, 2*tt.from)
				for _, name := range []string{"p", "q"} { // two processors send each their own, too
					in.Process(name, runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
						same := runnel.Outgoing[item]{Record: i, DedupID: e.SendID(0)}
						_, err := out.SendEvents(ctx, same, same, runnel.Outgoing[item]{Record: i, DedupID: e.SendID(1)})
						handled <- err
						return nil
					}), nil)
				}
				running(t, app)
				for n := range tt.from { // one ID in all of them, as one Send does within a millisecond
					add := &redis.XAddArgs{Stream: fmt.Sprint("__strm:contract.in.", n), ID: "1700000000000-0", Values: []any{"json", fmt.Sprintf(`{"n":%d}`, n)}}
					if err := rdb.XAdd(t.Context(), add).Err(); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 * tt.from {
					if err := <-handled; err != nil {
						t.Error(err)
					}
				}
				got, want := int64(0), int64(2*2*tt.from)
				for n := range tt.to {
					got += rdb.XLen(t.Context(), fmt.Sprint("__strm:contract.out.", n)).Val()
				}
				if got != want {
					t.Errorf("%d events arrived, want %d", got, want)
				}
			})
		})
	}
}

func TestSendIDNamesTheWholeEvent(t *testing.T) {
	app := runnel.New("contract", nil)
	in := runnel.NewStream(app, "in", keyOfItem, nil)
	var got []string
	for _, name := range []string{"p", "q"} {
		in.Process(name, runnel.Each(func(_ context.Context, e *runnel.Event, _ item) error {
			got = append(got, e.SendID(0), e.SendID(1))
			return nil
		}), nil)
		if r := runneltest.Events(t, in, name).Partition(11).Records(item{1}).Run(); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	got = append(got, (&runnel.Event{Stream: "in", Partition: 3, ID: "1-0"}).SendID(2)) // made by hand
	want := []string{"in/p/11/1-0/0", "in/p/11/1-0/1", "in/q/11/1-0/0", "in/q/11/1-0/1", "in//3/1-0/2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
