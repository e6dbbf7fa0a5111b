package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
)

// longRunning is how long an iteration takes before heartbeats report it.
const longRunning = 10 * time.Second

// A pauseGate keeps the user's function from running while its partition is paused or blocked.
//
// A consumer that enters stores that it runs and then reads the flag; a rule that closes the
// gate sets the flag and then reads what runs. So at least one of the two sees the other.
type pauseGate struct {
	held    atomic.Bool  // no call of the function may begin
	running atomic.Int64 // since when it may run, by monotime; 0: it does not
	stuck   atomic.Bool  // it ignores that its Timeout is over
	changed func()       // called when the content of heartbeats changes
	opened  func()       // called when the gate was opened
}

func (g *pauseGate) hold(held bool) {
	if g.held.Swap(held) && !held {
		g.opened()
	}
}

// enter reports whether the function may run from now on, a time by monotime. If not, opened is
// called later.
func (g *pauseGate) enter(now int64) bool {
	if g.held.Load() {
		g.leave()
		return false
	}
	g.running.Store(now)
	if g.held.Load() {
		g.leave()
		return false
	}
	return true
}

// leave notes that the function does not run.
func (g *pauseGate) leave() {
	if g.running.Swap(0) == 0 {
		return
	}
	g.stuck.Store(false)
	if g.held.Load() {
		g.changed()
	}
}

// Stuck reports a function that ignores the end of its Timeout.
func (s *partitionSource) Stuck(ctx context.Context, event string, after time.Duration, stack string) {
	if !s.p.stuck.Swap(true) {
		s.p.count.Stuck.Add(1)
	}
	s.p.log.ErrorContext(ctx, "function is stuck", "op", "timeout",
		"event", entryid.EventID(s.p.keys.Number, event), "after", after.Round(time.Millisecond), "stack", stack, "help", help.FunctionStuck)
	s.p.changed() // heartbeats report it
}

// calls are what runs of a partition beside its consumer, behind gates by name. A call notes that it
// runs and then reads the gates, a rule closes gates and then reads what runs, all under mu: see
// pauseGate.
type calls struct {
	mu     sync.Mutex
	gates  map[string]bool // closed?
	run    map[*call]bool
	change chan struct{}
}

type call struct {
	gate  string
	since int64 // by monotime
}

func (c *calls) init(gates []string) {
	c.gates, c.run, c.change = map[string]bool{}, map[*call]bool{}, make(chan struct{})
	for _, gate := range gates {
		c.gates[gate] = true // until the rules were read
	}
}

// closed reports whether a call is held back; mu is held.
func (c *calls) closed(gate string, processor *atomic.Bool) bool {
	return processor.Load() || c.gates[gate]
}

func (c *calls) begin(one *call, processor *atomic.Bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed(one.gate, processor) {
		return false
	}
	c.run[one] = true
	return true
}

// end reports whether the call, which ends for the first time, was held back meanwhile.
func (c *calls) end(one *call, processor *atomic.Bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.run[one] {
		return false
	}
	delete(c.run, one)
	return c.closed(one.gate, processor)
}

func (c *calls) heldBack(gate string, processor *atomic.Bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed(gate, processor)
}

func (c *calls) changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.change
}

// hold closes and opens the gates, all of them with the processor's.
func (c *calls) hold(processor *pauseGate, held bool, closed func(gate string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := processor.held.Load() != held
	processor.hold(held)
	for gate, was := range c.gates {
		c.gates[gate] = closed(gate)
		changed = changed || c.gates[gate] != was
	}
	if changed {
		close(c.change)
		c.change = make(chan struct{})
	}
}

// running returns since when the first of the calls runs, 0 for none, and reports whether one of them
// is held back.
func (c *calls) running(processor *atomic.Bool) (since int64, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.run {
		if since == 0 || one.since < since {
			since = one.since
		}
		held = held || c.closed(one.gate, processor)
	}
	return since, held
}
