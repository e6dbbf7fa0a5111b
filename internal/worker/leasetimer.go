package worker

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// leaseTimer say when the watch over a member's leases looks at them next.
type leaseTimer struct {
	next   atomic.Int64 // by monotime
	sooner chan struct{}
}

func newLeaseTimer() *leaseTimer {
	l := &leaseTimer{sooner: make(chan struct{}, 1)}
	l.next.Store(math.MaxInt64)
	return l
}

// expect has the watch look when a new lease ends.
func (l *leaseTimer) expect(end int64) {
	if end >= l.next.Load() {
		return // as nearly always: leases that were refreshed since end later
	}
	select {
	case l.sooner <- struct{}{}:
	default:
	}
}

// watchLeases loses every ownership whose lease ends without a refresh. The consumers
// compare the clock themselves before each delivery; this ends what runs. One
// goroutine does it for all: a refresh is one for all of them, too.
func (m *member) watchLeases(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, p := range m.owned() { // there should be none
				m.lose(p, errLeaseEnded) // no heartbeat refreshes it any more
			}
			return
		case <-timer.C:
		case <-m.leases.sooner:
		}
		m.leases.next.Store(math.MaxInt64) // for those that come meanwhile
		next := int64(math.MaxInt64)
		for _, p := range m.owned() {
			end := p.lease.Load()
			if end <= monotime.Now() {
				m.lose(p, errLeaseEnded)
				continue
			}
			next = min(next, end)
		}
		m.leases.next.Store(next)
		if next == math.MaxInt64 {
			timer.Stop()
		} else {
			timer.Reset(time.Duration(next - monotime.Now()))
		}
	}
}
