package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// So many round trips may be under way before the next ones gather. With one, whoever
// comes in the middle of a trip would wait for the rest of it as well, which is long
// where the server is far. With many, little is gathered: hence fewer of those that
// are shared.
const (
	aloneAtOnce  = 4
	sharedAtOnce = 3
	companyLasts = 16 // trips of one after a shared one, until they count as alone
)

// A load is how much something is that may share a round trip.
type load struct{ items, bytes int }

func (l load) plus(o load) load   { return load{l.items + o.items, l.bytes + o.bytes} }
func (l load) within(o load) bool { return l.items <= o.items && l.bytes <= o.bytes }

// A gatherer sends what several callers want to send at the same time in one round
// trip, as databases commit to their logs in groups: whoever comes while little is
// under way is sent at once, and those that come meanwhile share the next trip. So
// nobody waits for company, and the busier it is the less each costs.
//
// The callers do the work themselves, each makes at most one trip for each time it
// sends, and reads its own answers. Of those that share a trip the one whose context
// ends last makes it, under that deadline: so it ends for nobody too early, and those
// whose contexts end before it need not wait for it.
//
// What is sent is of type P, and what is answered to each of type A.
type gatherer[P, A any] struct {
	send    func(context.Context, []P) []A
	unsent  func(error) A                  // the answer to what was not sent
	weigh   func([]P) (_ load, alone bool) // alone: it shares its trip with nobody
	carries load                           // of one trip, if more than one share it

	mu      sync.Mutex
	trips   int // under way
	company int // above zero where trips were shared lately
	queue   []*batch[P, A]
}

// A batch is what one caller sends in one trip.
type batch[P, A any] struct {
	parts    []P // only read while it is under way
	load     load
	deadline time.Time // of the context; zero for none

	turn    chan struct{}  // told once: it is to make a trip, or was taken along
	crew    []*batch[P, A] // its trip is for these, itself among them; nil: it was taken along
	answers []A

	away bool // no longer in the queue; guarded by the gatherer's mu
}

// A queuedError is that of a context that ended before anything was sent.
type queuedError struct{ err error }

func (e *queuedError) Error() string { return "not sent: " + e.err.Error() }
func (e *queuedError) Unwrap() error { return e.err }

// ended is the error of a context that has ended, and of which nothing was sent.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &queuedError{err}
}

// gather sends the next n records of each part, alone or with those of others. It
// returns when there are answers, or when ctx ends and they cannot be awaited. Until
// then, and longer where ctx ended, the parts may be read.
func (g *gatherer[P, A]) gather(ctx context.Context, parts []P) ([]A, error) {
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	load, alone := g.weigh(parts)
	if alone {
		return g.send(ctx, parts), nil
	}
	b := &batch[P, A]{parts: parts, load: load}
	g.mu.Lock()
	if g.company == 0 && len(g.queue) == 0 && g.trips < aloneAtOnce {
		g.trips++
		g.mu.Unlock()
		b.answers = g.send(ctx, parts)
		g.arrive()
		return b.answers, nil
	}
	b.deadline, _ = ctx.Deadline()
	b.turn = make(chan struct{}, 1)
	g.queue = append(g.queue, b)
	if g.trips < sharedAtOnce {
		g.trips++
		// Those whose trip just ended may be about to send again. There is no pause
		// where nobody is.
		for n := 0; n < len(g.queue); {
			n = len(g.queue)
			g.mu.Unlock()
			runtime.Gosched()
			g.mu.Lock()
		}
		g.depart()
	}
	g.mu.Unlock()
	if err := g.await(ctx, b); err != nil {
		return nil, err
	}
	if b.crew != nil {
		g.travel(ctx, b)
	}
	return b.answers, nil
}

// await returns when the batch is to make a trip, or was taken along by one; or the
// error of a context that ended. One that ends on the way is too late, as it is for
// who goes alone: only the deadline counts there.
func (g *gatherer[P, A]) await(ctx context.Context, b *batch[P, A]) error {
	select {
	case <-b.turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	away := b.away
	if !away {
		i := slices.Index(g.queue, b)
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	g.mu.Unlock()
	if !away {
		return ended(ctx)
	}
	var late <-chan time.Time
	if !b.deadline.IsZero() {
		timer := time.NewTimer(time.Until(b.deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-b.turn:
		return nil
	case <-late:
	}
	select {
	case <-b.turn: // the others depend on it
		return nil
	default:
		return context.DeadlineExceeded
	}
}

// depart makes a crew of those in the queue, as far as one trip carries them, and
// lets one of them go. There must be a trip to make. g.mu is held.
func (g *gatherer[P, A]) depart() {
	n, all := 0, load{}
	for _, b := range g.queue {
		if all = all.plus(b.load); n > 0 && !all.within(g.carries) {
			break
		}
		n++
	}
	if n == 0 {
		g.trips--
		return
	}
	crew := slices.Clone(g.queue[:n])
	g.queue = slices.Delete(g.queue, 0, n)
	last := crew[0]
	for _, b := range crew {
		b.away = true
		if !last.deadline.IsZero() && (b.deadline.IsZero() || b.deadline.After(last.deadline)) {
			last = b
		}
	}
	last.crew = crew
	if n > 1 {
		g.company = companyLasts
	} else {
		g.company = max(g.company-1, 0)
	}
	last.turn <- struct{}{}
}

// travel makes the trip of a batch and its crew.
func (g *gatherer[P, A]) travel(ctx context.Context, b *batch[P, A]) {
	n := 0
	for _, o := range b.crew {
		n += len(o.parts)
	}
	parts := make([]P, 0, n)
	for _, o := range b.crew {
		parts = append(parts, o.parts...)
	}
	if len(b.crew) > 1 {
		ctx = context.WithoutCancel(ctx)
		if !b.deadline.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, b.deadline)
			defer cancel()
		}
	}
	var answers []A
	if ctx.Err() == nil {
		answers = g.send(ctx, parts)
	} else {
		answers = slices.Repeat([]A{g.unsent(ended(ctx))}, n)
	}
	for _, o := range b.crew {
		o.answers, answers = answers[:len(o.parts)], answers[len(o.parts):]
		if o != b {
			o.turn <- struct{}{}
		}
	}
	g.arrive()
}

// arrive ends a trip, and has one of those that wait make the next one.
func (g *gatherer[P, A]) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trips > sharedAtOnce {
		g.trips--
		return
	}
	g.depart()
}
