package runnel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// ErrTimeout is in the chain of the cause of a context that
// ProcessorOptions.Timeout ended, and of the error that follows.
var ErrTimeout = errors.New("timeout of the iteration")

const (
	leastPatience = time.Second // before a function that ignores the end of its Timeout is reported
	stuckAgain    = time.Minute // between two reports of one that is stuck
	mostOfStacks  = 64 << 20
)

// deliver is resume for one iteration, bounded by the Timeout if there is one.
func (c *consumer[T]) deliver(d *delivery[T]) (asked bool, err error) {
	if c.timeout <= 0 {
		return c.resume(c.loop, d)
	}
	err = c.within(d.ctx, d.events[0].ID, c.goroutine, func(ctx context.Context) (err error) {
		d.ctx = ctx
		asked, err = c.resume(c.loop, d)
		return err
	})
	return asked, err
}

// within calls a function of the application, which runs in a goroutine, with the Timeout if there is one. event is
// what the call is about.
func (c *consumer[T]) within(ctx context.Context, event, goroutine string, call func(ctx context.Context) error) error {
	if c.timeout <= 0 {
		return call(ctx)
	}
	cause := fmt.Errorf("%w: it took longer than %v", ErrTimeout, c.timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, cause)
	defer cancel()
	defer c.watch(ctx, event, goroutine)()
	err := call(ctx)
	if err != nil && context.Cause(ctx) == cause {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// watch reports the function as stuck if it goes on for another Timeout after the
// end of the first, and then each minute, until the returned function is called.
func (c *consumer[T]) watch(ctx context.Context, event, goroutine string) (over func()) {
	began := time.Now()
	var mu sync.Mutex
	var ended bool
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(c.timeout+max(c.timeout, leastPatience), func() {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		c.src.Stuck(unscoped(ctx), event, time.Since(began), stackOf(goroutine))
		timer.Reset(stuckAgain)
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}
}

// goroutineID returns the name of the calling goroutine in stack traces.
func goroutineID() string {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	id, _, _ := strings.Cut(strings.TrimPrefix(string(text), "goroutine "), " ")
	return id
}

// stackOf returns the stack of one goroutine, "" if it has ended.
func stackOf(id string) string {
	size := 1 << 20
	for {
		all := make([]byte, size)
		n := runtime.Stack(all, true)
		if n == size && size < mostOfStacks {
			size *= 4
			continue
		}
		for one := range bytes.SplitSeq(all[:n], []byte("\n\n")) {
			if bytes.HasPrefix(one, []byte("goroutine "+id+" ")) {
				return string(one)
			}
		}
		return ""
	}
}
