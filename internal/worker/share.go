package worker

import (
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/retryqueue"
)

// A share divides a partition's time between parked and new events. After an attempt of a parked
// event it is the turn of new ones: for at least one iteration, and for as long as the attempt
// took. So new events get half of the iterations, and half of the time, however many others fail. A
// side with nothing to run passes its turn. One goroutine uses a share.
type share struct {
	since  int64         // begin of the running attempt of a parked event, by monotime; 0: none runs
	took   time.Duration // the last one
	turn   bool          // of new events
	until  int64         // by monotime, 0: it has not begun
	ran    bool          // there was an iteration in it
	behind int           // new events that were parked in it
}

// begin notes that an attempt of a parked event begins.
func (s *share) begin(now int64) { s.since = now }

// waited notes a delay of d that the event did not cause.
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

// patience returns how long to wait for new events in their turn, which may just have emptied
// the buffer.
func (s *share) patience(now int64) time.Duration {
	if !s.ran {
		return 0
	}
	return max(0, min(s.took/8, time.Duration(s.until-now)))
}

// iteration notes an iteration over new events.
func (s *share) iteration() { s.ran = true }

// parked notes that n new events were all parked behind others of their keys. The turn of other
// new events goes on, up to a limit.
func (s *share) parked(n int, now int64) {
	s.behind += n
	s.turn = s.turn && (s.behind < retryqueue.MaxPark || now < s.until)
}

// pass ends the turn of new events: none of them can run.
func (s *share) pass() { s.turn = false }
