// One server, and all that may happen to it, to workers and to what they say to each other.

//go:build unix

package exact_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// A fault of workers and of their connections, or of the server.
type fault struct {
	name string
	do   func(c *crew)
}

var workerFaults = []fault{
	{"kill", func(c *crew) { c.kill(c.pick()) }},
	{"term", func(c *crew) {
		if p := c.pick(); !p.stopped {
			c.terminate(p)
		}
	}},
	{"stop", func(c *crew) { c.freeze(c.pick(), lease+time.Duration(c.rng.Int64N(int64(lease)))) }},
	{"cut", func(c *crew) { c.pick().proxy.CutAll() }},
	{"replies lost", func(c *crew) {
		action := []faultproxy.Action{faultproxy.CloseAfter, faultproxy.Reset, faultproxy.Swallow}[c.rng.IntN(3)]
		for _, p := range c.live {
			c.commitOf(p, 1+c.rng.IntN(5), c.rng.IntN(2)).Do(action)
		}
	}},
	{"requests lost", func(c *crew) {
		for _, p := range c.live {
			c.commitOf(p, 1+c.rng.IntN(5), c.rng.IntN(2)).Do(faultproxy.CloseBefore)
		}
	}},
	{"late", func(c *crew) { c.late() }},
	{"late by itself", func(c *crew) {
		held := c.commitOf(c.pick(), 1, c.rng.IntN(2)).Do(faultproxy.Hold)
		c.rest(2 * lease)
		held.Release()
	}},
}

// commitOf makes a rule for the n-th commit of changes of a processor.
func (c *crew) commitOf(p *process, n, processor int, more ...string) *faultproxy.Rule {
	for _, key := range []string{c.keys.Ownership(streams[processor], processors[processor], 0), c.rowsOf(processor, "keys")[0]} {
		more = append(more, strings.Split(key, "0")...) // whatever the partition
	}
	return p.proxy.On("EVALSHA", n).Containing(more...)
}

func (c *crew) rest(d time.Duration) { <-time.After(d) }

// late holds a commit back, stops the worker until another one has the partition, and delivers it then. It must be
// refused. It reports false if nothing was committed.
func (c *crew) late() bool {
	processor, partition := 0, c.rng.IntN(c.setup.Parts[0])
	own := c.keys.Ownership(streams[processor], processors[processor], partition)
	var owner *process
	var held *faultproxy.Rule
	rules := map[*process]*faultproxy.Rule{}
	for _, p := range c.live {
		rules[p] = c.commitOf(p, 1, processor, "\r\n"+own+"\r\n").Do(faultproxy.Hold)
	}
	if !redistest.Within(3*lease, func() bool {
		for p, rule := range rules {
			select {
			case <-rule.Fired():
				owner, held = p, rule
				return true
			default:
			}
		}
		return false
	}) {
		owner = c.live[0] // there was nothing to commit
	}
	for p, rule := range rules {
		if p != owner {
			rule.Release()
		}
	}
	if held == nil {
		rules[owner].Release()
		return false
	}
	before := c.refused()
	tenure := c.rdb.HGet(c.t.Context(), own, "tenure").Val()
	c.freeze(owner, patience) // it may be the only one that can take the partition over, else
	redistest.Eventually(c.t, "a takeover of "+own, func() bool {
		c.reap(crewSize)
		return c.rdb.HGet(c.t.Context(), own, "tenure").Val() != tenure
	})
	held.Release()
	redistest.Eventually(c.t, "the late commit is refused", func() bool { return c.refused() > before })
	c.freeze(owner, 0)
	owner.stopped = false
	return true
}

// refused returns how often the server has said FENCED since it was started.
func (c *crew) refused() (n int) {
	info := c.rdb.Info(c.t.Context(), "errorstats").Val()
	_, behind, _ := strings.Cut(info, "errorstat_FENCED:count=")
	_, _ = fmt.Sscan(behind, &n) // else none
	return n
}

// serverFaults are those of a server that is alone.
func serverFaults(srv *redistest.Server) []fault {
	set := func(c *crew, name, value string) {
		if err := c.rdb.ConfigSet(c.t.Context(), name, value).Err(); err != nil {
			c.t.Error(err)
		}
	}
	return []fault{
		{"restart", func(c *crew) {
			c.excuse()
			srv.Kill()
			c.rest(time.Duration(c.rng.Int64N(int64(lease))))
			srv.Restart()
		}},
		{"scripts", func(c *crew) { c.rdb.ScriptFlush(c.t.Context()) }},
		{"connections", func(c *crew) { c.rdb.Do(c.t.Context(), "CLIENT", "KILL", "TYPE", "normal") }},
		{"groups", func(c *crew) {
			for i := range processors {
				key := c.keys.Partition(streams[i], c.rng.IntN(c.setup.Parts[i]))
				groups, _ := c.rdb.XInfoGroups(c.t.Context(), key).Result()
				for _, g := range groups {
					c.rdb.XGroupDestroy(c.t.Context(), key, g.Name)
				}
			}
		}},
		{"memory", func(c *crew) {
			c.excuse()
			set(c, "maxmemory", "1mb")
			c.rest(lease + time.Duration(c.rng.Int64N(int64(lease))))
			set(c, "maxmemory", "0")
		}},
		{"pause", func(c *crew) { c.paused(lease / 2) }},
	}
}

// excuse lets workers that start fail: they wait for a server that does not answer as long as they do at their start.
func (c *crew) excuse() {
	for _, p := range c.live {
		p.excused = true
	}
}

// paused pauses a processor for a while.
func (c *crew) paused(d time.Duration) {
	a := c.setup.declare(c.setup.URL)
	defer a.Close()
	i := c.rng.IntN(len(processors))
	scope := admin.ProcessorScope(streams[i], processors[i])
	if err := admin.New(a.App).Pause(c.t.Context(), scope, nil); err != nil {
		c.t.Error(err)
	}
	c.rest(d)
	if err := admin.New(a.App).Resume(c.t.Context(), scope); err != nil {
		c.t.Error(err)
	}
}

// hurt plays faults in random order, each so often, as long as events come.
func (c *crew) hurt(faults []fault, times int) {
	var deck []fault
	for range times {
		deck = append(deck, faults...)
	}
	c.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	for _, f := range deck {
		c.reap(crewSize)
		c.rest(time.Duration(100+c.rng.IntN(400)) * time.Millisecond)
		f.do(c)
	}
}

// Whatever happens to workers, to their connections and to the server, each event counts once. Commits of those that have lost their
// partition are refused.
func TestFaults(t *testing.T) {
	tier.Slow(t)
	t.Parallel()
	t.Run("in one step", func(t *testing.T) { faults(t, keys.Standalone) })
	t.Run("by outbox", func(t *testing.T) { faults(t, keys.Cluster) })
}

func faults(t *testing.T, layout string) {
	t.Parallel()
	c, srv := onServer(t, setup{Layout: layout})
	c.reap(crewSize)
	wait := c.produce(c.setup.URL, events(20_000), 10, 15*time.Millisecond)
	c.hurt(append(workerFaults, serverFaults(srv)...), 2)
	wait()
	wait = c.produce(c.setup.URL, c.sent+events(2_000), 10, 15*time.Millisecond)
	redistest.Eventually(t, "a commit that comes late", c.late)
	wait()
	c.finish(crewSize)
}
