package worker

import (
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
)

// A timing measures the iterations of one partition's function, and the ages of events when they
// are done. The consumer's goroutine uses it.
type timing struct {
	to      *Latencies    // nil: nothing is measured
	behind  *atomic.Int64 // see latencyBook
	running *atomic.Int64 // see pauseGate
	taken   bool          // there are events for the function
	given   bool          // it has them
	counted string        // up to this ID repeated events were counted
}

func (t *timing) on() bool { return t.to != nil }

// begin notes that the function may run from now on; with events it is an iteration.
func (t *timing) begin() { t.given = t.taken }

// end notes that the function asks for more, or has failed.
func (t *timing) end(now int64) {
	given := t.given
	t.taken, t.given = false, false
	if t.to == nil || !given {
		return
	}
	if since := t.running.Load(); since != 0 {
		t.to.Handler.add(time.Duration(now - since))
	}
}

func (t *timing) endNow() {
	if t.on() {
		t.end(monotime.Now())
	}
}

// done notes that an event needs no more processing.
func (t *timing) done(id string, now int64) {
	if t.to == nil {
		return
	}
	if behind := t.behind.Load(); behind != 0 {
		t.to.Delay.add(time.Duration(max(now+behind-entryid.Millis(id)*int64(time.Millisecond), 0)))
	}
}
