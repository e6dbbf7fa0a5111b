// Package retryqueue decides which parked event of a partition runs next, and what becomes
// of an event that failed: another attempt, a dead letter, or none of both. It keeps what is
// stored in memory, and writes to its Store before it changes its mind.
package retryqueue

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"

	"github.com/runnel-go/runnel/internal/store"
)

const (
	MaxPark   = 128         // events in one call of Store.Park
	fullPause = time.Second // after a store that was full against expectation
	crashText = "the worker died or lost the partition while the event was processed"
)

// A Store keeps the parked events of one partition for one owner. Its methods block until
// their outcome is known; io.EOF says that the ownership ended before that.
type Store interface {
	// Load returns the states of all parked events.
	Load() ([]store.RetryState, error)
	// Payload returns a parked event; false: it is not there any more.
	Payload(id string) (redisconn.Entry, bool, error)
	// Park moves events out of the partition, all of them or, with
	// store.ErrFull, none.
	Park(ps []store.Parking) error
	// Begin stores that an attempt of a parked event begins, and returns the event; false:
	// the event is not there any more.
	Begin(s store.RetryState) (redisconn.Entry, bool, error)
	// Write replaces the state of a parked event; false: it is not there any more.
	Write(s store.RetryState) (bool, error)
	// Done removes a parked event, which has been processed.
	Done(id string) error
	// DeadLetter makes a dead letter of an event, parked or not.
	DeadLetter(d store.DeadLetter) error
	// Now is the time of the server's clock, in milliseconds; never ahead of it.
	Now() int64
}

// A Queue holds the parked events of one partition for its owner, and decides what becomes of
// events that fail. It is for one goroutine.
type Queue struct {
	cfg    Config
	lanes  shelf
	wanted wanted
	report report

	backlog []store.Parking   // to be parked when there is room; not acked
	full    int64             // the store was full, against expectation: not before this time again
	running *store.RetryState // handed out; its attempt is stored
	payload redisconn.Entry   // of running
}

// A Config says what a Queue works on.
type Config struct {
	Retry *Retry // nil: events parked before run, and the policy decides about new failures
	Store Store
	Key   func(redisconn.Entry) (key string, ok bool) // of an event; false where it cannot be decoded
	Limit int64                                       // parked events at most

	Partition     int
	Epoch         int64
	Suspect, Skip string   // IDs or ""
	Deaths        int      // so many owners in a row ended at Suspect
	SetAside      []string // IDs
	Log           *slog.Logger
	Counts        *Counts
}

// New returns a Queue that knows nothing before Load.
func New(cfg Config) *Queue {
	if cfg.Key == nil {
		cfg.Key = func(redisconn.Entry) (string, bool) { return "", false }
	}
	return &Queue{
		cfg: cfg, lanes: shelf{newLanes(), cfg.Store}, wanted: newWanted(&cfg),
		report: report{log: cfg.Log, counts: cfg.Counts, partition: cfg.Partition},
	}
}

// Load reads what is parked. An event that was running then has failed: its
// worker died, or lost the partition. It explains why the owner before ended, so
// that the oldest event in progress is not suspected any more: a partition runs
// one or the other.
func (r *Queue) Load() error {
	states, err := r.cfg.Store.Load()
	if err != nil {
		return err
	}
	if states, err = r.cfg.ungarbled(states); err != nil {
		return err
	}
	r.lanes.lanes = newLanes()
	for _, s := range states {
		r.lanes.put(s)
	}
	for _, s := range states {
		if !s.Running {
			continue
		}
		r.wanted.suspect = ""
		if err := r.crashed(s); err != nil {
			return err
		}
	}
	if skip := r.wanted.skip; skip != "" && r.lanes.of[skip] != nil {
		if err := r.lanes.drop(skip); err != nil {
			return err
		}
		r.report.skipped(skip)
	}
	return nil
}

// crashed records a failure that no worker lived to report. If the event was the
// only suspect that ran, it was the event; else it gets another attempt, alone.
func (r *Queue) crashed(s store.RetryState) error {
	now := r.cfg.Store.Now()
	s.Running, s.Last, s.Error, s.Reason = false, now, crashText, ReasonCrash
	if retry := r.cfg.Retry; retry != nil && s.Counted() >= retry.Max && s.Alone {
		entry, there, err := r.cfg.Store.Payload(s.ID)
		if err != nil || !there {
			r.lanes.remove(s.ID)
			return err
		}
		return r.bury(context.Background(), entry, s)
	}
	s.At = now + r.cfg.Retry.after(&Failure{}, s.Counted())
	return r.lanes.write(s)
}

