package rebalance

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// alone runs one coordinator in a cluster whose other members are only entries of the membership.
func (c *cluster) alone(store func(*node) Store) (co *Coordinator, stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	n := &node{c: c, ctx: ctx, name: "me", id: "me", lease: map[int]time.Time{}, busy: map[int]string{}}
	n.co = NewCoordinator(Config{ID: n.id, Executor: Executor{Worker: n.name, Expiry: c.expiry},
		Partitions: c.partitions, Salt: "p", Store: store(n), Owner: n})
	c.wg.Go(func() {
		if err := n.co.Run(ctx); err != nil {
			c.t.Error(err)
		}
	})
	return n.co, func() { cancel(); c.wg.Wait() }
}

func (c *cluster) group() Group {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := Parse(c.value)
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

// A join beside a dead member takes over that member's partitions in one change. The others keep
// theirs.
func TestJoinReplacesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 16, 10*time.Second)
		g := Group{}
		for _, id := range []string{"a", "b", "c", "d"} {
			g = g.Join(id, Executor{Worker: id, Expiry: c.expiry}, 16, "p")
			c.beats[id] = time.Now().Add(time.Hour)
		}
		delete(c.beats, "b")
		c.value = g.Encode()
		_, stop := c.alone(func(n *node) Store { return n })
		defer stop()
		time.Sleep(time.Second)
		after := c.group()
		if _, in := after.Executors["b"]; in {
			t.Errorf("b is dead and still a member: %s", c.value)
		}
		for id, want := range map[string]string{"a": "a", "c": "c", "d": "d", "me": "b"} {
			if got, want := after.Executors[id].Partitions, g.Executors[want].Partitions; !reflect.DeepEqual(got, want) {
				t.Errorf("%s has %v, want %v", id, got, want)
			}
		}
	})
}

// A returning is a store in which a missing heartbeat comes back after its first check.
type returning struct{ *node }

func (r returning) Alive(ctx context.Context, ids []string, atMost time.Duration) (map[string]time.Duration, error) {
	life, err := r.node.Alive(ctx, ids, atMost)
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for _, id := range ids {
		r.c.beats[id] = time.Now().Add(time.Hour)
	}
	return life, err
}

func TestHeartbeatReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 2, 10*time.Second)
		c.value = Group{}.Join("b", Executor{Worker: "b", Expiry: c.expiry}, 2, "p").Encode()
		c.beats["b"] = time.Now().Add(time.Hour)
		co, stop := c.alone(func(n *node) Store { return returning{n} })
		defer stop()
		time.Sleep(time.Second)
		c.mu.Lock()
		delete(c.beats, "b")
		c.calls["alive"], c.calls["swap"] = 0, 0
		value := c.value
		c.mu.Unlock()
		co.Observe(value)
		time.Sleep(time.Second)
		if _, in := c.group().Executors["b"]; !in {
			t.Errorf("b was removed although its heartbeat came back: %s", c.value)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.calls["alive"] != 2 || c.calls["swap"] != 0 {
			t.Errorf("%d looks and %d writes, want two looks and no write", c.calls["alive"], c.calls["swap"])
		}
	})
}

// An unsure store writes, but its first replies to Swap are lost.
type unsure struct {
	*node
	left *int
}

func (u unsure) Swap(ctx context.Context, old, next []byte) (bool, error) {
	done, err := u.node.Swap(ctx, old, next)
	if *u.left--; *u.left >= 0 {
		return false, errFake
	}
	return done, err
}

// A join whose reply was lost has happened. It is not written again, since each write makes every
// member load.
func TestJoinOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 2, 10*time.Second)
		left := 1
		co, stop := c.alone(func(n *node) Store { return unsure{n, &left} })
		defer stop()
		time.Sleep(time.Second)
		if s := co.State(); !s.Settled() || s.Generation != 1 || c.group().Generation != 1 {
			t.Errorf("after a lost answer: %+v, stored is %s", s, c.value)
		}
	})
}
