package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
)

// ackPause is the time between two rounds of acks: without it thousands of events per
// second would take as many requests.
const ackPause = 4 * time.Millisecond

// An acker acks processed entries in rounds of all partitions that have some. Acks that arrive during a round, or within ackPause of its begin, go with the next
// one: an idle acker sends at once, a busy one sends many together.
type acker struct {
	x      *member
	wake   signal
	sooner signal

	mu    sync.Mutex
	dirty []*partition
}

func newAcker(m *member) *acker {
	return &acker{x: m, wake: newSignal(), sooner: newSignal()}
}

// hurry ends the pause between two rounds for a partition that waits for an ack, or soon will.
func (a *acker) hurry() { a.sooner.set() }

// mark notes that an ownership has acks to send.
func (a *acker) mark(p *partition) {
	a.mu.Lock()
	a.dirty = append(a.dirty, p)
	a.mu.Unlock()
	a.wake.set()
}

func (a *acker) run(ctx context.Context) {
	var work []*partition
	retry := outage.New(a.x.log, "acks", &a.x.count.Errors)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next := monotime.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		if left := time.Duration(next - monotime.Now()); left > 0 {
			timer.Reset(left)
			select {
			case <-ctx.Done():
				return
			case <-a.sooner:
			case <-timer.C:
			}
		}
		next = monotime.Now() + int64(ackPause)
		a.mu.Lock()
		work, a.dirty = a.dirty, work[:0]
		a.mu.Unlock()
		if err := a.send(ctx, work); err != nil {
			retry.Wait(ctx, err)
		} else {
			retry.Recovered()
		}
	}
}

// send sends one round of acks, and returns the last error after which acks are sent again. Those behind it are for the next round.
func (a *acker) send(ctx context.Context, work []*partition) (failed error) {
	for n := a.x.course.atOnce(len(work)); len(work) > 0 && failed == nil; {
		some := work[:min(n, len(work))]
		work = work[len(some):]
		failed = a.trip(ctx, some)
	}
	for _, p := range work {
		a.mark(p)
	}
	return failed
}

// trip sends the acks of some partitions in one round trip.
func (a *acker) trip(ctx context.Context, work []*partition) (failed error) {
	var live []*partition
	for _, p := range work {
		p.processed.flush()
		// After the ownership nothing is sent: another owner may process the entries again.
		if p.life.isLost() {
			continue
		}
		if !p.lease.holds() {
			// Lost for good, since these acks are not marked again.
			a.x.releases.lose(p, errLeaseEnded)
			continue
		}
		live = append(live, p)
	}
	of, errs := a.x.course.confirm(ctx, live)
	for i, p := range of {
		n, more := p.answered(errs[i])
		switch err := errs[i]; {
		case err == nil:
			a.x.count.Acked.Add(int64(n))
			a.x.w.trimmer.mark(p)
			if more || p.staging.waits() {
				a.mark(p)
			}
		case errors.Is(err, errHeld):
			a.mark(p) // it may be held no longer
		case errors.Is(err, store.ErrFenced):
			a.x.count.Fenced.Add(1)
			a.x.releases.suspect(p)
		default:
			a.mark(p)
			failed = err
		}
	}
	return failed
}

// answered ends a round trip with acks of a partition. It returns how many were confirmed, and whether more are to be sent.
func (p *partition) answered(err error) (n int, more bool) {
	defer p.staging.free()
	if err != nil {
		p.buffer.AcksFailed()
		return 0, false
	}
	return p.buffer.AcksConfirmed()
}