// Idle reports whether no event is parked, about to be, or looked for.
func (r *Queue) Idle() bool {
	return len(r.lanes.of) == 0 && len(r.backlog) == 0 && !r.Looking()
}

// Blocked reports whether no event of the partition may begin now but a parked one.
func (r *Queue) Blocked() bool {
	return len(r.backlog) > 0 || r.Most(1) == 0 || r.lanes.holds("") || r.cfg.Retry.order() == OrderPartition && r.lanes.len() > 0
}

// Room is how many more events may be parked.
func (r *Queue) Room() int {
	return int(min(max(r.cfg.Limit-int64(r.lanes.len()), 0), math.MaxInt32))
}

// Most is how many events of n may begin at once: all of them may have to be
// parked.
func (r *Queue) Most(n int) int {
	if r.cfg.Retry == nil {
		return n
	}
	return min(n, r.Room())
}

// Looking reports whether the next event of the partition has to be seen alone: it
// may be a suspect, one to skip, or one that was taken out.
func (r *Queue) Looking() bool { return r.wanted.any() }

// MaxAttempts is how many attempts an event has in all, 0 without a Retry.
func (r *Queue) MaxAttempts() int {
	if r.cfg.Retry == nil {
		return 0
	}
	return r.cfg.Retry.Max
}

// Wait is how long it is until a parked event is due, -1 if none will be by
// itself.
func (r *Queue) Wait() time.Duration {
	now := r.cfg.Store.Now()
	at := r.lanes.next(now)
	if len(r.backlog) > 0 && r.full > now && (at < 0 || r.full < at) {
		at = r.full
	}
	if at < 0 {
		return -1
	}
	return time.Duration(max(at-now, 0)) * time.Millisecond
}

// Next returns the parked event whose turn it is, after its attempt was stored.
// alone is asked before a suspect, with whether its attempt decides about it; it says
// whether it may run now. Where it is the
// turn of new events, only such parked ones come first as are no burden to them:
// suspects, which are few, and those that waited for one that has succeeded since.
func (r *Queue) Next(fresh bool, alone func(decides bool) bool) (redisconn.Entry, bool, error) {
	if err := r.drain(); err != nil {
		return redisconn.Entry{}, false, err
	}
	for {
		s := r.lanes.due(r.cfg.Store.Now(), fresh, func(s *store.RetryState) bool { return alone(r.cfg.Retry.decides(s)) })
		if s == nil {
			return redisconn.Entry{}, false, nil
		}
		entry, there, err := r.begin(*s)
		if err != nil || there {
			return entry, there, err
		}
	}
}

// Retrying reports whether the running event is one that failed before, or stands
// behind one that did.
func (r *Queue) Retrying() bool {
	return r.running != nil && r.lanes.of[r.running.ID].kind != flowing
}

// begin stores the attempt, so that it counts whatever comes.
func (r *Queue) begin(s store.RetryState) (redisconn.Entry, bool, error) {
	s.Alone = kindOf(&s) == suspects && r.cfg.Retry.decides(&s)
	s.Running = true
	s.Attempts++
	entry, there, err := r.cfg.Store.Begin(s)
	switch {
	case err != nil:
		return entry, false, err
	case !there: // an operator has dropped it
		return entry, false, r.lanes.drop(s.ID)
	}
	r.lanes.put(s)
	r.running, r.payload = &s, entry
	return entry, true, nil
}

// Runs reports whether this is the parked event that was handed out last and is not
// done.
func (r *Queue) Runs(id string) bool { return r.running != nil && r.running.ID == id }

// Attempts is how many attempts of an event were made before the one that is
// being made.
func (r *Queue) Attempts(id string) int {
	if !r.Runs(id) {
		return 0
	}
	return r.running.Counted() - 1
}

// Done takes the running event off.
func (r *Queue) Done() error {
	id := r.running.ID
	r.running = nil
	return r.lanes.succeeded(id)
}

// Interrupted gives the running event its attempt back: the function was ended
// by a release or a policy, not by the event.
func (r *Queue) Interrupted() error {
	if r.running == nil {
		return nil
	}
	s := *r.running
	r.running = nil
	s.Running = false
	s.Void++
	s.At = s.Last // a time that has come, also for an owner to whom the clock is set back
	return r.lanes.write(s)
}
