package rebalance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

var errFake = errors.New("fake storage: timeout")

// A cluster is the storage of one processor and its executors, in fake time.
type cluster struct {
	t          *testing.T
	partitions int
	expiry     time.Duration
	latency    time.Duration // longest of one step of a call
	drain      time.Duration // longest of a release
	wg         sync.WaitGroup

	mu       sync.Mutex
	rnd      *rand.Rand
	trouble  float64 // share of calls that end with an error
	deaf     float64 // share of control messages that get lost
	outage   time.Time
	value    []byte
	admin    lease
	beats    map[string]time.Time
	locks    map[int]lease
	owner    map[int]*node // that runs a partition's handler
	nodes    []*node
	calls    map[string]int
	releases int
}

// A lease is a lock's value and the time of its end.
type lease struct {
	value string
	until time.Time
}

func (l lease) held() bool { return l.value != "" && time.Now().Before(l.until) }

func newCluster(t *testing.T, seed uint64, partitions int, expiry time.Duration) *cluster {
	return &cluster{
		t: t, partitions: partitions, expiry: expiry, rnd: rand.New(rand.NewPCG(seed, 7)),
		latency: 3 * time.Millisecond, drain: 20 * time.Millisecond,
		beats: map[string]time.Time{}, locks: map[int]lease{}, owner: map[int]*node{}, calls: map[string]int{},
	}
}

func (c *cluster) random(most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rnd.Int64N(int64(most) + 1))
}

// chance is called with mu held.
func (c *cluster) chance(share float64) bool { return c.rnd.Float64() < share }

// call runs fn on the server for one node: after a delay, and with its reply after another one. It
// may end with an error before fn, or after it.
func (n *node) call(ctx context.Context, name string, fn func()) error {
	c := n.c
	c.pause(ctx)
	c.mu.Lock()
	if !n.dead {
		c.calls[name]++
	}
	if n.dead || ctx.Err() != nil || time.Now().Before(c.outage) || c.chance(c.trouble) {
		c.mu.Unlock()
		return errors.Join(errFake, ctx.Err())
	}
	fn()
	lost := c.chance(c.trouble)
	c.mu.Unlock()
	c.pause(ctx)
	if lost || ctx.Err() != nil {
		return errors.Join(errFake, ctx.Err())
	}
	return nil
}

func (c *cluster) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(c.random(c.latency)):
	}
}

// A node is a worker with one executor, and that executor's Store and Owner.
type node struct {
	c    *cluster
	name string
	ctx  context.Context // ends with stop and kill
	stop context.CancelFunc

	// guarded by c.mu
	dead  bool
	ended bool
	err   error // of its end
	id    string
	co    *Coordinator
	lease map[int]time.Time // of the partitions it owns
	busy  map[int]string    // the Owner call that runs
}

// start adds a node; it runs until stopped or killed.
func (c *cluster) start(name string) *node {
	ctx, stop := context.WithCancel(c.t.Context())
	n := &node{c: c, name: name, ctx: ctx, stop: stop, lease: map[int]time.Time{}, busy: map[int]string{}}
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	c.wg.Go(func() {
		err := ErrAbsent
		for i := 0; errors.Is(err, ErrAbsent) && ctx.Err() == nil; i++ {
			err = n.run(ctx, fmt.Sprintf("%s-%d", name, i))
		}
		c.mu.Lock()
		n.err, n.ended = err, true
		c.mu.Unlock()
	})
	return n
}

// kill ends a node as kill -9 does: it announces and releases nothing.
func (n *node) kill() {
	n.c.mu.Lock()
	n.dead = true
	for p, owner := range n.c.owner {
		if owner == n {
			delete(n.c.owner, p)
		}
	}
	n.c.mu.Unlock()
	n.stop()
}

func (n *node) run(ctx context.Context, id string) error {
	co := NewCoordinator(Config{
		ID: id, Executor: Executor{Worker: n.name, Expiry: n.c.expiry}, Partitions: n.c.partitions, Salt: "p",
		JoinDelay: n.c.random(20 * time.Millisecond), Store: n, Owner: n,
	})
	n.c.mu.Lock()
	n.id, n.co = id, co
	n.c.mu.Unlock()
	for n.beat(ctx) != nil && ctx.Err() == nil {
		n.c.pause(ctx)
	}
	beating, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); n.heartbeat(beating) }()
	err := co.Run(ctx)
	end()
	<-done
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if len(n.lease) > 0 && !n.dead {
		n.c.t.Errorf("%s: Run returned, but it owns %v", id, n.lease)
	}
	clear(n.lease)
	return err
}

func (n *node) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(n.c.expiry / 12)
	defer ticker.Stop()
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n.expire()
		if i%4 == 0 {
			_ = n.beat(ctx)
		}
	}
}

// beat refreshes heartbeat and locks, and hands the membership on.
func (n *node) beat(ctx context.Context) error {
	sent := time.Now()
	var value []byte
	var lost []int
	err := n.call(ctx, "beat", func() {
		n.c.beats[n.id] = sent.Add(n.c.expiry)
		value = n.c.value
		for p := range n.lease {
			if l := n.c.locks[p]; l.held() && l.value == n.id {
				n.c.locks[p] = lease{n.id, time.Now().Add(n.c.expiry)}
				n.lease[p] = sent.Add(n.c.expiry * 4 / 5)
			} else {
				lost = append(lost, p)
			}
		}
	})
	if err == nil {
		n.lose(lost)
		n.co.Observe(value)
	}
	return err
}

