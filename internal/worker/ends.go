package worker

import (
	"context"
	"math"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
)

// Rows that end call a function between two events, in the order of time. Where no event comes, the server's clock says that the
// time has come, if nothing waits there that came before.

const (
	endsPause = 100 * time.Millisecond // between two looks, however fast rows end
	endsAgain = time.Second            // after a look that found events which wait
	endsMost  = time.Hour              // clocks may have been stepped by then
)

// An ends knows when rows of a partition end. The consumer's goroutine uses it.
type ends struct {
	s     *partitionSource
	look  int64 // when to look again whether rows have ended, at the earliest, by monotime
	first bool  // rows end before the next event
}

// in returns how long no row ends that a function is called for, -1 for ever, or until nothing is parked: time stands still
// until then, unless there are events.
func (e *ends) in() time.Duration {
	s := e.s
	if s.p.staging == nil || !s.retries.Idle() {
		return -1
	}
	next := s.p.staging.rows.NextEnd()
	if next == math.MaxInt64 {
		return -1
	}
	pause := max(time.Duration(e.look-monotime.Now()), 0)
	if now := s.parked.Now(); next > now {
		return max(time.Duration(min(next-now, endsMost.Milliseconds()))*time.Millisecond, pause)
	}
	return pause
}

// orIn returns the shorter one of a wait and in; -1 is for ever.
func (e *ends) orIn(wait time.Duration) time.Duration {
	if in := e.in(); in >= 0 && (wait < 0 || in < wait) {
		return in
	}
	return wait
}

// come reports whether rows have ended where no event waits, and says until when the partition is quiet.
func (e *ends) come() bool {
	s := e.s
	if e.first {
		e.first = false
		return true
	}
	if e.in() != 0 || !s.Live() {
		return false
	}
	rows := s.p.staging.rows
	if rows.NextEnd() == math.MinInt64 {
		_, _, _ = rows.Ending(0) // finds out what ends first; an error is the end of the ownership
		return false
	}
	e.look = monotime.Now() + int64(endsPause)
	if !s.p.flush() {
		return false
	}
	var now int64
	var idle bool
	err := s.parked.persistAs("rows", func(ctx context.Context) (err error) {
		now, idle, err = s.parked.i.w.client.Idle(ctx, s.p.keys, s.p.claim)
		return err
	})
	switch {
	case err != nil:
		return false
	case !idle:
		e.look = monotime.Now() + int64(endsAgain)
		return false
	}
	s.parked.offset = now*int64(time.Millisecond) - monotime.Now()
	rows.Quiet(now)
	return rows.NextEnd() <= now
}

// before reports whether rows end before an event, of which something is stored when it begins. They end first then, without it: what
// ends the process there is not counted as the event's doing.
func (e *ends) before(id string) bool {
	s := e.s
	if s.p.staging == nil {
		return false
	}
	rows := s.p.staging.rows
	by := max(rows.Now(), entryid.Millis(id))
	if rows.NextEnd() > by {
		return false
	}
	rows.Quiet(by)
	e.first = true
	return true
}

// Commit is Source.Commit.
func (s *partitionSource) Commit() {
	s.p.staging.done("", func() { s.p.acks.mark(s.p) })
	s.p.leave()
	s.p.awaitRoom()
}

// Wait is Source.Wait.
func (s *partitionSource) Wait(d time.Duration) bool {
	s.p.leave()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.p.life.ending:
	}
	return s.Live()
}
