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
func (t *tenure) Take(n int, within time.Duration) ([]redisconn.Entry, error) {
	t.timed()
	t.share.end()
	t.leave()
	if t.holding != holdsNothing {
		t.flush() // else what is done would be blamed for what others begin now; a loss is seen below
	}
	t.letGo()
	for {
		entries, err := t.turn(n, within)
		switch {
		case err != nil:
			t.yield()
			t.running.Store(monotime.Now()) // what stands behind the user's loop
			return nil, err
		case len(entries) > 0:
			t.timing.taken = true
			return entries, nil
		}
		t.leave()
	}
}

// timed notes the end of an iteration.
func (t *tenure) timed() {
	if t.timing.on() {
		t.timing.end(monotime.Now())
	}
}

// Next is Source.Next.
func (t *tenure) Next(done string, checked bool) (e redisconn.Entry, ok bool) {
	if t.stale.Load() || t.careful || t.deaths.event != "" || !t.retries.Idle() || t.retries.Most(1) == 0 || t.retries.Runs(done) || !checked && t.held.Load() {
		t.Ack([]string{done}, false)
		return redisconn.Entry{}, false
	}
	var now, check int64
	if checked || t.timing.on() {
		now = monotime.Now()
		t.timing.end(now)
		t.timing.done(done, now)
	}
	t.letGo()
	if checked {
		check = now
	}
	t.processed.Add(1)
	e, ok, tell, hurry := t.buffer.Next(done, check)
	if ok {
		t.timing.taken, t.timing.given = true, checked
	} else {
		t.leave() // and not before: the next iteration enters where this one left
	}
	t.tellAcker(tell, hurry)
	return e, ok
}

// turn is one try of Take; without entries and error it is time for another one.
func (t *tenure) turn(n int, within time.Duration) ([]redisconn.Entry, error) {
	if t.stale.Load() && t.stale.Swap(false) {
		if err := t.retries.Load(); err != nil {
			return nil, err
		}
	}
	if t.retries.Idle() && !t.careful && t.deaths.event == "" {
		return t.buffer.Await(t.retries.Most(n), within, -1)
	}
	if !t.Live() {
		return nil, io.EOF
	}
	now := monotime.Now()
	if !t.enter(now) {
		t.yield()
		t.doze(-1)
		return nil, nil
	}
	asked, fresh := false, t.share.fresh(now) && !t.retries.Blocked()
	e, ok, err := t.retries.Next(fresh, func(decides bool) bool {
		asked = true
		if decides {
			return t.claim(holdsAlone)
		}
		return t.claim(holdsTurn)
	})
	if err != nil || ok {
		if t.retries.Retrying() {
			t.share.begin(now)
		}
		return []redisconn.Entry{e}, err
	}
	t.leave()
	t.letGo() // it was for an event that is not there any more
	if !asked {
		t.alone.forget(t)
	}
	wait := t.retries.Wait()
	if t.retries.Blocked() {
		t.doze(wait)
		return nil, nil
	}
	n = t.retries.Most(n)
	if t.careful || t.retries.Looking() || t.deaths.n > 1 && t.deaths.event != "" {
		n, within = 1, 0
	}
	if fresh {
		wait = t.share.patience(now)
	}
	entries, err := t.buffer.Await(n, within, wait)
	if err != nil || len(entries) == 0 {
		t.share.pass()
		return nil, err
	}
	return t.admit(entries)
}

// admit lets entries pass that may be processed now.
//
// Those that the owner before was given, and did not end cleanly, may have ended
// its worker. They run with the acks before them confirmed: then the oldest
// pending entry is the one that runs, should it end this worker too.
func (t *tenure) admit(entries []redisconn.Entry) ([]redisconn.Entry, error) {
	t.careful = t.careful && t.repeated(entries[0].ID)
	if t.careful && !t.flush() {
		return nil, io.EOF
	}
	ok, err := t.meet(entries[0].ID)
	if err != nil {
		return nil, err
	}
	if !ok || t.careful && !t.claim(holdsShare) {
		t.buffer.Untake(entries)
		t.share.pass()
		t.leave()
		t.doze(t.retries.Wait())
		return nil, nil
	}
	rest, acks, err := t.retries.Sift(entries)
	t.finish(acks, false)
	if len(rest) == 0 {
		t.letGo()
		t.share.parked(len(entries), monotime.Now())
	} else {
		t.share.iteration()
	}
	return rest, err
}

func (t *tenure) claim(h hold) bool {
	if t.holding >= h {
		return true
	}
	if !t.alone.claim(t, h) {
		return false
	}
	t.holding = h
	return true
}

// letGo gives back what was claimed, when no event of the tenure runs.
func (t *tenure) letGo() {
	if t.holding != holdsNothing {
		t.alone.release(t)
		t.holding = holdsNothing
	}
}

// yield is letGo for a tenure that does not go on by itself: others need not wait
// for its turn either.
func (t *tenure) yield() {
	t.letGo()
	t.alone.forget(t)
}

// doze waits until something changes, at most that long; -1 is no bound.
func (t *tenure) doze(most time.Duration) {
	if most < 0 {
		<-t.buffer.Ready()
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-t.buffer.Ready():
	case <-timer.C:
	}
}

// Untake gives back the last entries that Take returned: they come again.
func (t *tenure) Untake(entries []redisconn.Entry) { t.buffer.Untake(entries) }

// Attempts is Source.Attempts.
func (t *tenure) Attempts(id string) int { return t.retries.Attempts(id) }

// Ack is Source.Ack.
func (t *tenure) Ack(ids []string, gap bool) {
	t.processed.Add(int64(len(ids)))
	if t.timing.on() {
		now := monotime.Now()
		for _, id := range ids {
			t.timing.done(id, now)
		}
	}
	if t.retries.Runs(ids[0]) {
		t.countProcessed()
		// The error is the end of the tenure, which the next Take tells.
		_ = t.retries.Done()
		return
	}
	t.finish(ids, gap)
}

// finish passes entries that need no more processing to the acker.
func (t *tenure) finish(ids []string, gap bool) {
	if len(ids) == 0 {
		return
	}
	t.tellAcker(t.buffer.Done(ids, gap))
}

// tellAcker passes on what the acker is to be told.
func (t *tenure) tellAcker(tell, hurry bool) {
	if tell {
		t.tell(t)
	}
	if hurry {
		t.hurryAcks()
	}
}

// countProcessed adds what was processed to the worker's counter, which all its
// partitions share: adding each event there would have the processors wait for each
// other.
func (t *tenure) countProcessed() {
	if n := t.processed.Swap(0); n > 0 {
		t.count.Processed.Add(n)
	}
}

// Fail is Source.Fail.
func (t *tenure) Fail(ctx context.Context, failures []retryqueue.Failure) error {
	t.count.Failed.Add(int64(len(failures)))
	t.timed()
	t.share.end()
	t.leave()
	acks, err := t.retries.Fail(ctx, failures)
	t.finish(acks, false)
	return err
}

// Interrupted is Source.Interrupted.
func (t *tenure) Interrupted() {
	// The error is the end of the tenure: then the attempt counts.
	_ = t.retries.Interrupted()
}
