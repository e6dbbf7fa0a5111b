package rebalance

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"
)

// A phase is where a member stands with its membership; see doc.go.
type phase int

const (
	joining   phase = iota // not a member yet
	following              // a member, follows the stored membership
	leaving                // stopped; releases when its leave is through
	ending                 // no longer a member, its releases run
	ended
)

// A verb is the kind of an action.
type verb int

const (
	doAcquire  verb = iota // partition, limit; answered by acquired
	doCancel               // the try for partition; its acquired still comes
	doRelease              // partition; answered by released
	doJoin                 // answered by joined
	doLoad                 // answered by loaded
	doAlive                // executors, limit; answered by alive
	doReap                 // executors; answered by reaped
	doLeave                // answered by left
	doAnnounce             // message
	doAssigned             // message.Generation, partitions: tell the caller
	doWarn                 // err: log it
)

// An action is something that the machine's caller does. Actions that take time run on their own,
// and an input answers each of them.
type action struct {
	verb       verb
	partition  int
	partitions []int
	executors  []string
	limit      time.Duration
	message    Message
	err        error
}

// A machine is the protocol of one member, without I/O, clock or randomness: each method takes an
// input and the time, and returns the actions to take now. Between inputs, tick is due at deadline.
type machine struct {
	self   string
	key    string        // of the stored membership
	expiry time.Duration // own
	jitter func(time.Duration) time.Duration

	phase   phase
	stopped bool
	crowded bool  // its turn to leave did not come
	err     error // of the end, nil after stop
	partitions

	joinAt    time.Time // of the next try to join; zero while one runs
	joinTries int       // failed ones
	joinRuns  bool
	joinTried bool // one has begun: its write may happen whatever its answer

	seen    []byte // membership value that is followed, or that could not be read
	group   Group  // the last one that could be read
	garbled error  // why seen could not be read
	away    error  // why the last heartbeat or join got no membership

	loading   bool
	loadAgain bool      // the value may have changed since the load began
	overtaken bool      // a value newer than the load's begin is followed
	loadAt    time.Time // of a repeated load
	loadTries int

	checking   []string  // members whose heartbeats are being looked at
	checkAt    time.Time // of a check before the next heartbeat
	checkTries int       // failed checks and reaps in a row
	beatAt     time.Time // when the next heartbeat will bring a check
	reaping    bool
	passed     bool // something was loaded and followed since the reap began
}

// newMachine returns a machine that has not started. jitter picks a duration
// between half of its argument and all of it.
func newMachine(self, key string, expiry time.Duration, jitter func(time.Duration) time.Duration) *machine {
	return &machine{
		self: self, key: key, expiry: expiry, jitter: jitter,
		partitions: partitions{expiry: expiry, jitter: jitter, holdings: map[int]*holding{}, atOnce: acquisitionsAtOnce},
	}
}

// start begins: the first try to join is after delay.
func (m *machine) start(now time.Time, delay time.Duration) []action {
	m.joinAt = now.Add(max(0, delay))
	return m.flush(now)
}

func (m *machine) tick(now time.Time) []action { return m.flush(now) }

// joined takes the result of doJoin: the stored value, with this member.
func (m *machine) joined(now time.Time, value []byte, err error) []action {
	m.joinRuns = false
	switch {
	case m.stopped:
		// Even after an error: the write may have happened.
		m.leave()
	case err != nil && hopeless(err):
		m.err, m.phase = err, ended
	case err != nil:
		m.away = err
		m.warnFirst(m.joinTries, err)
		m.joinAt = now.Add(m.jitter(backoff(m.joinTries, errorBackoffMin, errorBackoffMax)))
		m.joinTries++
	default:
		m.phase, m.away = following, nil
		m.follow(value)
		m.announce(Joined, m.self)
		if m.loadAgain {
			m.reload()
		}
	}
	return m.flush(now)
}

// hopeless reports whether retrying cannot help, unlike with errors of storage.
func hopeless(err error) bool {
	var version *versionError
	var count *partitionsError
	var python *PythonError
	return errors.As(err, &version) || errors.As(err, &count) || errors.As(err, &python)
}

// observed takes the membership as the heartbeat read it. The value is not followed, but
// loaded again when it differs. Following it could set the member back, or end it:
//  1. the heartbeat reads the value;
//  2. this member joins, or a newer value is loaded and followed;
//  3. the value of the heartbeat arrives here.
func (m *machine) observed(now time.Time, value []byte) []action {
	m.beatAt = now.Add(m.expiry / 3)
	if m.phase == following {
		m.away = nil
		if !bytes.Equal(value, m.seen) {
			m.reload()
		}
		m.check()
	}
	return m.flush(now)
}

func (m *machine) unread(now time.Time, err error) []action {
	if m.phase == following {
		m.away = err
	}
	return m.flush(now)
}

// trouble returns why the member does not know the membership, nil if it does.
func (m *machine) trouble() error {
	if m.away != nil {
		return m.away
	}
	return m.garbled
}

func (m *machine) notified(now time.Time, msg Message) []action {
	own := msg.Executor == m.self
	switch msg.Kind {
	case Released:
		if !own {
			m.freed(msg.Partition)
		}
	case Died, Steered:
		m.hint(msg)
	case Joined, Left:
		if !own {
			m.hint(msg)
		}
	}
	return m.flush(now)
}

