package groupcommit

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// Trips sends single items of very many short goroutines, as a Group does, but those of several in goroutines of
// its own: these grow their stacks for a trip once, not each caller. Where little is going on, a caller that finds no trip
// under way makes its own.
//
// The fields are set before the first call of Do, which may be called concurrently.
type Trips[P any] struct {
	Send  func(context.Context, []P) // each item keeps what became of it
	Bytes func(P) int
	Limit Load // of one trip

	mu             sync.Mutex
	queue          []waiting[P]
	inFlight       int // trips under way
	recentlyShared int // above zero where trips were shared lately
}

type waiting[P any] struct {
	item P
	done chan struct{} // closed behind the trip
}

// Do returns when the item was sent, under ctx if it went alone.
func (t *Trips[P]) Do(ctx context.Context, item P) {
	t.mu.Lock()
	if t.inFlight == 0 && t.recentlyShared == 0 {
		t.inFlight = 1
		t.mu.Unlock()
		t.Send(ctx, []P{item})
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.queue) > 0 {
			go t.travel()
		} else {
			t.inFlight--
		}
		return
	}
	w := waiting[P]{item, make(chan struct{})}
	t.queue = append(t.queue, w)
	if t.inFlight < sharedAtOnce {
		t.inFlight++
		go t.travel()
	}
	t.mu.Unlock()
	<-w.done
}

// travel makes trips until no item waits for one.
func (t *Trips[P]) travel() {
	for {
		some := t.next()
		if len(some) == 0 {
			return
		}
		items := make([]P, len(some))
		for i, w := range some {
			items[i] = w.item
		}
		t.Send(context.Background(), items)
		for _, w := range some {
			close(w.done)
		}
	}
}

// next returns the items of the next trip. Without any the trips are over.
func (t *Trips[P]) next() []waiting[P] {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Callers whose trip just ended may be about to call again. Without any, there is no pause.
	for n := -1; n < len(t.queue); {
		n = len(t.queue)
		t.mu.Unlock()
		runtime.Gosched()
		t.mu.Lock()
	}
	n, all := 0, Load{}
	for n < len(t.queue) {
		if all = all.plus(Load{1, t.Bytes(t.queue[n].item)}); n > 0 && !all.within(t.Limit) {
			break
		}
		n++
	}
	switch {
	case n == 0:
		t.inFlight--
	case n > 1:
		t.recentlyShared = sharedLasts
	default:
		t.recentlyShared = max(t.recentlyShared-1, 0)
	}
	some := slices.Clone(t.queue[:n])
	t.queue = slices.Delete(t.queue, 0, n)
	return some
}