// expire ends leases that the node has not refreshed in time.
func (n *node) expire() {
	var lost []int
	n.c.mu.Lock()
	for p, until := range n.lease {
		if time.Now().After(until) {
			lost = append(lost, p)
		}
	}
	n.c.mu.Unlock()
	n.lose(lost)
}

func (n *node) lose(lost []int) {
	for _, p := range lost {
		n.c.mu.Lock()
		_, had := n.lease[p]
		delete(n.lease, p)
		if n.c.owner[p] == n {
			delete(n.c.owner, p)
		}
		n.c.mu.Unlock()
		if had {
			n.co.Lost(p)
		}
	}
}

// enter checks that the Owner's calls for a partition do not overlap.
func (n *node) enter(p int, call string) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if other := n.busy[p]; other != "" {
		n.c.t.Errorf("%s: %s of partition %d while %s runs", n.id, call, p, other)
	}
	n.busy[p] = call
}

func (n *node) exit(p int) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	delete(n.busy, p)
}

func (n *node) Acquire(ctx context.Context, p int, foreign time.Duration) error {
	n.enter(p, "Acquire")
	defer n.exit(p)
	if foreign < n.c.expiry {
		n.c.t.Errorf("%s: a foreign lock of partition %d may live %v", n.id, p, foreign)
	}
	sent, held := time.Now(), false
	err := n.call(ctx, "acquire", func() {
		if l := n.c.locks[p]; l.held() && l.value != n.id {
			held = true
			return
		}
		n.c.locks[p] = lease{n.id, time.Now().Add(n.c.expiry)}
	})
	switch {
	case err == nil && held:
		return fmt.Errorf("partition %d: %w", p, ErrHeld)
	case err != nil && ctx.Err() != nil:
		_ = n.unlock(context.WithoutCancel(ctx), p)
		return err
	case err != nil:
		return err
	}
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if n.dead {
		return errFake
	}
	if other := n.c.owner[p]; other != nil && other != n {
		n.c.t.Errorf("%s owns partition %d, and so does %s", n.id, p, other.id)
	}
	n.c.owner[p] = n
	n.lease[p] = sent.Add(n.c.expiry * 4 / 5)
	return nil
}

func (n *node) Release(ctx context.Context, p int) error {
	n.enter(p, "Release")
	defer n.exit(p)
	time.Sleep(n.c.random(n.c.drain))
	n.c.mu.Lock()
	n.c.releases++
	delete(n.lease, p)
	if n.c.owner[p] == n {
		delete(n.c.owner, p)
	}
	n.c.mu.Unlock()
	return n.unlock(ctx, p)
}

func (n *node) unlock(ctx context.Context, p int) error {
	return n.call(ctx, "unlock", func() {
		if n.c.locks[p].value == n.id {
			delete(n.c.locks, p)
		}
	})
}

func (n *node) Key() string { return "membership-key" }

func (n *node) Load(ctx context.Context) (value []byte, err error) {
	err = n.call(ctx, "load", func() { value = slices.Clone(n.c.value) })
	return value, err
}

func (n *node) Swap(ctx context.Context, old, next []byte) (done bool, err error) {
	err = n.call(ctx, "swap", func() {
		if done = string(n.c.value) == string(old); done {
			n.c.value = slices.Clone(next)
		}
	})
	return done && err == nil, err
}

func (n *node) Exclusive(ctx context.Context, fn func(context.Context) error) error {
	for range 100 {
		obtained := false
		err := n.call(ctx, "admin", func() {
			if obtained = !n.c.admin.held(); obtained {
				n.c.admin = lease{n.id, time.Now().Add(2 * time.Second)}
			}
		})
		if err != nil {
			return err
		}
		if obtained {
			err := fn(ctx)
			_ = n.call(context.WithoutCancel(ctx), "admin", func() {
				if n.c.admin.value == n.id {
					n.c.admin = lease{}
				}
			})
			return err
		}
		time.Sleep(n.c.random(50 * time.Millisecond))
	}
	return errFake
}

func (n *node) Alive(ctx context.Context, ids []string, atMost time.Duration) (map[string]time.Duration, error) {
	life := map[string]time.Duration{}
	err := n.call(ctx, "alive", func() {
		for _, id := range ids {
			if left := time.Until(n.c.beats[id]); left > 0 {
				life[id] = min(left, atMost)
			}
		}
	})
	return life, err
}

func (n *node) Announce(ctx context.Context, m Message) error {
	return n.call(ctx, "announce", func() {
		for _, other := range n.c.nodes {
			if !other.dead && other.co != nil && !n.c.chance(n.c.deaf) {
				co, delay := other.co, time.Duration(n.c.rnd.Int64N(int64(n.c.latency)))
				n.c.wg.Go(func() { time.Sleep(delay); co.Notify(m) })
			}
		}
	})
}
