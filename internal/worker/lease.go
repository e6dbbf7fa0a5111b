package worker

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// A lease is the time until which a partition is certainly ours. Heartbeats extend it, and any
// goroutine may check it.
type lease struct {
	end atomic.Int64 // by monotime
}

func (l *lease) holds() bool { return l.holdsAt(monotime.Now()) }

func (l *lease) holdsAt(now int64) bool { return now < l.end.Load() }

// leaseDeadline returns the end of a lease requested at sent: a margin before the server's
// expiry, for clocks that run at different speeds.
func leaseDeadline(sent int64, expiry time.Duration) int64 { return sent + int64(expiry-expiry/5) }

// A leaseWatch loses every ownership of a member whose lease ends without a refresh.
type leaseWatch struct {
	m      *member
	next   atomic.Int64 // when run looks at the leases next, by monotime
	sooner signal
}

func newLeaseWatch(m *member) *leaseWatch {
	w := &leaseWatch{m: m, sooner: newSignal()}
	w.next.Store(math.MaxInt64)
	return w
}

func (w *leaseWatch) expect(end int64) {
	if end < w.next.Load() { // seldom: leases that were refreshed since end later
		w.sooner.set()
	}
}

// run watches until ctx ends. Consumers check the clock before each delivery; run ends functions
// in progress. One goroutine watches all leases, since one refresh extends all of them.
func (w *leaseWatch) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, p := range w.m.ownerships.owned() { // normally none
				w.m.releases.lose(p, errLeaseEnded) // no heartbeat refreshes it any more
			}
			return
		case <-timer.C:
		case <-w.sooner:
		}
		w.next.Store(math.MaxInt64) // for leases that begin meanwhile
		next := int64(math.MaxInt64)
		for _, p := range w.m.ownerships.owned() {
			end := p.lease.end.Load()
			if end <= monotime.Now() {
				w.m.releases.lose(p, errLeaseEnded)
				continue
			}
			next = min(next, end)
		}
		w.next.Store(next)
		if next == math.MaxInt64 {
			timer.Stop()
		} else {
			timer.Reset(time.Duration(next - monotime.Now()))
		}
	}
}
