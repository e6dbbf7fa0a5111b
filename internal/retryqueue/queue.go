// Package retryqueue decides which parked event of a partition runs next, and what
// follows a failure: another attempt, a dead letter, or neither. It holds the stored
// states in memory, and writes a change to its Store before it applies the change.
package retryqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	MaxPark   = 128         // events in one call of Store.Park
	fullPause = time.Second // after a store that was full against expectation
	crashText = "the worker died or lost the partition while the event was processed"
)

// A Store holds the parked events of one partition for one owner. Its methods block until
// their outcome is known; they return io.EOF if the ownership ended before that.
type Store interface {
	// Load returns the states of all parked events.
	Load() ([]store.RetryState, error)
	// Payload returns a parked event; false if it is gone.
	Payload(id string) (redisconn.Entry, bool, error)
	// Park moves events out of the partition, all of them or, with store.ErrFull, none.
	Park(ps []store.Parking) error
	// Begin stores the begin of an attempt of a parked event, and returns the event, or
	// false if it is gone.
	Begin(s store.RetryState) (redisconn.Entry, bool, error)
	// Write replaces the state of a parked event, and returns false if the event is gone.
	Write(s store.RetryState) (bool, error)
	// Done removes a parked event, which has been processed. As long as that waits for something else, its state is that, if
	// it is not nil: the end of the ownership is not its doing.
	Done(id string, waits *store.RetryState) error
	// DeadLetter makes an event, parked or not, a dead letter.
	DeadLetter(d store.DeadLetter) error
	// Now returns the time of the server's clock, in milliseconds; never ahead of it.
	Now() int64
}

// A Queue holds the parked events of one partition for its owner, and decides what
// follows a failure. It is for use by one goroutine.
type Queue struct {
	cfg    Config
	lanes  shelf
	wanted wanted
	report report

	backlog []store.Parking   // events to park when there is room; not acked
	full    int64             // after a store that was unexpectedly full: time of the next try
	running *store.RetryState // handed out; its attempt is stored
	payload redisconn.Entry   // of running
}

// A Config configures a Queue.
type Config struct {
	Retry *Retry // nil: events parked before run, and the policy decides about new failures
	Store Store
	Key   func(redisconn.Entry) (key string, ok bool) // of an event; false if it cannot be decoded
	Limit int64                                       // parked events at most
	Waits func(id string) bool                        // reports that an event may not begin yet, before its attempt is stored

	Partition     int
	Epoch         int64
	Suspect, Skip string   // IDs or ""
	Deaths        int      // number of owners in a row that ended at Suspect
	SetAside      []string // IDs
	Log           *slog.Logger
	Counts        *Counts
}

// New returns a Queue that is empty before Load.
func New(cfg Config) *Queue {
	if cfg.Waits == nil {
		cfg.Waits = func(string) bool { return false }
	}
	if cfg.Key == nil {
		cfg.Key = func(redisconn.Entry) (string, bool) { return "", false }
	}
	return &Queue{
		cfg: cfg, lanes: shelf{newLanes(), cfg.Store}, wanted: newWanted(&cfg),
		report: report{log: cfg.Log, counts: cfg.Counts, partition: cfg.Partition},
	}
}

// Load reads the parked events. An event stored as running has failed: its worker died, or lost the
// partition. Such an event explains the end of the previous owner, so the oldest event in progress
// is no longer a suspect.
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

// Compare reads the parked events, between two attempts, once Redis may have forgotten the last of what was done. It returns ErrForgotten if
// others are parked than r knows of. An attempt that ended here, and is not known to have, does not count then.
func (r *Queue) Compare() error {
	states, err := r.cfg.Store.Load()
	if err != nil {
		return err
	}
	id, known := "", 0
	for _, s := range states {
		if r.lanes.of[s.ID] != nil {
			known++
			continue
		}
		if id = s.ID; s.Running {
			s.Running, s.Void = false, s.Void+1
			if _, err := r.cfg.Store.Write(s); err != nil {
				return err
			}
		}
	}
	switch {
	case id != "":
		return fmt.Errorf("%w: event %s is parked again, or still", ErrForgotten, entryid.EventID(r.cfg.Partition, id))
	case known < r.lanes.len():
		return fmt.Errorf("%w: of %d parked events %d are left", ErrForgotten, r.lanes.len(), known)
	}
	return nil
}

