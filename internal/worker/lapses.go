package worker

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// lapses say when the watch over an incarnation's leases looks at them next.
type lapses struct {
	next   atomic.Int64 // by monotime
	sooner chan struct{}
}

func newLapses() *lapses {
	l := &lapses{sooner: make(chan struct{}, 1)}
	l.next.Store(math.MaxInt64)
	return l
}

// expect has the watch look when a new lease ends.
func (l *lapses) expect(end int64) {
	if end >= l.next.Load() {
		return // as nearly always: leases that were refreshed since end later
	}
	select {
	case l.sooner <- struct{}{}:
	default:
	}
}

// watchLeases loses every tenure whose lease ends without a refresh. The consumers
// compare the clock themselves before each delivery; this ends what runs. One
// goroutine does it for all: a refresh is one for all of them, too.
func (i *incarnation) watchLeases(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, t := range i.owned() { // there should be none
				i.lose(t, errLeaseEnded) // nobody refreshes it any more
			}
			return
		case <-timer.C:
		case <-i.lapses.sooner:
		}
		i.lapses.next.Store(math.MaxInt64) // for those that come meanwhile
		next := int64(math.MaxInt64)
		for _, t := range i.owned() {
			end := t.lease.Load()
			if end <= monotime.Now() {
				i.lose(t, errLeaseEnded)
				continue
			}
			next = min(next, end)
		}
		i.lapses.next.Store(next)
		if next == math.MaxInt64 {
			timer.Stop()
		} else {
			timer.Reset(time.Duration(next - monotime.Now()))
		}
	}
}
