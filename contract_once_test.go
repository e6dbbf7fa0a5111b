package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
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

// Where a processor begins that never ran, by partition; one that ran goes on.
func TestStartSaysWhereANewProcessorBegins(t *testing.T) {
	for name, tt := range map[string]struct {
		start func(ids []string) string
		want  string
	}{
		"default":   {func([]string) string { return "" }, "[0 4 8 12 16]"},
		"beginning": {func([]string) string { return runnel.StartBeginning }, "[0 4 8 12 16]"},
		"end":       {func([]string) string { return runnel.StartEnd }, "[16]"},
		"an ID":     {func(ids []string) string { return ids[1] }, "[8 12 16]"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, url string, _ *redis.Client) {
				_, producer := full(t, url, runnel.Reject, nil)
				var ids []string
				for n := range 4 {
					sent, err := producer.SendEvents(t.Context(), runnel.Outgoing[item]{Record: item{n * fullParts}})
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, sent[0].ID)
				}
				var seen numbered
				for run := range 2 { // the second time it has run before
					app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler),
						Processor: runnel.ProcessorOptions{Start: tt.start(ids)}})
					s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: fullParts,
						Partitioner: &runnel.Partitioner{Name: "digit", Func: func(string, int) int { return 0 }}})
					s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
						seen.see(e, i)
						return nil
					}), nil)
					stop := running(t, app)
					if run == 0 {
						if err := producer.Send(t.Context(), item{16}); err != nil {
							t.Fatal(err)
						}
						await(t, "the last one", func() bool { all := seen.of(0); return len(all) > 0 && all[len(all)-1] == 16 })
					}
					stop()
					app.Close()
				}
				if got := fmt.Sprint(seen.of(0)); got != tt.want {
					t.Errorf("processed %s, want %s", got, tt.want)
				}
			})
		})
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
