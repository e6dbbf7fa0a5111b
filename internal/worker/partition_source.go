package worker

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/store"
)

// A partitionSource is the Source of the consumer of one ownership. Only the consumer's
// goroutine uses its fields, but for stale and notified.
type partitionSource struct {
	p        *partition
	given    string // entries up to here were given to an earlier owner
	retries  *retryqueue.Queue
	parked   *redisStore
	timing   timing
	careful  bool // what comes next may have ended the owner before
	turn     turn
	share    share
	deaths   deaths
	ends     ends
	stale    stale
	notified signal // an operator changed something; one token
}

// Take is Source.Take: a parked event whose time has come, else new ones.
func (s *partitionSource) Take(n int, within time.Duration) ([]redisconn.Entry, error) {
	s.timing.endNow()
	s.share.end()
	s.p.leave()
	if s.deaths.begun && s.p.staging.stuck() {
		s.parked.survived(s.p.staging.suspect, s.p.staging.suspect, nil)
		s.deaths.begun = false
	}
	s.p.reachFor(n)
	if s.turn.held != notIsolated {
		s.p.flush() // else done events could be blamed for what others begin now; a loss is seen below
	}
	s.turn.letGo()
	s.p.awaitRoom()
	for {
		entries, err := s.nextTurn(n, within)
		switch {
		case err != nil:
			s.turn.yield()
			s.p.running.Store(monotime.Now()) // the code behind the user's loop
			return nil, err
		case len(entries) > 0:
			s.timing.taken = true
			return entries, nil
		case s.ends.come():
			return nil, nil
		}
		s.p.leave()
	}
}

func (s *partitionSource) Next(done string, checked bool) (e redisconn.Entry, ok bool) {
	if s.stale.Load() != 0 || s.careful || s.deaths.event != "" || !s.retries.Idle() || s.retries.Most(1) == 0 || s.retries.Runs(done) || !checked && s.p.held.Load() || s.p.staging.full() || s.p.outbox.full() {
		s.Ack([]string{done})
		return redisconn.Entry{}, false
	}
	var now, check int64
	if checked || s.timing.on() {
		now = monotime.Now()
		s.timing.end(now)
		s.timing.done(done, now)
	}
	s.turn.letGo()
	if checked {
		check = now
	}
	s.p.processed.add(1)
	var tell, hurry bool
	next := func() { e, ok, tell, hurry = s.p.buffer.Next(done, check) }
	if s.p.staging != nil {
		s.p.staging.done(done, next)
	} else {
		next()
	}
	if ok {
		s.timing.taken, s.timing.given = true, checked
	} else {
		s.p.leave() // and not before: the next iteration enters where this one left
	}
	s.tellAcker(tell, hurry)
	return e, ok
}

// stale is why what is parked has to be read (again), if it has to be.
type stale struct{ atomic.Uint32 }

const (
	atFirst         uint32 = 1 << iota // there is some
	operatorsChange                    // there may be others, or in other states
	serversChange                      // the server may be one that has forgotten something
)

func (s *stale) read(parked *retryqueue.Queue, p *partition) (err error) {
	why := s.Swap(0)
	if why&serversChange != 0 && why&atFirst == 0 {
		err = parked.Compare()
	}
	if err == nil && why&(atFirst|operatorsChange) != 0 {
		err = parked.Load()
	}
	if errors.Is(err, retryqueue.ErrForgotten) {
		p.host.repeat(p, err)
		return io.EOF
	}
	return err
}

// nextTurn is one try of Take. Without entries and error Take tries again.
func (s *partitionSource) nextTurn(n int, within time.Duration) ([]redisconn.Entry, error) {
	if s.stale.Load() != 0 {
		if err := s.stale.read(s.retries, s.p); err != nil {
			return nil, err
		}
	}
	if s.retries.Idle() && !s.careful && s.deaths.event == "" {
		return s.p.buffer.Await(s.retries.Most(n), within, s.ends.in())
	}
	if !s.Live() {
		return nil, io.EOF
	}
	now := monotime.Now()
	if !s.p.enter(now) {
		s.turn.yield()
		doze(s.p.buffer.Ready(), -1)
		return nil, nil
	}
	asked, fresh := false, s.share.fresh(now) && !s.retries.Blocked()
	e, ok, err := s.retries.Next(fresh, func(decides bool) bool {
		asked = true
		if decides {
			return s.turn.claim(isolationExclusive)
		}
		return s.turn.claim(isolationTurn)
	})
	if err != nil || ok {
		if s.retries.Retrying() {
			s.share.begin(now)
		}
		return []redisconn.Entry{e}, err
	}
	s.p.leave()
	s.turn.letGo() // its event is gone, or may not begin yet
	if s.ends.first {
		return nil, nil
	}
	if !asked {
		s.turn.forget()
	}
	wait := s.retries.Wait()
	if s.retries.Blocked() {
		doze(s.p.buffer.Ready(), wait)
		return nil, nil
	}
	n = s.retries.Most(n)
	if s.careful || s.retries.Looking() || s.deaths.n > 1 && s.deaths.event != "" {
		n, within = 1, 0
	}
	if fresh {
		wait = s.share.patience(now)
	}
	entries, err := s.p.buffer.Await(n, within, s.ends.orIn(wait))
	if err != nil || len(entries) == 0 {
		s.share.pass()
		return nil, err
	}
	return s.admit(entries)
}

