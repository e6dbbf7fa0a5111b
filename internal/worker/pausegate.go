package worker

import (
	"context"
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
