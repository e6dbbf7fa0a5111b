package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

var (
	addScript  = NewScript(`return { KEYS[1], redis.call('INCRBY', KEYS[1], ARGV[1]) }`)
	ownScript  = NewScript(`local no = fence(KEYS[1], ARGV[1]) if no then return no end even_if_full(KEYS[1]) redis.call('HSET', KEYS[1], 'x', 'y')`, Fence)
	wakeUp     = NewScript(`return wake(KEYS[1], KEYS[2], ARGV[1])`, Wake)
	laterAgain = NewScript(`local now = time_now() return time_in(5) - now`, Times)
)

func TestScriptsOfExtensions(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for round := range 2 {
			var calls []*ScriptCall
			for i := range 300 {
				calls = append(calls, &ScriptCall{Script: addScript, Keys: []string{fmt.Sprint("k", i%7)}, Args: []any{1}, Confirm: i == 9})
			}
			e.Run(e.ctx(), calls...)
			for i, c := range calls {
				e.must(c.Err)
				equal(t, "reply", fmt.Sprint(c.Reply), fmt.Sprintf("[k%d %d]", i%7, i/7+1+round*(len(calls)+6-i%7)/7))
			}
			e.must(e.raw.ScriptFlush(e.ctx()).Err())
		}
		later := &ScriptCall{Script: laterAgain, Keys: []string{"k"}}
		e.Run(e.ctx(), later)
		// At least 5 ms; the clock of the embedded server goes on within a script.
		if ms, _ := later.Reply.(int64); later.Err != nil || ms < 5 || ms > 60_000 {
			t.Errorf("%v, %v", later.Reply, later.Err)
		}
		e.Run(e.ctx())
	})
}

func TestFenceOfExtensions(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(e.raw.HSet(e.ctx(), "own", "tenure", "a:1").Err())
		if e.real {
			e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
		}
		call := func(own, value string) *ScriptCall {
			return &ScriptCall{Script: ownScript, Keys: []string{own}, Args: []any{value}}
		}
		ours, theirs, none := call("own", "a:1"), call("own", "b:1"), call("other", "a:1")
		e.Run(e.ctx(), ours, theirs, none)
		if ours.Err != nil || ours.Reply != nil || e.raw.HGet(e.ctx(), "own", "x").Val() != "y" {
			t.Errorf("of the owner: %v, %v", ours.Reply, ours.Err)
		}
		for _, c := range []*ScriptCall{theirs, none} {
			if !errors.Is(c.Err, ErrFenced) {
				t.Errorf("of another: %v, %v", c.Reply, c.Err)
			}
		}
	})
}

// An owner that sleeps until later is woken once.
func TestWakeOfExtensions(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		wakes := func(at int) any {
			c := &ScriptCall{Script: wakeUp, Keys: []string{"log", "own"}, Args: []any{at}}
			e.Run(e.ctx(), c)
			e.must(c.Err)
			return c.Reply
		}
		equal(t, "an owner that never slept", wakes(1), any(int64(0)))
		e.must(e.raw.HSet(e.ctx(), "own", "sleeps", "5000").Err())
		equal(t, "not before it wakes by itself", wakes(5000), any(int64(0)))
		equal(t, "before", wakes(4999), any(int64(1)))
		equal(t, "awake", wakes(1), any(int64(0)))
		equal(t, "wakes", e.raw.XLen(e.ctx(), "log").Val(), int64(1))
	})
}

// The reply to one trip is lost: Run says so, and the scripts have run once.
func TestRunRepeatsNothingOfUnknownOutcome(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		proxy, c := e.behindProxy()
		c.Run(e.ctx(), &ScriptCall{Script: addScript, Keys: []string{"k"}, Args: []any{1}}) // so that the server knows it
		proxy.On("EVALSHA", 1).Do(faultproxy.CloseAfter)
		calls := []*ScriptCall{{Script: addScript, Keys: []string{"k"}, Args: []any{1}}, {Script: addScript, Keys: []string{"l"}, Args: []any{1}}}
		c.Run(e.ctx(), calls...)
		for _, call := range calls {
			if !errors.Is(call.Err, redisconn.ErrUnknownOutcome) {
				t.Errorf("%v, %v", call.Reply, call.Err)
			}
		}
		equal(t, "k", e.raw.Get(e.ctx(), "k").Val(), "2")
	})
}