// admit lets entries pass that may be processed now.
//
// If the owner before did not end cleanly, one of its entries may have ended its worker. Such
// entries run with the acks before them confirmed. If one of them ends this worker too, the
// oldest pending entry is the one that ran.
func (s *partitionSource) admit(entries []redisconn.Entry) ([]redisconn.Entry, error) {
	if s.ends.before(entries[0].ID) {
		s.p.buffer.Untake(entries)
		s.share.pass()
		return nil, nil
	}
	s.careful = s.careful && s.repeated(entries[0].ID)
	if s.careful && !s.p.flush() {
		return nil, io.EOF
	}
	ok, err := s.meet(entries[0].ID)
	if err != nil {
		return nil, err
	}
	if !ok || s.careful && !s.turn.claim(isolationShared) {
		s.p.buffer.Untake(entries)
		s.share.pass()
		s.p.leave()
		doze(s.p.buffer.Ready(), s.retries.Wait())
		return nil, nil
	}
	rest, acks, err := s.retries.Sift(entries)
	s.finish(acks)
	if first := s.retries.FirstUnparked(); s.p.staging != nil && first != "" {
		// Changes are committed with a position: what is behind an event that waits for room cannot be.
		n, _ := slices.BinarySearchFunc(rest, first, func(e redisconn.Entry, id string) int { return entryid.Compare(e.ID, id) })
		s.p.buffer.Untake(rest[n:])
		rest = rest[:n]
	}
	if len(rest) == 0 {
		s.turn.letGo()
		s.share.parked(len(entries), monotime.Now())
	} else {
		s.share.iteration()
	}
	return rest, err
}

// doze waits until something changes, at most that long; -1 is no bound.
func doze(ready <-chan struct{}, most time.Duration) {
	if most < 0 {
		<-ready
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ready:
	case <-timer.C:
	}
}

func (s *partitionSource) Untake(entries []redisconn.Entry) { s.p.buffer.Untake(entries) }

// Prior is Source.Prior. It counts entries given to an earlier owner, each once, except parked
// ones, whose attempts are counted elsewhere, and which may be far ahead.
func (s *partitionSource) Prior(id string) Prior {
	prior := Prior{Redelivered: s.repeated(id), Attempts: s.retries.Attempts(id)}
	if s.deaths.decided(id) {
		prior.Deadly = s.deaths.err()
	}
	if prior.Redelivered && !s.retries.Runs(id) && (s.timing.counted == "" || entryid.Compare(id, s.timing.counted) > 0) {
		s.timing.counted = id
		s.p.count.Repeated.Add(1)
	}
	return prior
}

// repeated reports whether an earlier owner was given this entry.
func (s *partitionSource) repeated(id string) bool {
	return s.given != "" && entryid.Compare(id, s.given) <= 0
}

func (s *partitionSource) Live() bool { return !s.p.life.isEnding() && s.p.lease.holds() }

// Holds is Source.Holds. It may be called long after Take, since middleware waits between two
// attempts. If the ownership ends while the partition is paused, the context ends at once: the
// taken entries did not begin, and middleware must not take that for a failure. A paused
// partition gives back its turn to run alone, so that no other partition waits for it.
func (s *partitionSource) Holds() bool {
	claimed := s.turn.held
	for {
		now := monotime.Now()
		if !s.p.enter(now) {
			s.turn.yield()
		} else if s.reclaimTurn(claimed) {
			s.timing.begin()
			return s.p.leaseValidAt(now)
		}
		if s.p.life.isEnding() {
			s.turn.forget()
			s.p.cancel(s.p.host.endCause())
			return false
		}
		<-s.p.buffer.Ready()
		s.share.waited(monotime.Now() - now)
	}
}

// reclaimTurn claims the turn that was given back during a pause.
func (s *partitionSource) reclaimTurn(h isolation) bool {
	if s.turn.claim(h) {
		return true
	}
	s.p.leave()
	return false
}

func (s *partitionSource) Ack(ids []string) {
	s.p.processed.add(int64(len(ids)))
	if s.timing.on() {
		now := monotime.Now()
		for _, id := range ids {
			s.timing.done(id, now)
		}
	}
	if s.retries.Runs(ids[0]) {
		s.p.processed.flush()
		// An error is the end of the ownership, which the next Take returns.
		_ = s.retries.Done()
		return
	}
	s.finish(ids)
}

// finish passes entries that need no more processing to the acker.
func (s *partitionSource) finish(ids []string) {
	if len(ids) == 0 {
		return
	}
	if s.p.staging == nil {
		s.tellAcker(s.p.buffer.Done(ids))
		return
	}
	s.p.staging.done(ids[len(ids)-1], func() { s.tellAcker(s.p.buffer.Done(ids)) })
}

func (s *partitionSource) Reach(ctx context.Context, to store.StreamPartition) error {
	if s.p.outbox == nil || to.Partition == s.p.keys.Number {
		return nil
	}
	return s.p.outbox.reach(ctx, to)
}

func (s *partitionSource) tellAcker(tell, hurry bool) {
	if tell {
		s.p.acks.mark(s.p)
	}
	if hurry {
		s.p.acks.hurry()
	}
}

func (s *partitionSource) Fail(ctx context.Context, failures []retryqueue.Failure) error {
	s.p.count.Failed.Add(int64(len(failures)))
	s.timing.endNow()
	s.share.end()
	s.p.leave()
	acks, err := s.retries.Fail(ctx, failures)
	s.finish(acks)
	return err
}

func (s *partitionSource) Ignored(ctx context.Context, n int, err error) {
	s.timing.endNow()
	if n == 0 { // the function has failed before it asked for an event
		s.p.leave()
		s.turn.yield()
	}
	s.p.count.Ignored.Add(int64(n))
	s.p.log.WarnContext(ctx, "error ignored", "events", n, "err", err, "help", help.ErrorIgnored)
}

func (s *partitionSource) Interrupted() {
	// After an error the ownership has ended, and the attempt counts.
	_ = s.retries.Interrupted()
}