// hint notes that the stored membership may have changed.
func (m *machine) hint(msg Message) {
	switch {
	case m.phase == joining:
		m.loadAgain = m.joinRuns // our own write may be the older one
	case m.phase == following && msg.Generation != m.group.Generation:
		m.reload()
	}
}

func (m *machine) loaded(now time.Time, value []byte, err error) []action {
	again, overtaken := m.loadAgain, m.overtaken
	m.loading, m.loadAgain, m.overtaken = false, false, false
	if m.phase != following {
		return m.flush(now)
	}
	if err != nil {
		m.warnFirst(m.loadTries, err)
		m.loadAt = now.Add(m.jitter(backoff(m.loadTries, errorBackoffMin, errorBackoffMax)))
		m.loadTries++
		return m.flush(now)
	}
	m.loadTries = 0
	if !overtaken {
		m.follow(value)
		m.passed = true
	}
	if (again || overtaken) && m.phase == following {
		m.reload()
	}
	return m.flush(now)
}

// stop begins the end at the caller's request.
func (m *machine) stop(now time.Time) []action {
	m.stopped = true
	switch m.phase {
	case joining:
		m.joinAt = time.Time{}
		if !m.joinTried {
			m.phase = ended
		} else if !m.joinRuns {
			m.leave()
		}
	case following:
		m.leave()
	case ending:
		m.err = nil
	}
	return m.flush(now)
}

func (m *machine) leave() {
	m.phase = leaving
	m.halt()
	m.do(action{verb: doLeave})
}

// left takes the result of doLeave: the generation that was written, zero if this executor
// was no member.
func (m *machine) left(now time.Time, generation int64, err error) []action {
	switch {
	case err != nil:
		m.crowded = busy(err) || errors.Is(err, context.DeadlineExceeded)
		if !busy(err) {
			m.warn(err)
		}
	case generation > 0:
		m.do(action{verb: doAnnounce, message: Message{Kind: Left, Executor: m.self, Generation: generation}})
	}
	m.phase = ending
	m.want(nil)
	return m.flush(now)
}

// lost takes the end of an ownership that was not released.
func (m *machine) lost(now time.Time, p int) []action {
	m.lose(now, p)
	return m.flush(now)
}

func (m *machine) acquired(now time.Time, p int, err error) []action {
	m.partitions.acquired(now, p, err)
	return m.flush(now)
}

func (m *machine) released(now time.Time, p int) []action {
	m.do(action{verb: doAnnounce, message: Message{Kind: Released, Executor: m.self, Generation: m.group.Generation, Partition: p}})
	m.partitions.released(p)
	return m.flush(now)
}

// follow makes a stored value the one that this member acts on.
func (m *machine) follow(value []byte) {
	if m.seen != nil && bytes.Equal(value, m.seen) {
		return
	}
	m.seen = append([]byte{}, value...)
	g, err := ParseStored(m.key, value)
	m.garbled = err
	if err != nil {
		// Owned partitions stay owned: their locks keep them safe, and an operator can
		// repair the value.
		m.warn(err)
		return
	}
	e, ok := g.Executors[m.self]
	if !ok {
		m.err, m.phase = ErrAbsent, ending
		m.halt()
		m.want(nil)
		return
	}
	m.group = g
	m.do(action{verb: doAssigned, partitions: slices.Clone(e.Partitions), message: Message{Generation: g.Generation}})
	m.want(e.Partitions)
}

// reload loads the membership, once more if a load is under way: that load may have read
// the value before it changed.
func (m *machine) reload() {
	if m.loading {
		m.loadAgain = true
		return
	}
	m.loading, m.loadAgain, m.loadAt = true, false, time.Time{}
	m.do(action{verb: doLoad})
}

func (m *machine) announce(k Kind, id string) {
	m.do(action{verb: doAnnounce, message: Message{Kind: k, Executor: id, Generation: m.group.Generation}})
}

func (m *machine) warn(err error) { m.do(action{verb: doWarn, err: err}) }

func busy(err error) bool { return errors.Is(err, ErrBusy) }

// busyTries is how many times in a row a member may wait in vain to change the membership before it
// warns.
const busyTries = 20

// warnFirst warns of the first of several errors in a row.
func (m *machine) warnFirst(before int, err error) {
	due := 0
	if busy(err) {
		due = busyTries // among many members it is normal to wait
	}
	if before == due {
		m.warn(err)
	}
}

// deadline is when tick is due; zero if only an input can change anything.
func (m *machine) deadline() time.Time {
	switch m.phase {
	case joining:
		return m.joinAt
	case following:
		return earlier(earlier(m.loadAt, m.checkAt), m.partitions.deadline())
	}
	return time.Time{}
}

// flush adds the actions that are due, and returns all actions since the last flush.
func (m *machine) flush(now time.Time) []action {
	reached := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	switch m.phase {
	case joining:
		if reached(m.joinAt) {
			m.joinAt, m.joinRuns, m.joinTried = time.Time{}, true, true
			m.do(action{verb: doJoin})
		}
	case following:
		if reached(m.loadAt) {
			m.reload()
		}
		if reached(m.checkAt) {
			m.check()
		}
		m.due(now, m.group.Expiry())
	case ending:
		if len(m.holdings) == 0 {
			m.phase = ended
		}
	}
	out := m.out
	m.out = nil
	return out
}
