package stage

import (
	"context"
	"runtime"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
	istage "github.com/runnel-go/runnel/internal/stage"
)

// call calls the Func.
func (t *turn) call(ctx context.Context, value any) (r Result, made any, err error) {
	began, late := time.Now(), t.o.own.Now().Sub(time.UnixMilli(t.v.At))
	r, made, err = t.s.call(ctx, value)
	t.s.count.called(time.Since(began), late)
	return r, made, err
}

// made stores what the Func has made, and reports whether to begin anew.
func (t *turn) made(r Result, made any, err error) (again bool) {
	switch {
	case err != nil && t.o.ctx.Err() != nil: // the ownership has ended, and the function was told so
		t.putBack()
	case err != nil:
		t.fail(err, retryqueue.ReasonFailed)
	case r.mode == istage.Leave:
		t.settle(untouched, t.after(r, nil)...)
	default:
		return t.change(r, made)
	}
	return false
}

// context returns the context of a Func.
func (t *turn) context() context.Context {
	_, epoch := t.o.own.At()
	due := time.UnixMilli(t.v.At)
	now := func() time.Time {
		if now := t.o.own.Now(); now.After(due) {
			return now
		}
		return due // by Redis' clock it is later
	}
	return context.WithValue(t.o.ctx, visitKey{}, &visitScope{now: now, visit: Visit{
		Set: t.o.set.name, Stage: t.v.Stage, ID: t.id, Partition: t.o.partition, Epoch: epoch,
		Version: t.now.version, Attempt: t.failure().Attempts + 1, Due: due,
	}})
}

// An earlyCall is the call of a visit's Func while the commit is under way that ends a touch and begins the
// visit: who saves one entity waits for one round trip less. What it made is used only if the visit began;
// otherwise the entity has the visit still before it, which calls the Func again.
type earlyCall struct {
	Result
	made any
	err  error
	done chan struct{} // closed when the Func has returned
	end  func()        // of the call as the pause gate counts it; may be called again
}

// callEarly calls the Func of the visit that begins with the end of this touch, and reports whether it did. The
// value is the Func's then. There is no early call where much is going on: another goroutine costs
// more than it saves there. Nor is there one of what a worker has died of, since until the commit is done
// Redis knows of the touch only, and would charge that.
func (t *turn) callEarly(value any) bool {
	v := t.begins
	if v == nil || t.failures[istage.Touch].Crashes > 0 || t.failures[v.Stage].Crashes > 0 || !t.lone() {
		return false
	}
	next, in := &turn{chain: t.chain, v: v, s: t.o.set.by[v.Stage]}, false
	if wants, err := next.s.wants(value); !wants || err != nil {
		return false
	}
	end, ok := t.o.own.Begin(v.Stage)
	if !ok {
		return false
	}
	ctx := next.context()
	if t.o.enter(&in); !in {
		end()
		return false
	}
	early := &earlyCall{err: errGoexit, done: make(chan struct{}), end: end}
	v.early = early
	go func() {
		defer close(early.done)
		defer t.o.leave(&in)
		early.Result, early.made, early.err = next.call(ctx, value)
	}()
	runtime.Gosched() // to the Func, before the commit is written
	return true
}

// awaitVain waits for a Func that was called early of a visit that did not begin: nothing comes of it, but
// functions of an entity run one at a time. It holds no place of a touch meanwhile.
func (c *chain) awaitVain() {
	if v := c.vain; v != nil {
		<-v.early.done
		c.o.mu.Lock()
		c.vain = nil
		c.o.mu.Unlock()
		v.early.end()
		c.o.giveBack(v.Stage, 1)
	}
}

// lone reports whether the owner visits no other entity.
func (c *chain) lone() bool {
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	return len(c.o.chains) == 1
}
