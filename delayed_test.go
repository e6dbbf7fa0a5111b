// A delayed event is never early and hardly late, keeps its time whatever happens to workers, and
// can be cancelled.

package runnel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

// late is how late a delayed event may be under a healthy worker.
const late = 200 * time.Millisecond

// delays is an app whose processor notes when it sees which item.
type delays struct {
	mu   sync.Mutex
	seen []sighting
}

type sighting struct {
	n                       int
	partition               int
	at, due, sent, appended time.Time
}

func (d *delays) build(o *runnel.Options) *runnel.App {
	app, s := d.declare(o)
	s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.seen = append(d.seen, sighting{i.N, e.Partition, time.Now(), e.Due(), e.Enqueued(), e.Appended()})
		return nil
	}), nil)
	return app
}

func (d *delays) declare(o *runnel.Options) (*runnel.App, *runnel.Stream[item]) {
	app := runnel.New("contract", o)
	return app, runnel.NewStream(app, "items", func(i item) string { return fmt.Sprint(i.N) }, &runnel.StreamOptions{Partitions: 4})
}

func (d *delays) sightings() []sighting {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen)
}

func (d *delays) numbers() (out []int) {
	for _, s := range d.sightings() {
		out = append(out, s.n)
	}
	return out
}

// simDelays runs a test with a worker that is ready, in fake time.
func simDelays(t *testing.T, fn func(c *runneltest.Cluster, d *delays, s *runnel.Stream[item])) {
	d := &delays{}
	runneltest.Sim(t, d.build, func(c *runneltest.Cluster) {
		w := c.Start("a")
		c.Wait(func() bool { return w.App().Ready() == nil })
		app, s := d.declare(c.Options("sender"))
		defer app.Close()
		fn(c, d, s)
	})
}

func TestDelayedEventsAreNeverEarlyAndHardlyLate(t *testing.T) {
	t.Parallel()
	simDelays(t, func(c *runneltest.Cluster, d *delays, s *runnel.Stream[item]) {
		const n = 400
		var sends sync.WaitGroup
		for i := range n {
			// From several senders, at any time, for any time of the next minute.
			sends.Go(func() {
				c.Sleep(time.Duration(rand.IntN(30_000)) * time.Millisecond)
				if _, err := s.SendAt(c.Context(), time.Now().Add(time.Duration(rand.IntN(60_000_000))*time.Microsecond), item{i}); err != nil {
					t.Error(err)
				}
			})
		}
		sends.Wait()
		c.Wait(func() bool { return len(d.sightings()) >= n })
		c.Sleep(time.Minute)
		last, times := map[int]time.Time{}, map[int]bool{}
		for _, e := range d.sightings() {
			if e.at.Before(e.due) || e.appended.Before(e.due) || e.at.Sub(e.due) > late {
				t.Errorf("item %d: due %v, appended %v, seen %v", e.n, e.due, e.appended, e.at)
			}
			if e.due.Before(last[e.partition]) || times[e.n] || !e.sent.Before(e.due) {
				t.Errorf("item %d: due %v, sent %v, the one before it was due %v", e.n, e.due, e.sent, last[e.partition])
			}
			last[e.partition], times[e.n] = e.due, true
		}
	})
}

// A time in parts of a millisecond is not early either, and SendAfter counts from
// now.
func TestDelayedEventsKeepTheirTime(t *testing.T) {
	simDelays(t, func(c *runneltest.Cluster, d *delays, s *runnel.Stream[item]) {
		due := time.Now().Add(time.Second + 300*time.Microsecond)
		at, err := s.SendAt(c.Context(), due, item{1})
		if err != nil || len(at[0].ID) != len("0/0000000000000001") || at[0].Duplicate {
			t.Errorf("sent %+v, %v", at, err)
		}
		began := time.Now()
		if _, err := s.SendAfter(c.Context(), 2*time.Second, item{2}, item{2}); err != nil {
			t.Error(err)
		}
		c.Wait(func() bool { return len(d.sightings()) == 3 })
		got := d.sightings()
		if e := got[0]; e.due.Before(due) || e.due.Sub(due) >= time.Millisecond || e.at.Before(due) {
			t.Errorf("%v became %+v", due, e)
		}
		for _, e := range got[1:] {
			if e.due.Sub(began) < 2*time.Second || e.due.Sub(began) > 2*time.Second+late || e.sent.Sub(began) > late {
				t.Errorf("after 2 s from %v: %+v", began, e)
			}
		}
	})
}

