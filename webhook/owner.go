package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/outage"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/internal/worker"
)

// An owner delivers to the subscribers of one partition, for one ownership. All but mail, saver and lease belongs to the goroutine of
// run; reads, saves and requests have goroutines of their own, which post what has become of them.
type owner struct {
	b     *Bus
	own   *worker.Ownership
	log   *slog.Logger
	n     int
	fence string
	epoch int64
	mail  mailbox

	subs    map[string]*subscriber
	readers map[string]map[*subscriber]bool // by log
	changed map[string]bool                 // subscribers that are to be read again
	reading bool                            // some are
	ready   []*subscriber                   // to be looked at
	blocked map[place][]*subscriber         // that wait for a place
	reads   *outage.Outage                  // of reads for single subscribers
	saver   saver
	holds   holds

	busy   int  // subscribers whose state is stored, or who have a request under way
	ending bool // nothing begins any more
	over   bool // another has the partition

	ctx    context.Context // of reads and saves
	cancel func()
	lease  lease
}

const (
	readsAtOnce = 8
	lookEvery   = time.Second // at what has no event of its own: lease, holds
)

func newOwner(ctx context.Context, b *Bus, own *worker.Ownership) *owner {
	n, epoch := own.At()
	o := &owner{
		b: b, own: own, log: own.Log(), n: n, epoch: epoch, fence: own.Fence(), mail: mailbox{again: make(chan struct{}, 1)},
		subs: map[string]*subscriber{}, readers: map[string]map[*subscriber]bool{}, changed: map[string]bool{}, blocked: map[place][]*subscriber{},
	}
	o.reads = outage.New(o.log, "log", nil)
	o.saver.o, o.holds.o, o.holds.all = o, o, map[string]*hold{}
	o.ctx, o.cancel = context.WithCancel(ctx)
	return o
}

// A lease is the context of requests, which end with it.
type lease struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel func()
}

// context returns a context that ends with the lease, which holds now, or with parent.
func (l *lease) context(parent context.Context) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil {
		l.ctx, l.cancel = context.WithCancel(parent)
	}
	return l.ctx
}

func (l *lease) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
}

// run delivers until the ownership ends, and what has begun has ended.
func (o *owner) run() {
	defer o.cancel()
	o.b.feeds.join(o)
	defer o.b.feeds.leave(o)
	o.load()
	look := time.NewTicker(lookEvery + lookEvery/20) // or holds, which are told once in that time, would wait for every other tick
	defer look.Stop()
	for changed := o.own.Changed(); ; changed = o.own.Changed() {
		o.turn()
		if o.over {
			o.cancel()
		}
		if o.busy == 0 && (o.ending || o.ctx.Err() != nil) {
			break
		}
		o.wait(changed, look.C)
	}
	for _, s := range o.subs {
		s.wake.Stop()
	}
}

// load reads the subscribers of the partition, again until that succeeds or the ownership ends.
func (o *owner) load() {
	outage.Retry(o.ctx, o.log, "subscribers", func() error {
		for s, err := range o.b.calls.Subscribers(o.ctx, o.n) {
			if s == nil {
				return err
			}
			o.store(s.Name, s, err)
		}
		topics, err := o.b.calls.Topics(o.ctx)
		for name := range topics { // a former owner may hold what nobody needs by now
			o.holds.of(name).urgent = true
		}
		return err
	})
}

// reload reads subscribers that have changed: in one goroutine, since what was read before must not come later.
func (o *owner) reload(names ...string) {
	for _, name := range names {
		o.changed[name] = true
	}
	if o.reading || len(o.changed) == 0 {
		return
	}
	changed := o.changed
	o.changed, o.reading = map[string]bool{}, true
	go func() {
		for name := range changed {
			outage.Retry(o.ctx, o.log, "subscriber", func() error {
				s, err := o.b.calls.Subscriber(o.ctx, o.n, name)
				if s == nil {
					return err
				}
				o.mail.post(func() { o.store(name, s, err) })
				return nil
			})
		}
		o.mail.post(func() {
			o.reading = false
			o.reload()
		})
	}()
}

