package webhook_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/test/redistest"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/webhook"
)

// A tenant is a subscriber of a storm, as who makes its subscriptions knows it.
type tenant struct {
	s       *storm
	client  string
	born    int // how often it was made anew
	most    int
	topics  map[string]bool
	alive   bool
	paused  bool
	from    map[string]int64 // by topic: where the span begins
	ended   int64            // events of spans that are over
	wanted  map[string][]delivery.Run
	totals  delivery.Figures
	figures delivery.Figures // of the last look
}

// name is the subscriber's for the judge.
func (c *tenant) name() string { return fmt.Sprintf("%s.%d", c.client, c.born) }

// subscribe stores the topics that the tenant wants.
func (c *tenant) subscribe() {
	c.s.Helper()
	if !c.alive {
		c.born++
		c.most = []int{1, 3, 10, 20, 50}[c.s.pick(5)]
		c.from, c.ended, c.wanted, c.paused = map[string]int64{}, 0, map[string][]delivery.Run{}, false
		c.s.judge.add(c.name(), c.most)
		c.alive = true
	}
	wants := webhook.Subscription{
		Client: c.client, Callback: c.s.receivers.URL + "/" + c.name(), Topics: nil, Max: c.most, Timeout: -1,
	}
	for topic := range c.topics {
		wants.Topics = append(wants.Topics, topic)
		c.s.judge.of(c.name(), func(j *judged) { delete(j.closed, topic) })
	}
	c.s.does(func() error { return c.s.bus.Subscribe(c.s.ctx, wants) })
	stored, _ := c.look()
	for topic := range c.topics {
		c.from[topic] = stored.Settings.Topics[topic].From.N
	}
}

// look returns what is stored of the tenant.
func (c *tenant) look() (*iwebhook.Subscriber, *delivery.State) {
	c.s.Helper()
	stored, err := c.s.bus.Calls().Subscriber(c.s.ctx, c.s.bus.PartitionOf(c.client), c.client)
	c.s.must(err)
	return stored, &stored.State
}

// change changes a topic of the tenant: it ends, or begins again once all of it was delivered.
func (c *tenant) change(topic string) {
	c.s.Helper()
	if c.topics[topic] {
		if len(c.topics) == 1 {
			return
		}
		delete(c.topics, topic)
		if c.s.chance(50) {
			c.s.does(func() error { return c.s.bus.Unsubscribe(c.s.ctx, c.client, topic) })
		} else {
			c.subscribe()
		}
		last := c.s.last(topic).N
		c.s.judge.of(c.name(), func(j *judged) { j.closed[topic] = last })
		return
	}
	stored, state := c.look()
	if span, named := stored.Settings.Topics[topic]; named {
		end := state.Ended[topic].N
		if _, queued := state.Settled[topic]; queued || span.End > max(span.From.N, end) {
			return // it would go on where it is, or, unless its owner has seen the span, lose what is queued
		}
		c.close(topic, max(end, span.End))
	}
	c.topics[topic] = true
	c.subscribe()
}

// close books a span that is over.
func (c *tenant) close(topic string, end int64) {
	from, known := c.from[topic]
	if delete(c.from, topic); known && end > from {
		c.ended += end - from
		c.wanted[topic] = append(c.wanted[topic], delivery.Run{First: from + 1, Last: end})
	}
}

// remove removes the tenant. What was sent so far is known from a look just before.
func (c *tenant) remove() {
	c.s.Helper()
	c.s.does(func() error { return c.s.bus.Unsubscribe(c.s.ctx, c.client) })
	c.s.judge.of(c.name(), func(j *judged) { j.begun = &begun{removed: true} })
	c.alive = false
	if err := c.s.bus.Unsubscribe(c.s.ctx, c.client); !errors.Is(err, webhook.ErrNoSubscriber) {
		c.s.Errorf("a subscriber that was removed is removed again: %v", err)
	}
}