// What is due already is appended at once; what is not delayed has no due time.
func TestSendAtAPastTime(t *testing.T) {
	simDelays(t, func(c *runneltest.Cluster, d *delays, s *runnel.Stream[item]) {
		yesterday := time.Now().Add(-24 * time.Hour)
		sent, err := s.SendEvents(c.Context(), runnel.Outgoing[item]{Record: item{1}, At: yesterday},
			runnel.Outgoing[item]{Record: item{1}}, runnel.Outgoing[item]{Record: item{1}, After: -time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c.Wait(func() bool { return len(d.sightings()) == 3 })
		for i, e := range sent {
			if strings.Contains(e.ID, "/") || !strings.Contains(e.ID, "-") {
				t.Errorf("record %d: %+v", i, e)
			}
		}
		dated := 0
		for _, e := range d.sightings() {
			if e.due.Equal(yesterday.Truncate(time.Millisecond)) {
				dated++
			} else if !e.due.IsZero() || !e.sent.Equal(e.appended) {
				t.Errorf("not delayed: %+v", e)
			}
		}
		if dated != 1 {
			t.Errorf("%d were due yesterday", dated)
		}
	})
}

// 10 000 events of one time, of many sends, come in the order in which they were
// sent, none early and none lost.
func TestTenThousandOfOneTime(t *testing.T) {
	t.Parallel()
	simDelays(t, func(c *runneltest.Cluster, d *delays, s *runnel.Stream[item]) {
		n := tier.Large(10_000)
		due := time.Now().Add(time.Minute)
		for first := 0; first < n; first += 500 {
			var out []item
			for i := range 500 {
				out = append(out, item{first + i})
			}
			if _, err := s.SendAt(c.Context(), due, out...); err != nil {
				t.Fatal(err)
			}
		}
		c.Wait(func() bool { return len(d.sightings()) >= n })
		last := map[int]int{}
		for _, e := range d.sightings() {
			if e.at.Before(due) || e.n < last[e.partition] {
				t.Fatalf("%+v, due %v, after %d", e, due, last[e.partition])
			}
			last[e.partition] = e.n
		}
		if got := len(d.sightings()); got != n {
			t.Errorf("%d events", got)
		}
	})
}

func TestCancelAndReschedule(t *testing.T) {
	t.Parallel()
	simDelays(t, func(c *runneltest.Cluster, d *delays, s *runnel.Stream[item]) {
		ctx := c.Context()
		sent, err := s.SendAfter(ctx, time.Minute, item{1}, item{2}, item{3}, item{4})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, want bool) func(bool, error) {
			return func(got bool, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Errorf("%s: %v, %v", what, got, err)
				}
			}
		}
		check("cancel before it is due", true)(s.Cancel(ctx, sent[0].ID))
		check("cancel again", false)(s.Cancel(ctx, sent[0].ID))
		check("reschedule a cancelled one", false)(s.Reschedule(ctx, sent[0].ID, time.Now()))
		check("reschedule to the front", true)(s.Reschedule(ctx, sent[2].ID, time.Now().Add(time.Second)))
		check("reschedule to the back", true)(s.Reschedule(ctx, sent[1].ID, time.Now().Add(10*time.Minute)))
		began := time.Now()
		c.Wait(func() bool { return len(d.sightings()) == 1 })
		if took := time.Since(began); took < time.Second || took > time.Second+late {
			t.Errorf("the one in front came after %v", took)
		}
		c.Wait(func() bool { return len(d.sightings()) == 2 })
		check("cancel what was appended", false)(s.Cancel(ctx, sent[3].ID))
		check("reschedule what was appended", false)(s.Reschedule(ctx, sent[3].ID, time.Now()))
		check("cancel an entry", false)(s.Cancel(ctx, "1700000000000-0"))
		c.Sleep(8 * time.Minute)
		check("cancel the rescheduled one", true)(s.Cancel(ctx, sent[1].ID))
		c.Sleep(5 * time.Minute)
		if got := d.numbers(); !slices.Equal(got, []int{3, 4}) {
			t.Errorf("processed %v", got)
		}
	})
}

func TestDelaysThatCannotBe(t *testing.T) {
	s, rdb := onServer(t)
	ctx := t.Context()
	for _, out := range []runnel.Outgoing[item]{
		{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{At: time.Now(), After: time.Second},
	} {
		sent, err := s.SendEvents(ctx, runnel.Outgoing[item]{Record: item{10}}, out)
		if err == nil || sent != nil || !strings.Contains(err.Error(), "stream items: record 1: ") {
			t.Errorf("%+v: %v, %v", out, sent, err)
		}
	}
	for _, id := range []string{"", "x", "3", "4/0000000000000001", "-1/0000000000000001", "1/1"} {
		if ok, err := s.Cancel(ctx, id); ok || err == nil || !strings.Contains(err.Error(), "stream items: ") {
			t.Errorf("cancel %q: %v, %v", id, ok, err)
		}
	}
	if ok, err := s.Reschedule(ctx, "1/0000000000000001", time.Time{}); ok || err == nil {
		t.Errorf("reschedule to the zero time: %v, %v", ok, err)
	}
	if keys := rdb.Keys(ctx, "*").Val(); len(keys) != 0 {
		t.Errorf("something was sent: %q", keys)
	}
}

// Without a processor nothing is moved, whatever is due; a worker that starts
// later moves it at once. Restarts of workers lose and double nothing.
func TestDelayedEventsSurviveWorkers(t *testing.T) {
	t.Parallel()
	d := &delays{}
	runneltest.Sim(t, d.build, func(c *runneltest.Cluster) {
		app, s := d.declare(c.Options("sender"))
		defer app.Close()
		const n = 300
		for i := range n {
			if _, err := s.SendAfter(c.Context(), time.Duration(i)*200*time.Millisecond+time.Millisecond, item{i}); err != nil {
				t.Fatal(err)
			}
		}
		c.Sleep(10 * time.Second)
		if got := d.numbers(); len(got) > 0 {
			t.Errorf("without a worker: %v", got)
		}
		for round := 0; len(d.sightings()) < n && round < 40; round++ {
			w := c.Start(fmt.Sprint("w", round))
			c.Sleep(time.Duration(1500+rand.IntN(3000)) * time.Millisecond)
			if round%2 == 0 {
				w.Kill()
			} else if err := w.Stop(); err != nil {
				t.Error(err)
			}
		}
		c.Start("last")
		c.Wait(func() bool { return len(d.sightings()) >= n })
		c.Sleep(time.Minute)
		times, appended := map[int]int{}, 0
		for _, e := range d.sightings() {
			times[e.n]++
		}
		for p := range 4 {
			appended += int(c.Redis().XLen(c.Context(), fmt.Sprint("__strm:contract.items.", p)).Val())
		}
		if len(times) != n || appended != n {
			t.Errorf("%d of %d were processed, %d appended", len(times), n, appended)
		}
	})
}
