package rebalance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

func (c *cluster) alive() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n.ctx.Err() != nil || n.ended })
}

// unsettled describes what is missing until every node owns its fair share, "" if nothing is.
func (c *cluster) unsettled() string {
	nodes := c.alive()
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := Parse(c.value)
	if err != nil {
		return err.Error()
	}
	var ids []string
	assigned := map[string][]int{}
	for _, n := range nodes {
		if n.co == nil {
			return n.name + " has not begun"
		}
		ids = append(ids, n.id)
		s := n.co.State()
		if !s.Settled() || s.Generation != g.Generation {
			return fmt.Sprintf("%s is at %+v in generation %d", n.id, s, g.Generation)
		}
		for _, p := range s.Assigned {
			if c.owner[p] != n || c.locks[p].value != n.id || !c.locks[p].held() {
				return fmt.Sprintf("partition %d of %s is not owned", p, n.id)
			}
		}
	}
	if slices.Sort(ids); !slices.Equal(ids, g.IDs()) {
		return fmt.Sprintf("members are %v, alive are %v", g.IDs(), ids)
	}
	for id, e := range g.Executors {
		assigned[id] = e.Partitions
	}
	if len(ids) > 0 {
		if err := fair(assigned, ids, c.partitions); err != nil {
			return err.Error()
		}
	}
	return ""
}

// settle waits until nothing is missing and returns how long that took.
func (c *cluster) settle(limit time.Duration) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for {
		missing := c.unsettled()
		if missing == "" {
			return time.Since(begin)
		}
		if time.Since(begin) > limit {
			c.t.Fatalf("not settled after %v: %s", limit, missing)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// end stops all nodes and checks what they leave behind.
func (c *cluster) end() {
	c.t.Helper()
	nodes := c.alive()
	for _, n := range nodes {
		n.stop()
	}
	c.wg.Wait()
	for _, n := range nodes {
		if n.err != nil {
			c.t.Errorf("%s ended with %v", n.id, n.err)
		}
	}
	if g, err := Parse(c.value); err != nil || len(g.Executors) > 0 {
		c.t.Errorf("members left behind: %s, %v", c.value, err)
	}
	for p, l := range c.locks {
		if l.held() {
			c.t.Errorf("lock of partition %d left behind: %s", p, l.value)
		}
	}
}

// calm ends all faults but lost messages.
func (c *cluster) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble, c.outage, c.drain = 0, time.Time{}, 20*time.Millisecond
}

// TestCluster lets executors join, leave and die while messages get lost, calls end with errors,
// storage goes away and releases take long. The fakes check that no two executors own the same
// partition, and that calls for one partition do not overlap. Afterwards everything is owned,
// evenly, and at rest.
func TestCluster(t *testing.T) {
	tier.Slow(t)
	for seed := range uint64(clusterSeeds) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, seed) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	c := newCluster(t, seed, 1+int(seed%23), []time.Duration{time.Second, 3 * time.Second, 10 * time.Second}[seed%3])
	c.trouble = []float64{0, 0.02, 0.1}[seed/3%3]
	c.deaf = []float64{0, 0.3, 1}[seed/9%3]
	c.drain = []time.Duration{10 * time.Millisecond, 3 * time.Second}[seed/27%2]
	for i := range 1 + c.random(3) {
		c.start(fmt.Sprint("first", int(i)))
	}
	for i := range 25 {
		time.Sleep(c.random(4 * time.Second))
		nodes := c.alive()
		switch c.random(9) {
		case 0, 1, 2, 3:
			if len(nodes) < 8 {
				c.start(fmt.Sprint("node", i))
			}
		case 4, 5:
			if len(nodes) > 0 {
				nodes[int(c.random(time.Duration(len(nodes)-1)))].stop()
			}
		case 6, 7:
			if len(nodes) > 0 {
				nodes[int(c.random(time.Duration(len(nodes)-1)))].kill()
			}
		case 8:
			outage := time.Now().Add(c.random(2 * time.Second))
			c.mu.Lock()
			c.outage = outage
			c.mu.Unlock()
		case 9:
			c.mu.Lock()
			c.value = nil
			c.mu.Unlock()
		}
	}
	c.calm()
	if len(c.alive()) == 0 {
		c.start("last")
	}
	c.settle(90 * time.Second)
	c.rest()
	c.joinMovesTheFewest()
	c.end()
}

// rest checks that a settled cluster makes no calls but heartbeats, each with one check of others.
func (c *cluster) rest() {
	c.t.Helper()
	// Nodes stopped last may still drain, leave and announce it.
	time.Sleep(c.expiry + leaveTimeout + 3*time.Second + announceTimeout)
	synctest.Wait()
	c.mu.Lock()
	clear(c.calls)
	c.mu.Unlock()
	time.Sleep(time.Minute)
	synctest.Wait()
	nodes := len(c.alive())
	c.mu.Lock()
	defer c.mu.Unlock()
	most := nodes * int(time.Minute/(c.expiry/3)+2)
	if nodes == 1 {
		most = 0
	}
	if c.calls["alive"] > most {
		c.t.Errorf("%d looks at heartbeats in a minute of %d members, want at most %d", c.calls["alive"], nodes, most)
	}
	for name, n := range c.calls {
		if name != "alive" && name != "beat" && n > 0 {
			c.t.Errorf("%d calls of %s in a minute at rest", n, name)
		}
	}
}

