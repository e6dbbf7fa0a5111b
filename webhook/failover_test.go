// Servers are lost, and their replicas take their places: with all that was acknowledged, or as they were some time ago.

package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/webhook"
)

const failoverPassword = "secret"

// A failing is a bus on a master with one replica and three sentinels, with a publisher that goes on until each of its events is acknowledged.
type failing struct {
	*play
	w *redistest.Watched

	events      atomic.Int64 // that were acknowledged
	unconfirmed atomic.Int64 // times that the replica did not confirm
	failed      atomic.Int64 // times that publishing failed otherwise
}

func newFailing(t *testing.T) *failing {
	t.Setenv("RUNNEL_MIN_REPLICAS", "1")
	t.Setenv("RUNNEL_REPLICATION_TIMEOUT", "500ms")
	w := redistest.StartWatched(t, 1, "--requirepass", failoverPassword)
	s := newStorm(t, w.URL(), "", runnel.LayoutStandalone, 1, func(o *webhook.Options) {
		o.Retry = &runnel.Retry{Max: 1_000_000, MinBackoff: 30 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
	})
	s.calm.Store(true)
	s.published = map[string]int64{"orders": 0, "users": 0}
	f := &failing{play: &play{storm: s}, w: w}
	t.Cleanup(f.end)
	return f
}

// insist publishes some events again and again, until they are acknowledged, and checks that they have the next numbers, as if
// nothing had happened.
func (f *failing) insist(ctx context.Context, topic string, n int) error {
	var events []webhook.Event
	for i := range n {
		name := fmt.Sprint(topic, "/", f.published[topic]+int64(i)+1)
		events = append(events, webhook.Event{Topic: topic, Type: webhook.Update, URL: "https://x/" + name, DedupID: name})
	}
	sent, err := f.bus.Publish(ctx, "shop", events...)
	for err != nil && ctx.Err() == nil {
		if errors.Is(err, runnel.ErrNotReplicated) {
			f.unconfirmed.Add(1)
		} else {
			f.failed.Add(1)
		}
		time.Sleep(10 * time.Millisecond)
		sent, err = f.bus.Publish(ctx, "shop", events...)
	}
	if err != nil {
		return nil // it is over
	}
	f.published[topic] += int64(n)
	f.events.Add(int64(n))
	if last := sent[n-1].ID; !strings.HasSuffix(last, fmt.Sprint("-", f.published[topic])) {
		return fmt.Errorf("event %d of %s has the ID %s", f.published[topic], topic, last)
	}
	return nil
}

// publishing publishes until the returned function is called.
func (f *failing) publishing() (end func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil && !f.Failed() {
			if err := f.insist(ctx, []string{"orders", "users"}[f.pick(2)], 1+f.pick(5)); err != nil {
				f.Error(err)
			}
			time.Sleep(time.Duration(f.pick(5)) * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// reaches waits until a number has become larger by so much.
func (f *failing) reaches(what string, n *atomic.Int64, more int64) {
	f.Helper()
	want := n.Load() + more
	redistest.Eventually(f, what, func() bool { return n.Load() >= want || f.Failed() }, f.log.String)
}

// sever breaks the link of the replica, so that nothing is confirmed any more.
func (f *failing) sever(master, replica *redistest.Server) {
	f.Helper()
	f.must(replica.Client(f).ConfigSet(f.ctx, "masterauth", "another").Err())
	f.must(master.Client(f).Do(f.ctx, "CLIENT", "KILL", "TYPE", "replica").Err())
	f.reaches("events that are not confirmed", &f.unconfirmed, 2)
}

// A master is killed again and again under load. What was acknowledged is delivered in order, and counted once, also if the replica had lost
// the master some time before: then it lacks what was not confirmed.
func TestFailoversLoseNothingThatWasAcknowledged(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	f := newFailing(t)
	for topic := range f.published {
		f.must(f.insist(f.ctx, topic, 1))
	}
	for range 2 {
		f.start()
	}
	for i := range 6 {
		f.tenant(fmt.Sprint("c", i), "orders", "users")
	}
	end := f.publishing()
	defer end()
	for _, severed := range []bool{false, true, false, true} {
		f.reaches("load", &f.events, 30)
		master, replica := f.w.Master(), f.w.Replicas()[0]
		if severed {
			f.sever(master, replica)
		}
		master.Kill()
		f.w.WaitFailover(master)
		f.must(replica.Client(t).ConfigSet(f.ctx, "masterauth", failoverPassword).Err())
		f.w.Restart(master)
		f.w.WaitReplica(master)
		f.w.Settle()
	}
	f.reaches("load", &f.events, 30)
	end()
	f.judged()
	for _, c := range f.tenants {
		want := f.published["orders"] + f.published["users"] - c.from["orders"] - c.from["users"]
		if c.figures.Sent != want || c.figures.Dropped+c.figures.Dead > 0 {
			t.Errorf("%s: %+v of %d", c.name(), c.figures, want)
		}
		for topic, last := range f.published {
			if got := c.got(topic); int64(len(got)) != last-c.from[topic] || slices.Max(got) != last {
				t.Errorf("%s has %d events of %s, want %d", c.name(), len(got), topic, last-c.from[topic])
			}
		}
	}
	t.Logf("%v published, %d times not confirmed, %d times failed; %d requests, %d repeats, %d late; given again %d times",
		f.published, f.unconfirmed.Load(), f.failed.Load(), f.judge.requests, f.judge.repeats, f.judge.late, strings.Count(f.log.String(), "given again"))
}
