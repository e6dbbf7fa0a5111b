package rebalance

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	leaveTimeout    = 3 * time.Second
	announceTimeout = time.Second
	defaultExpiry   = 10 * time.Second
)

// A Config configures a Coordinator. ID, Partitions, Store and Owner are required.
type Config struct {
	ID         string        // executor ID, used for one Run only
	Executor   Executor      // Worker and Expiry (10 s if zero); the rest is filled in
	Partitions int           // of the stream
	Salt       string        // of assign: the same for all members, another for each processor
	JoinDelay  time.Duration // before joining
	Store      Store
	Owner      Owner
	Logger     *slog.Logger // nil: no logs

	// OnAssign, if not nil, is called for each membership that is followed, with this
	// member's assignment, ascending. It must not block.
	OnAssign func(generation int64, partitions []int)
}

// A State is a snapshot of a Coordinator.
type State struct {
	Joined     bool  // it is a member
	Generation int64 // of the membership it follows
	Members    int   // how many that has
	Assigned   []int // its assignment, ascending
	Owned      []int // what it owns and is not releasing, ascending
	Releasing  []int // what it is releasing, ascending
	Err        error // why it cannot join or read the membership, nil if it can
}

// Settled reports whether the member owns exactly its assigned partitions.
func (s State) Settled() bool {
	return s.Joined && len(s.Releasing) == 0 && slices.Equal(s.Assigned, s.Owned)
}

// A Coordinator is one executor's part in the membership of its processor: it joins, follows the
// stored membership by calling its Owner to acquire and release, removes dead members, and leaves.
// The package documentation describes the protocol.
type Coordinator struct {
	cfg  Config
	log  *slog.Logger
	wake chan struct{} // holds one token while inbox is not empty

	mu      sync.Mutex
	ran     bool
	running bool
	inbox   []input
	machine *machine // changed by Run only
}

// An input is a call of one of the machine's methods.
type input func(m *machine, now time.Time) []action

// NewCoordinator returns a Coordinator that does nothing before Run.
func NewCoordinator(cfg Config) *Coordinator {
	if cfg.Executor.Expiry <= 0 {
		cfg.Executor.Expiry = defaultExpiry
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Coordinator{
		cfg:     cfg,
		log:     cfg.Logger,
		wake:    make(chan struct{}, 1),
		machine: newMachine(cfg.ID, cfg.Store.Key(), cfg.Executor.Expiry, jitter),
	}
}

// jitter picks a duration between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Notify delivers a control message. It never blocks and may be called at any time,
// concurrently. Messages may be lost, repeated and late.
func (c *Coordinator) Notify(m Message) {
	c.post(func(ma *machine, now time.Time) []action { return ma.notified(now, m) })
}

// Observe delivers the stored membership value as read with the heartbeat. Call it after
// each heartbeat, every third of the expiry. It never blocks, may be called at any time,
// concurrently, and retains value, which must not be changed any more.
func (c *Coordinator) Observe(value []byte) {
	c.post(func(m *machine, now time.Time) []action { return m.observed(now, value) })
}

// Unread reports that the heartbeat could not read the membership. The next call of
// Observe ends that state. It never blocks and may be called at any time, concurrently.
func (c *Coordinator) Unread(err error) {
	c.post(func(m *machine, now time.Time) []action { return m.unread(now, err) })
}

// Lost reports that ownership of a partition ended without Release: the partition is acquired again
// while it is assigned. The Owner calls it once per ownership and not after it has returned from
// Release. Lost never blocks and may be called at any time, concurrently.
func (c *Coordinator) Lost(partition int) {
	c.post(func(m *machine, now time.Time) []action { return m.lost(now, partition) })
}

// Crowded reports, when Run has returned, that this member could not leave the membership
// in time, most likely because others were changing it. Remove makes up for that.
func (c *Coordinator) Crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.crowded
}

// State returns a snapshot. It never blocks and may be called at any time, concurrently.
func (c *Coordinator) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machine
	s := State{Joined: m.phase == following, Generation: m.group.Generation, Members: len(m.group.Executors), Owned: m.at(owned), Releasing: m.at(releasing), Err: m.trouble()}
	if s.Joined {
		s.Assigned = slices.Clone(m.group.Executors[m.self].Partitions)
	}
	return s
}

// Run takes part in the membership, and blocks, until ctx ends. Call it once, when the
// member's heartbeat exists.
//
// When ctx ends Run leaves, releases everything, waits for all releases and returns nil,
// also while storage is out of reach. Run returns ErrAbsent, after the same releases, when
// the stored membership no longer has this member. It returns a *PythonError, or an error
// about the version or the number of partitions of the membership, when waiting cannot help
// it to join. Errors of storage and an unreadable membership are logged and retried.
func (c *Coordinator) Run(ctx context.Context) error {
	if !c.begin() {
		return errors.New("rebalance: a Coordinator runs once")
	}
	r := newRun(ctx, c)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := ctx.Done()
	r.step(func(m *machine, now time.Time) []action { return m.start(now, c.cfg.JoinDelay) })
	for !r.ended() {
		r.arm(timer)
		select {
		case <-stopped:
			stopped = nil
			r.step((*machine).stop)
		case <-timer.C:
			r.step((*machine).tick)
		case <-c.wake:
			for _, in := range c.take() {
				r.step(in)
			}
		}
	}
	return r.finish()
}

func (c *Coordinator) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ran {
		return false
	}
	c.ran, c.running = true, true
	return true
}

// post hands an input to Run. Without a Run the input is dropped: the join reads the same state.
func (c *Coordinator) post(in input) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return
	}
	c.inbox = append(c.inbox, in)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Coordinator) take() []input {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.inbox
	c.inbox = nil
	return in
}