func (c *cluster) joinMovesTheFewest() {
	c.t.Helper()
	owners := func() map[int]string {
		c.mu.Lock()
		defer c.mu.Unlock()
		m := map[int]string{}
		for p, n := range c.owner {
			m[p] = n.name
		}
		return m
	}
	before, n := owners(), len(c.alive())
	c.mu.Lock()
	c.releases = 0
	c.mu.Unlock()
	c.start("joins late")
	c.settle(time.Minute)
	moved := 0
	for p, name := range owners() {
		if before[p] != name {
			moved++
		}
	}
	if most := (c.partitions + n) / (n + 1); moved > most {
		c.t.Errorf("a join moved %d of %d partitions, %d may", moved, c.partitions, most)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.releases != moved {
		c.t.Errorf("a join that moves %d partitions released %d", moved, c.releases)
	}
}

func (n *node) isEnded() bool {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	return n.ended
}

func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 256, 10*time.Second)
		c.latency = time.Millisecond
		for i := range 16 {
			c.start(fmt.Sprint("node", i))
		}
		if took := c.settle(time.Minute); took > 5*time.Second {
			t.Errorf("256 partitions × 16 members settled after %v", took)
		} else {
			t.Logf("settled after %v", took)
		}
		c.end()
	})
}

func TestDeadMemberIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 16, 10*time.Second)
		c.deaf = 1
		for i := range 4 {
			c.start(fmt.Sprint("node", i))
		}
		c.settle(time.Minute)
		time.Sleep(c.random(10 * time.Second))
		begin := time.Now()
		c.alive()[2].kill()
		c.settle(time.Minute)
		if took := time.Since(begin); took > c.expiry+time.Second {
			t.Errorf("everything is owned again after %v, expiry is %v", took, c.expiry)
		}
		c.end()
	})
}

// A leave hands its partitions over in milliseconds: by message, not by timeout.
func TestLeaveIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 16, 10*time.Second)
		for i := range 3 {
			c.start(fmt.Sprint("node", i))
		}
		c.settle(time.Minute)
		leaver := c.alive()[0]
		leaver.stop()
		for !leaver.isEnded() {
			time.Sleep(time.Millisecond)
		}
		if took := c.settle(time.Minute); took > 200*time.Millisecond {
			t.Errorf("handed over %v after the drain's end", took)
		}
		c.end()
	})
}

// With storage out of reach Run ends when its releases have.
func TestStopWithoutStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 4, 10*time.Second)
		n := c.start("node")
		c.settle(time.Minute)
		c.mu.Lock()
		c.outage = time.Now().Add(time.Hour)
		c.mu.Unlock()
		begin := time.Now()
		n.stop()
		c.wg.Wait()
		if took := time.Since(begin); n.err != nil || took > 5*time.Second || c.releases != 4 {
			t.Errorf("ended after %v with %v and %d releases", took, n.err, c.releases)
		}
	})
}

func TestRunRefusesToJoin(t *testing.T) {
	tests := []struct {
		name, value string
		is          func(error) bool
	}{
		{"another version", `{"v":2}`, func(err error) bool { return errors.As(err, new(*versionError)) }},
		{"another number of partitions", `{"v":1,"partitions":9,"executors":{"x":{"expiry_ms":1000}}}`,
			func(err error) bool { return errors.As(err, new(*partitionsError)) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 1, 4, time.Second)
				c.value = []byte(test.value)
				c.beats["x"] = time.Now().Add(time.Hour)
				n := c.start("node")
				c.wg.Wait()
				if !test.is(n.err) {
					t.Errorf("Run ended with %v", n.err)
				}
				if string(c.value) != test.value {
					t.Errorf("the value became %s", c.value)
				}
			})
		})
	}
}

// An executor that finds an invalid membership waits, names the key, and joins once the key is
// deleted.
func TestRunWaitsForAReadableMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 4, time.Second)
		c.value = []byte("hello")
		n := c.start("node")
		time.Sleep(10 * time.Second)
		var unreadable *UnreadableError
		c.mu.Lock()
		co := n.co
		c.mu.Unlock()
		if s := co.State(); s.Joined || !errors.As(s.Err, &unreadable) || unreadable.Key != n.Key() {
			t.Errorf("state %+v, want one with an error that names %s", s, n.Key())
		}
		c.mu.Lock()
		c.value = nil
		c.mu.Unlock()
		time.Sleep(10 * time.Second)
		c.mu.Lock()
		co = n.co
		c.mu.Unlock()
		if s := co.State(); !s.Settled() || s.Err != nil {
			t.Errorf("state %+v, want a settled one", s)
		}
		n.stop()
		c.wg.Wait()
	})
}

func TestOnAssign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 2, time.Second)
		var heard []string
		n := &node{c: c, ctx: t.Context(), id: "a", lease: map[int]time.Time{}, busy: map[int]string{}}
		ctx, stop := context.WithCancel(t.Context())
		n.co = NewCoordinator(Config{ID: "a", Executor: Executor{Expiry: time.Second}, Partitions: 2, Store: n, Owner: n,
			OnAssign: func(generation int64, partitions []int) { heard = append(heard, fmt.Sprint(generation, partitions)) }})
		go func() { time.Sleep(time.Second); stop() }()
		if err := n.co.Run(ctx); err != nil {
			t.Error(err)
		}
		if want := []string{"1 [0 1]"}; !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
		if err := n.co.Run(t.Context()); err == nil {
			t.Error("a second Run was not refused")
		}
		n.co.Observe(nil)
		n.co.Notify(Message{})
		n.co.Lost(0)
	})
}
