package worker

import (
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/retryqueue"
)

// A share divides a partition between its parked events and its new ones, where both
// could run. Behind an attempt of a parked event comes the turn of new ones: one
// iteration at least, and further ones until they have had as long as the attempt.
// So new events have half of the iterations, and half of the time, however
// many others fail. The side that has nothing to run leaves its turn to the other. One
// goroutine uses a share.
type share struct {
	since  int64         // when the attempt of a parked event began that runs, by monotime; 0: none does
	took   time.Duration // the last one
	turn   bool          // of new events
	until  int64         // by monotime, 0: it has not begun
	ran    bool          // there was an iteration in it
	behind int           // new events that were parked in it
}

// begin notes that an attempt of a parked event begins.
func (s *share) begin(now int64) { s.since = now }

// waited notes that the function could not go on for so long, for a reason that is
// not the event's.
func (s *share) waited(d int64) {
	if s.since != 0 {
		s.since += d
	}
}

// end notes that an attempt of a parked event has ended, if one ran.
func (s *share) end() {
	if s.since != 0 {
		*s = share{took: time.Duration(monotime.Now() - s.since), turn: true}
	}
}

// fresh reports whether it is the turn of new events.
func (s *share) fresh(now int64) bool {
	if s.turn && s.until == 0 {
		s.until = now + int64(s.took)
	}
	s.turn = s.turn && (!s.ran || now < s.until)
	return s.turn
}

// patience is how long new events are waited for in their turn: one that has just
// emptied the buffer is worth a part of it.
func (s *share) patience(now int64) time.Duration {
	if !s.ran {
		return 0
	}
	return max(0, min(s.took/8, time.Duration(s.until-now)))
}

// iteration notes one of new events.
func (s *share) iteration() { s.ran = true }

// parked notes that so many new events were all parked, behind others of their keys.
// It is still the turn of those that are not, but not for ever.
func (s *share) parked(n int, now int64) {
	s.behind += n
	s.turn = s.turn && (s.behind < retryqueue.MaxPark || now < s.until)
}

// pass ends the turn of new events: none of them can run.
func (s *share) pass() { s.turn = false }