// store takes what is stored of a subscriber.
func (o *owner) store(name string, stored *iwebhook.Subscriber, err error) {
	s := o.subs[name]
	if err == nil && stored.Settings == nil {
		o.forget(s)
		return
	}
	switch {
	case err != nil:
	case s == nil || s.lost || s.wants.Generation != stored.Settings.Generation:
		o.forget(s)
		if s, err = newSubscriber(o, stored); err == nil {
			o.subs[name] = s
		}
	case newer(stored.Version, s.settings):
		err = s.change(stored)
	}
	if err != nil {
		o.log.Error("subscriber is not readable", "subscriber", name, "err", err)
		o.forget(o.subs[name])
		return
	}
	o.index(s)
	for log, span := range s.wants.Topics { // what is held replaces their pins
		h := o.holds.of(log)
		h.urgent, h.pins = true, append(h.pins, span.Pin)
	}
	o.look(s)
}

// forget ends what is known of a subscriber.
func (o *owner) forget(s *subscriber) {
	if s == nil {
		return
	}
	s.gone = true
	delete(o.subs, s.name)
	s.wake.Stop()
	for log := range s.logs {
		o.unread(log, s)
	}
}

// index makes a subscriber a reader of the logs that it needs now, and of no others.
func (o *owner) index(s *subscriber) {
	needs := s.w.State().Settled
	for log := range s.logs {
		if _, still := needs[log]; !still {
			o.unread(log, s)
		}
	}
	for log := range needs {
		if s.logs[log] {
			continue
		}
		s.logs[log] = true
		if o.readers[log] == nil {
			o.readers[log] = map[*subscriber]bool{}
			o.b.feeds.want(o, log, true)
		}
		o.readers[log][s] = true
		o.holds.of(log).urgent = true
	}
}

func (o *owner) unread(log string, s *subscriber) {
	delete(s.logs, log)
	delete(s.reading, log)
	if delete(o.readers[log], s); len(o.readers[log]) == 0 {
		delete(o.readers, log)
		o.b.feeds.want(o, log, false)
	}
	o.holds.of(log).urgent = true
}

// look has a subscriber looked at in this turn.
func (o *owner) look(s *subscriber) {
	if !s.queued && !s.gone {
		s.queued, o.ready = true, append(o.ready, s)
	}
}

// news has those looked at who read a log: it may have more. It may be called by any goroutine.
func (o *owner) news(log string) {
	o.mail.post(func() {
		for s := range o.readers[log] {
			o.look(s)
		}
	})
}

// turn does what can be done now.
func (o *owner) turn() {
	for _, do := range o.mail.take() {
		do()
	}
	now := o.own.Now()
	for len(o.ready) > 0 {
		ready := o.ready
		o.ready = nil
		for _, s := range ready {
			s.queued = false
			s.advance(now)
		}
	}
	o.saver.run()
	o.holds.run()
}

// unblock looks again at subscribers that wait for a place: there may be one.
func (o *owner) unblock() {
	waiting := o.blocked
	o.blocked = map[place][]*subscriber{}
	now := o.own.Now()
	for at, all := range waiting {
		for i, s := range all {
			s.blocked = false
			if s.advance(now); s.blocked {
				o.blocked[at] = append(o.blocked[at], all[i+1:]...) // there is none for them, either
				break
			}
		}
	}
}

// wait waits until there is something to do.
func (o *owner) wait(changed <-chan struct{}, look <-chan time.Time) {
	ending := o.own.Ending()
	if o.ending {
		ending = nil
	}
	select {
	case <-o.mail.again:
	case <-changed:
		for _, s := range o.subs {
			o.look(s)
		}
	case <-ending:
		o.ending = true
	case <-look:
	}
	if time.Now().After(o.own.LeaseEnd()) {
		o.lease.over() // another may have the partition by now
	}
}
