// Package groupcommit sends the items of several goroutines in one round trip, like the group
// commit of a database's log.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Bounds on the round trips under way before the next ones are shared. With one trip, a caller that
// comes in the middle would wait for the rest of it as well, which is long where the server is far.
// With many trips little is shared, so fewer of those may be.
const (
	AloneAtOnce  = 4  // trips for one caller each
	sharedAtOnce = 3  // trips for several
	sharedLasts  = 16 // trips of one caller after a shared one, until they count as alone
)

// A Load is the size of the items of a trip.
type Load struct{ Items, Bytes int }

func (l Load) plus(o Load) Load   { return Load{l.Items + o.Items, l.Bytes + o.Bytes} }
func (l Load) within(o Load) bool { return l.Items <= o.Items && l.Bytes <= o.Bytes }

// A Group sends the items of several callers in one round trip. While few trips are under way, a
// caller's items are sent at once; otherwise they share the next trip. So no caller waits for
// others, and a busier group costs less per item.
//
// Callers do the work themselves: each makes at most one trip per call of Do, and reads its own
// answers. Among those that share a trip, the one whose context ends last makes it, under that
// deadline. So the trip ends too early for none, and the others need not wait for it.
//
// P is the type of the items, A that of the answer to each. The fields are set before the first
// call of Do, which may be called concurrently.
type Group[P, A any] struct {
	Send   func(context.Context, []P) []A
	Unsent func(error) A                  // the answer to an item that was not sent
	Weigh  func([]P) (_ Load, alone bool) // alone: these items share their trip with no others
	Limit  Load                           // of one trip that is shared

	mu             sync.Mutex
	inFlight       int // trips under way
	recentlyShared int // above zero where trips were shared lately
	queue          []*request[P, A]
}

// A request is the part of one caller in one trip.
type request[P, A any] struct {
	items    []P // only read while it is under way
	load     Load
	deadline time.Time // of the context; zero for none

	turn    chan struct{}    // receives once: it is to make a trip, or was taken along
	flight  []*request[P, A] // its trip is for these, itself among them; nil: it was taken along
	answers []A

	left bool // no longer in the queue; guarded by the group's mu
}

// An UnsentError reports that a context ended before anything was sent.
type UnsentError struct{ err error }

// Error begins with "not sent".
func (e *UnsentError) Error() string { return "not sent: " + e.err.Error() }

func (e *UnsentError) Unwrap() error { return e.err }

// Unsent returns the UnsentError of a context that has ended.
func Unsent(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &UnsentError{err}
}

// Waiting returns how many callers wait for a trip.
func (g *Group[P, A]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}

// Do sends items, alone or with those of others. It returns the answers, or an error when ctx ends
// and the answers cannot be awaited. The items may be read until then, and longer if ctx ended.
func (g *Group[P, A]) Do(ctx context.Context, items []P) ([]A, error) {
	if ctx.Err() != nil {
		return nil, Unsent(ctx)
	}
	load, alone := g.Weigh(items)
	if alone {
		return g.Send(ctx, items), nil
	}
	r := &request[P, A]{items: items, load: load}
	g.mu.Lock()
	if g.recentlyShared == 0 && len(g.queue) == 0 && g.inFlight < AloneAtOnce {
		g.inFlight++
		g.mu.Unlock()
		r.answers = g.Send(ctx, items)
		g.finishFlight()
		return r.answers, nil
	}
	r.deadline, _ = ctx.Deadline()
	r.turn = make(chan struct{}, 1)
	g.queue = append(g.queue, r)
	if g.inFlight < sharedAtOnce {
		g.inFlight++
		// Callers whose trip just ended may be about to send again. Without any, there is no pause.
		for n := 0; n < len(g.queue); {
			n = len(g.queue)
			g.mu.Unlock()
			runtime.Gosched()
			g.mu.Lock()
		}
		g.startFlight()
	}
	g.mu.Unlock()
	if err := g.await(ctx, r); err != nil {
		return nil, err
	}
	if r.flight != nil {
		g.fly(ctx, r)
	}
	return r.answers, nil
}

// await returns nil when the request is to make a trip, or when a trip has taken it along. It
// returns the context's error if that ended before. A cancellation during a trip comes too late, as
// for a request that goes alone: only the deadline counts there.
func (g *Group[P, A]) await(ctx context.Context, r *request[P, A]) error {
	select {
	case <-r.turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	left := r.left
	if !left {
		i := slices.Index(g.queue, r)
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	g.mu.Unlock()
	if !left {
		return Unsent(ctx)
	}
	var late <-chan time.Time
	if !r.deadline.IsZero() {
		timer := time.NewTimer(time.Until(r.deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-r.turn:
		return nil
	case <-late:
	}
	select {
	case <-r.turn: // the others depend on it
		return nil
	default:
		return context.DeadlineExceeded
	}
}

// startFlight takes requests from the queue, as many as one trip carries, and starts one of them.
// There must be a trip to make. g.mu is held.
func (g *Group[P, A]) startFlight() {
	n, all := 0, Load{}
	for _, r := range g.queue {
		if all = all.plus(r.load); n > 0 && !all.within(g.Limit) {
			break
		}
		n++
	}
	if n == 0 {
		g.inFlight--
		return
	}
	flight := slices.Clone(g.queue[:n])
	g.queue = slices.Delete(g.queue, 0, n)
	last := flight[0]
	for _, r := range flight {
		r.left = true
		if !last.deadline.IsZero() && (r.deadline.IsZero() || r.deadline.After(last.deadline)) {
			last = r
		}
	}
	last.flight = flight
	if n > 1 {
		g.recentlyShared = sharedLasts
	} else {
		g.recentlyShared = max(g.recentlyShared-1, 0)
	}
	last.turn <- struct{}{}
}

// fly makes the trip of a request and those that share it.
func (g *Group[P, A]) fly(ctx context.Context, r *request[P, A]) {
	n := 0
	for _, o := range r.flight {
		n += len(o.items)
	}
	items := make([]P, 0, n)
	for _, o := range r.flight {
		items = append(items, o.items...)
	}
	if len(r.flight) > 1 {
		ctx = context.WithoutCancel(ctx)
		if !r.deadline.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, r.deadline)
			defer cancel()
		}
	}
	var answers []A
	if ctx.Err() == nil {
		answers = g.Send(ctx, items)
	} else {
		answers = slices.Repeat([]A{g.Unsent(Unsent(ctx))}, n)
	}
	for _, o := range r.flight {
		o.answers, answers = answers[:len(o.items)], answers[len(o.items):]
		if o != r {
			o.turn <- struct{}{}
		}
	}
	g.finishFlight()
}

// finishFlight ends a trip and lets a waiting request make the next one.
func (g *Group[P, A]) finishFlight() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 || g.inFlight > sharedAtOnce {
		g.inFlight--
		return
	}
	g.startFlight()
}