// pause pauses the tenant, or resumes it.
func (c *tenant) pause() {
	c.s.Helper()
	if c.paused = !c.paused; !c.paused {
		c.s.judge.of(c.name(), func(j *judged) { j.begun = nil })
		c.s.does(func() error { return c.s.bus.Resume(c.s.ctx, c.client) })
		return
	}
	c.s.does(func() error { return c.s.bus.Pause(c.s.ctx, c.client, nil) })
	_, state := c.look()
	b := &begun{upTo: map[string]int64{}, open: map[string]int64{}}
	for topic := range c.s.published {
		at, named := state.Settled[topic]
		if !named {
			at.N = max(state.Ended[topic].N, c.from[topic])
		}
		b.upTo[topic], b.open[topic] = at.N, at.N
		if o := state.Open; o != nil {
			if members := o.Members[topic]; len(members) > 0 {
				b.upTo[topic], b.open[topic] = members[len(members)-1].Last, members[0].First-1
			}
			b.attempt = o.Attempt
		}
	}
	c.s.judge.of(c.name(), func(j *judged) { j.begun = b })
}

// sum checks that what became of the tenant's events is what was published for it, and returns how many are queued.
func (c *tenant) sum() (queued int64) {
	c.s.Helper()
	stored, state := c.look()
	by, err := c.s.bus.Calls().Extents(c.s.ctx, slices.Collect(maps.Keys(c.s.published)))
	c.s.must(err)
	want := c.ended
	for topic, from := range c.from {
		want += c.end(topic, stored, state, by) - from
	}
	f := state.Figures(stored.Settings.Topics, by)
	if got := f.Sent + f.Queued + f.Dropped + f.Dead; got != want {
		c.s.Errorf("%s: sent %d + queued %d + dropped %d + dead %d = %d, %d were published for it\n%+v\n%v %v\n%v",
			c.name(), f.Sent, f.Queued, f.Dropped, f.Dead, got, want, stored.State, stored.Settings.Topics, by, c)
	}
	if was := c.figures; f.Sent < was.Sent || f.Dead < was.Dead || f.Failed < was.Failed {
		c.s.Errorf("%s: from %+v to %+v", c.name(), was, f)
	}
	c.figures = f
	return f.Queued
}

// end returns up to where a topic was published for the tenant.
func (c *tenant) end(topic string, stored *iwebhook.Subscriber, state *delivery.State, by map[string]delivery.Extent) int64 {
	end := by[topic].Last.N
	if span := stored.Settings.Topics[topic]; span.End > 0 {
		end = max(span.End, state.Ended[topic].N)
	} else if !c.topics[topic] {
		end = c.from[topic] // it never had an event
	}
	end = max(end, state.Settled[topic].N)
	if o := state.Open; o != nil {
		if members := o.Members[topic]; len(members) > 0 {
			end = max(end, members[len(members)-1].Last)
		}
	}
	return end
}

// received checks, when nothing is queued, that all events came but for those that are counted otherwise.
func (c *tenant) received() {
	stored, state := c.look()
	wanted := maps.Clone(c.wanted)
	by := map[string]delivery.Extent{}
	for topic, last := range c.s.published {
		by[topic] = delivery.Extent{Last: delivery.ID{N: last}}
	}
	for topic, from := range c.from {
		wanted[topic] = append(wanted[topic], delivery.Run{First: from + 1, Last: c.end(topic, stored, state, by)})
	}
	c.s.judge.of(c.name(), func(j *judged) {
		var all, received, settled int64
		for topic, runs := range wanted {
			for _, run := range runs {
				for n := run.First; n <= run.Last; n++ {
					all++
					if j.received[topic][n] {
						received++
					}
					if j.settled[topic][n] {
						settled++
					}
				}
			}
		}
		f := c.figures
		if all-received > f.Dropped || settled < f.Sent || settled > f.Sent+f.Dropped+f.Dead {
			c.s.Errorf("%s: %d events, %d received, %d of them answered with success, but %+v", c.name(), all, received, settled, f)
		}
	})
	c.totals.Sent += c.figures.Sent
	c.totals.Dropped += c.figures.Dropped
	c.totals.Dead += c.figures.Dead
}

// settle waits until nothing is queued for the tenant.
func (c *tenant) settle() {
	c.s.Helper()
	redistest.Eventually(c.s, c.name()+" has everything", func() bool {
		_, state := c.look()
		return c.sum() == 0 && state.Open == nil || c.s.Failed()
	}, func() string {
		stored, _ := c.look()
		return fmt.Sprint(stored.State, stored.Settings, "\n", c.s.log.String())
	})
}
