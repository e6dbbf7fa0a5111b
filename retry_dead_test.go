// A dead letter that an operator retries is processed by its processor alone, and may die again.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// retryDead retries the dead letters of a processor with these IDs, without any all of them, and
// returns how many.
func retryDead(t *testing.T, app *runnel.App, stream, processor string, ids ...string) (int, error) {
	dead := admin.New(app).DeadLetters(stream, processor)
	filters := []*admin.Filter{nil}
	if len(ids) > 0 {
		filters = nil
	}
	for _, id := range ids {
		filters = append(filters, &admin.Filter{ID: id})
	}
	n := 0
	for _, f := range filters {
		letters, err := dead.List(t.Context(), f)
		if err != nil {
			return n, err
		}
		done, err := dead.Retry(t.Context(), letters)
		if n += len(done); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Dead letters go back to their processor alone, begin at attempt 1, and keep the order
// of their events: with an owner that runs, with none, and without a Retry.
func TestDeadLettersAreRetriedByTheirProcessorAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		order   runnel.RetryOrder
		running bool // while they are given back
		later   bool // the processor has no Retry any more
	}{
		"block":                   {runnel.OrderPartition, true, false},
		"key":                     {runnel.OrderKey, true, false},
		"later":                   {runnel.OrderNone, true, false},
		"no worker runs":          {runnel.OrderKey, false, false},
		"the Retry has been left": {runnel.OrderKey, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
				d := &deadly{t: t, url: url, ship: new(notes), mail: new(notes)}
				retry := &runnel.Retry{Max: 3, Order: tt.order}
				app, s := d.app(retry)
				stop := running(t, app)
				if err := s.Send(t.Context(), items(1, 2, 1, 3)...); err != nil {
					t.Fatal(err)
				}
				redistest.Eventually(t, "all are dead", func() bool {
					return rdb.XLen(t.Context(), "__dead:contract.items.ship.0").Val() == 4 && len(d.mail.all()) == 4
				})
				d.mended.Store(true)
				if !tt.running {
					stop()
				}
				n := len(d.ship.all())
				if done, err := retryDead(t, app, "items", "ship"); done != 4 || err != nil {
					t.Fatalf("%d were retried: %v", done, err)
				}
				if !tt.running {
					if tt.later {
						retry = nil
					}
					app, s = d.app(retry)
					running(t, app)
				}
				redistest.Eventually(t, "all have run", func() bool { return len(d.ship.all()) == n+4 })
				if err := s.Send(t.Context(), item{9}); err != nil {
					t.Fatal(err)
				}
				redistest.Eventually(t, "the new one has run", func() bool { return len(d.ship.all()) == n+5 && len(d.mail.all()) == 5 })
				d.inOrder(tt.order, n)
				redistest.Eventually(t, "nothing is left", func() bool {
					return rdb.Exists(t.Context(), "__parked:contract.items.ship.0", "__retry:contract.items.ship.0").Val() == 0 &&
						rdb.XLen(t.Context(), "__dead:contract.items.ship.0").Val() == 0
				})
			})
		})
	}
}

// deadly is an app with a processor that gives up all events until it is mended.
type deadly struct {
	t          *testing.T
	url        string
	mended     atomic.Bool
	ship, mail *notes
}

func (d *deadly) app(retry *runnel.Retry) (*runnel.App, *runnel.Stream[item]) {
	app := runnel.New("contract", &runnel.Options{RedisURL: d.url, Logger: slog.New(slog.DiscardHandler)})
	d.t.Cleanup(func() { app.Close() })
	s := runnel.NewStream(app, "items", numberOf, &runnel.StreamOptions{Partitions: 1})
	s.Process("ship", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		d.ship.add(fmt.Sprintf("%d#%d %s", i.N, e.Attempt, e.ID))
		if d.mended.Load() {
			return nil
		}
		return runnel.DeadLetter(errBad)
	}), &runnel.ProcessorOptions{Retry: retry})
	s.Process("mail", runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
		d.mail.add(fmt.Sprint(i.N))
		return nil
	}), nil)
	return app, s
}

// inOrder wants the events behind the first n calls as they were sent, each at its first
// attempt: all of them, or those of each key.
func (d *deadly) inOrder(order runnel.RetryOrder, n int) {
	d.t.Helper()
	before, got := d.ship.all()[:n], d.ship.all()[n:]
	if order != runnel.OrderPartition {
		slices.Sort(before)
		slices.SortStableFunc(got, func(a, b string) int { return int(a[0]) - int(b[0]) })
	}
	if len(got) != 5 || !slices.Equal(got[:4], before) || got[4][:4] != "9#1 " {
		d.t.Errorf("ship got %q, before %q", got, before)
	}
	if got := d.mail.all()[4:]; !slices.Equal(got, []string{"9"}) {
		d.t.Errorf("mail got %q again", got)
	}
}

// What fails again waits in its lane, and what comes later under its key behind it; it dies
// after Max attempts more. What cannot be decoded dies at once.
func TestARetriedDeadLetterMayDieAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		calls := new(notes)
		app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { app.Close() })
		s := runnel.NewStream(app, "items", numberOf, &runnel.StreamOptions{Partitions: 1})
		s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			calls.add(fmt.Sprintf("%d#%d", i.N, e.Attempt))
			return errBad
		}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2, Order: runnel.OrderKey, MinBackoff: 1, MaxBackoff: 1}})
		running(t, app)
		dead := func() int64 { return rdb.XLen(t.Context(), "__dead:contract.items.p.0").Val() }
		for i, record := range []string{`{"n":1}`, "no"} { // of IDs that no dead letter has
			add := &redis.XAddArgs{Stream: "__strm:contract.items.0", ID: fmt.Sprint(5+i, "-0"), Values: []any{"json", record}}
			if err := rdb.XAdd(t.Context(), add).Err(); err != nil {
				t.Fatal(err)
			}
		}
		redistest.Eventually(t, "both are dead", func() bool { return dead() == 2 })
		letter := rdb.XRange(t.Context(), "__dead:contract.items.p.0", "-", "+").Val()[0]
		if letter.Values["__dead.reason"] != "failed" {
			letter = rdb.XRange(t.Context(), "__dead:contract.items.p.0", "-", "+").Val()[1]
		}
		for _, id := range []string{letter.ID, letter.Values["__dead.id"].(string)} { // as a letter, then as the event
			if n, err := retryDead(t, app, "items", "p", "0/"+id); n != 1 || err != nil {
				t.Fatalf("%d were retried: %v", n, err)
			}
			redistest.Eventually(t, "it is dead again", func() bool { return dead() == 2 })
		}
		if n, err := retryDead(t, app, "items", "p"); n != 2 || err != nil {
			t.Fatalf("%d were retried: %v", n, err)
		}
		redistest.Eventually(t, "both are dead again", func() bool { return dead() == 2 })
		if got, want := calls.all(), []string{"1#1", "1#2", "1#1", "1#2", "1#1", "1#2", "1#1", "1#2"}; !slices.Equal(got, want) {
			t.Errorf("called with %q, want %q", got, want)
		}
		for _, id := range []string{"1", "1/1-0", "x"} {
			if _, err := retryDead(t, app, "items", "p", id); err == nil {
				t.Errorf("%s is no event", id)
			}
		}
		if _, err := retryDead(t, app, "items", "q"); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("there is no such processor: %v", err)
		}
	})
}