// crashed records a failure that its worker did not survive. If the event was the only
// suspect that ran, it caused the crash; else it gets another attempt, alone.
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

// Idle reports whether no event is parked, in the backlog, or looked for.
func (r *Queue) Idle() bool {
	return len(r.lanes.of) == 0 && len(r.backlog) == 0 && !r.wanted.any()
}

// Blocked reports whether only parked events of the partition may begin now.
func (r *Queue) Blocked() bool {
	return len(r.backlog) > 0 || r.Most(1) == 0 || r.lanes.holds("") || r.cfg.Retry.order() == OrderPartition && r.lanes.len() > 0
}

// FirstUnparked returns the first event that waits to be parked, "" for none.
func (r *Queue) FirstUnparked() string {
	if len(r.backlog) == 0 {
		return ""
	}
	return r.backlog[0].Entry.ID
}

// Room returns how many more events may be parked.
func (r *Queue) Room() int {
	return int(min(max(r.cfg.Limit-int64(r.lanes.len()), 0), math.MaxInt32))
}

// Most returns how many of n events may begin at once, since all of them may have to be parked.
func (r *Queue) Most(n int) int {
	if r.cfg.Retry == nil {
		return n
	}
	return min(n, r.Room())
}

// Looking reports whether the next event of the partition must be examined alone: it may be a suspect, or one to skip.
func (r *Queue) Looking() bool { return r.wanted.suspect != "" || r.wanted.skip != "" }

// MaxAttempts returns the number of attempts an event has in all, 0 without a Retry.
func (r *Queue) MaxAttempts() int {
	if r.cfg.Retry == nil {
		return 0
	}
	return r.cfg.Retry.Max
}

// Wait returns the time until a parked event is due, -1 if none becomes due by itself.
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

// Next returns the parked event whose turn it is, after storing its attempt. alone is
// called before a suspect and reports whether the suspect may run now; its argument
// reports whether this attempt decides about the suspect. If it is the turn of new
// events, only parked events that do not delay them come first: suspects, which are few,
// and events that waited for one that has succeeded since.
func (r *Queue) Next(fresh bool, alone func(decides bool) bool) (redisconn.Entry, bool, error) {
	if err := r.drain(); err != nil {
		return redisconn.Entry{}, false, err
	}
	for {
		s := r.lanes.due(r.cfg.Store.Now(), fresh, func(s *store.RetryState) bool { return alone(r.cfg.Retry.decides(s)) })
		if s == nil || r.cfg.Waits(s.ID) {
			return redisconn.Entry{}, false, nil
		}
		entry, there, err := r.begin(*s)
		if err != nil || there {
			return entry, there, err
		}
	}
}

// Retrying reports whether the running event failed before, or waits behind one that did.
func (r *Queue) Retrying() bool {
	return r.running != nil && r.lanes.of[r.running.ID].kind != flowing
}

// begin stores the attempt first, so that it counts whatever follows.
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

// Runs reports whether id is the parked event that was handed out last and is not done.
func (r *Queue) Runs(id string) bool { return r.running != nil && r.running.ID == id }

// Attempts returns how many attempts of an event precede the current one.
func (r *Queue) Attempts(id string) int {
	if !r.Runs(id) {
		return 0
	}
	return r.running.Counted() - 1
}

// Done removes the running event.
func (r *Queue) Done() error {
	waits := undone(*r.running)
	r.running = nil
	err := r.lanes.end(waits.ID, &waits)
	if errors.Is(err, ErrNotDone) {
		return errors.Join(err, r.lanes.write(waits))
	}
	return err
}

// ErrForgotten is the error of Compare: the partition is to be taken over again.
var ErrForgotten = errors.New("the server has forgotten what became of parked events")

// ErrNotDone is the error of Store.Done if the event was processed, and what that has changed is not stored: the ownership ends.
var ErrNotDone = errors.New("not done")

// Interrupted undoes the attempt of the running event: a release or a policy ended the
// function, not the event.
func (r *Queue) Interrupted() error {
	if r.running == nil {
		return nil
	}
	s := undone(*r.running)
	r.running = nil
	return r.lanes.write(s)
}

// undone returns the state of a running event without its attempt.
func undone(s store.RetryState) store.RetryState {
	s.Running = false
	s.Void++
	s.At = s.Last // due already, even for a later owner whose clock is set back
	return s
}
