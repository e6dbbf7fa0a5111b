package worker

import (
	"context"
	"io"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
)

// Take is Source.Take: a parked event whose time has come, else new ones.
func (p *partition) Take(n int, within time.Duration) ([]redisconn.Entry, error) {
	p.timed()
	p.loop.share.end()
	p.leave()
	if p.loop.turn != notIsolated {
		p.flush() // else what is done would be blamed for what others begin now; a loss is seen below
	}
	p.letGo()
	for {
		entries, err := p.nextTurn(n, within)
		switch {
		case err != nil:
			p.yieldTurn()
			p.running.Store(monotime.Now()) // what stands behind the user's loop
			return nil, err
		case len(entries) > 0:
			p.timing.taken = true
			return entries, nil
		}
		p.leave()
	}
}

// timed notes the end of an iteration.
func (p *partition) timed() {
	if p.timing.on() {
		p.timing.end(monotime.Now())
	}
}

// Next is Source.Next.
func (p *partition) Next(done string, checked bool) (e redisconn.Entry, ok bool) {
	if p.stale.Load() || p.loop.careful || p.loop.deaths.event != "" || !p.retries.Idle() || p.retries.Most(1) == 0 || p.retries.Runs(done) || !checked && p.held.Load() {
		p.Ack([]string{done})
		return redisconn.Entry{}, false
	}
	var now, check int64
	if checked || p.timing.on() {
		now = monotime.Now()
		p.timing.end(now)
		p.timing.done(done, now)
	}
	p.letGo()
	if checked {
		check = now
	}
	p.processed.Add(1)
	e, ok, tell, hurry := p.buffer.Next(done, check)
	if ok {
		p.timing.taken, p.timing.given = true, checked
	} else {
		p.leave() // and not before: the next iteration enters where this one left
	}
	p.tellAcker(tell, hurry)
	return e, ok
}

// nextTurn is one try of Take; without entries and error it is time for another one.
func (p *partition) nextTurn(n int, within time.Duration) ([]redisconn.Entry, error) {
	if p.stale.Load() && p.stale.Swap(false) {
		if err := p.retries.Load(); err != nil {
			return nil, err
		}
	}
	if p.retries.Idle() && !p.loop.careful && p.loop.deaths.event == "" {
		return p.buffer.Await(p.retries.Most(n), within, -1)
	}
	if !p.Live() {
		return nil, io.EOF
	}
	now := monotime.Now()
	if !p.enter(now) {
		p.yieldTurn()
		p.doze(-1)
		return nil, nil
	}
	asked, fresh := false, p.loop.share.fresh(now) && !p.retries.Blocked()
	e, ok, err := p.retries.Next(fresh, func(decides bool) bool {
		asked = true
		if decides {
			return p.claimTurn(isolationExclusive)
		}
		return p.claimTurn(isolationTurn)
	})
	if err != nil || ok {
		if p.retries.Retrying() {
			p.loop.share.begin(now)
		}
		return []redisconn.Entry{e}, err
	}
	p.leave()
	p.letGo() // it was for an event that is not there any more
	if !asked {
		p.isolation.forget(p)
	}
	wait := p.retries.Wait()
	if p.retries.Blocked() {
		p.doze(wait)
		return nil, nil
	}
	n = p.retries.Most(n)
	if p.loop.careful || p.retries.Looking() || p.loop.deaths.n > 1 && p.loop.deaths.event != "" {
		n, within = 1, 0
	}
	if fresh {
		wait = p.loop.share.patience(now)
	}
	entries, err := p.buffer.Await(n, within, wait)
	if err != nil || len(entries) == 0 {
		p.loop.share.pass()
		return nil, err
	}
	return p.admit(entries)
}

// admit lets entries pass that may be processed now.
//
// Those that the owner before was given, and did not end cleanly, may have ended
// its worker. They run with the acks before them confirmed: then the oldest
// pending entry is the one that runs, should it end this worker too.
func (p *partition) admit(entries []redisconn.Entry) ([]redisconn.Entry, error) {
	p.loop.careful = p.loop.careful && p.repeated(entries[0].ID)
	if p.loop.careful && !p.flush() {
		return nil, io.EOF
	}
	ok, err := p.meet(entries[0].ID)
	if err != nil {
		return nil, err
	}
	if !ok || p.loop.careful && !p.claimTurn(isolationShared) {
		p.buffer.Untake(entries)
		p.loop.share.pass()
		p.leave()
		p.doze(p.retries.Wait())
		return nil, nil
	}
	rest, acks, err := p.retries.Sift(entries)
	p.finish(acks)
	if len(rest) == 0 {
		p.letGo()
		p.loop.share.parked(len(entries), monotime.Now())
	} else {
		p.loop.share.iteration()
	}
	return rest, err
}

func (p *partition) claimTurn(h isolation) bool {
	if p.loop.turn >= h {
		return true
	}
	if !p.isolation.claim(p, h) {
		return false
	}
	p.loop.turn = h
	return true
}

// letGo gives back what was claimed, when no event of the ownership runs.
func (p *partition) letGo() {
	if p.loop.turn != notIsolated {
		p.isolation.release(p)
		p.loop.turn = notIsolated
	}
}

// yieldTurn is letGo for an ownership that does not go on by itself: others need not wait
// for its turn either.
func (p *partition) yieldTurn() {
	p.letGo()
	p.isolation.forget(p)
}

// doze waits until something changes, at most that long; -1 is no bound.
func (p *partition) doze(most time.Duration) {
	if most < 0 {
		<-p.buffer.Ready()
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.buffer.Ready():
	case <-timer.C:
	}
}

// Untake gives back the last entries that Take returned: they come again.
func (p *partition) Untake(entries []redisconn.Entry) { p.buffer.Untake(entries) }

// Ack is Source.Ack.
func (p *partition) Ack(ids []string) {
	p.processed.Add(int64(len(ids)))
	if p.timing.on() {
		now := monotime.Now()
		for _, id := range ids {
			p.timing.done(id, now)
		}
	}
	if p.retries.Runs(ids[0]) {
		p.countProcessed()
		// The error is the end of the ownership, which the next Take tells.
		_ = p.retries.Done()
		return
	}
	p.finish(ids)
}

// finish passes entries that need no more processing to the acker.
func (p *partition) finish(ids []string) {
	if len(ids) == 0 {
		return
	}
	p.tellAcker(p.buffer.Done(ids))
}

// tellAcker passes on what the acker is to be told.
func (p *partition) tellAcker(tell, hurry bool) {
	if tell {
		p.host.markDirty(p)
	}
	if hurry {
		p.host.flushAcks()
	}
}

// countProcessed adds what was processed to the worker's counter, which all its
// partitions share: adding each event there would have the processors wait for each
// other.
func (p *partition) countProcessed() {
	if n := p.processed.Swap(0); n > 0 {
		p.count.Processed.Add(n)
	}
}

// Fail is Source.Fail.
func (p *partition) Fail(ctx context.Context, failures []retryqueue.Failure) error {
	p.count.Failed.Add(int64(len(failures)))
	p.timed()
	p.loop.share.end()
	p.leave()
	acks, err := p.retries.Fail(ctx, failures)
	p.finish(acks)
	return err
}

// Interrupted is Source.Interrupted.
func (p *partition) Interrupted() {
	// The error is the end of the ownership: then the attempt counts.
	_ = p.retries.Interrupted()
}
