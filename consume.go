package runnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/coro"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/worker"
)

// consumer runs a ProcessFunc over one partition for one ownership: it joins the
// source, the middleware, the user's loop and the ack.
//
// The loop runs as a coroutine. One turn of run is: the loop has made a request (want),
// entries are taken and decoded, the middleware is called with them, and the innermost
// Handler resumes the loop until its next request. So an iteration of the user's loop is
// one call of the Handler.
type consumer[T any] struct {
	batcher[T]
	processor string
	fn        ProcessFunc[T]
	timeout   time.Duration // of an iteration, 0: none
	log       *slog.Logger
	worker    string // its name

	ctx       context.Context
	scope     *scope
	atomic    *atomicState                   // nil unless the processor is Atomic
	goroutine string                         // the one that runs fn, if there is a timeout
	loop      *coro.Loop[want, *delivery[T]] // nil while fn does not run

	refused bool     // nothing may be processed any more, and nothing of the current batch is done
	inside  bool     // the loop is in an iteration
	fresh   bool     // see ahead
	ids     []string // scratch

	// inner is held while the innermost Handler runs; open reports whether it may run.
	inner sync.Mutex
	open  bool
}

// errEnded is returned if the ownership ended while the loop was being (re)started.
var errEnded = errors.New("ownership ended")

func (c *consumer[T]) run(ctx context.Context, middleware []Middleware) (err error) {
	c.scope = &scope{
		app: c.stream.app.name, in: c.stream.app, worker: c.worker, stream: c.stream.name, processor: c.processor, partition: c.src.Partition, atomic: c.atomic,
	}
	c.ctx = context.WithValue(ctx, scopeKey{}, c.scope)
	handle := chain(c.handle, middleware)
	c.head = Batch{Processor: c.processor, Stream: c.stream.name, Partition: c.src.Partition, Epoch: c.src.Epoch}
	c.only, c.out.ctx = c.head, c.ctx
	defer c.forget()
	defer func() {
		if c.loop != nil { // an error that did not come from the loop: its code behind it runs all the same
			if late := c.stop(io.EOF); err == nil {
				err = c.ended(late)
			}
		}
	}()
	for {
		if err := c.ready(); err != nil {
			return c.ended(err)
		}
		if err := c.take(); err != nil {
			return c.ended(c.stop(err))
		}
		if err := c.expire(); err != nil {
			return c.ended(err)
		}
		if len(c.rest) == 0 {
			continue // no event waits, and rows have ended
		}
		if c.form(c.ctx) != nil {
			c.rest = nil
			return c.ended(c.stop(io.EOF))
		}
		c.scope.event.Store(c.events[0])
		err := c.call(handle)
		c.scope.event.Store(nil)
		if err := c.settle(err); err != nil {
			return c.ended(err)
		}
	}
}

// ended returns nil for an error that follows from the end of the ownership; any other it
// wraps with stream, partition and processor.
func (c *consumer[T]) ended(err error) error {
	switch {
	case err == nil || errors.Is(err, errEnded):
		return nil
	case c.ctx.Err() != nil:
		// The partition was lost or the grace period is over: the function is expected to
		// return an error, and its events belong to the next owner.
		c.log.LogAttrs(c.ctx, slog.LevelWarn, "processor ended late", slog.Any("cause", context.Cause(c.ctx)), slog.Any("err", err))
		return nil
	}
	return fmt.Errorf("stream %s partition %d processor %s: %w", c.stream.name, c.src.Partition, c.processor, err)
}

// ready calls fn, if it is not running, up to its first request. An error there is no
// event's fault.
func (c *consumer[T]) ready() error {
	for wait := time.Second; c.loop == nil; wait = min(2*wait, 30*time.Second) {
		select {
		case <-c.src.Ending:
			return errEnded
		default:
		}
		err := c.start()
		switch {
		case err == nil:
			return nil
		case c.refused:
			return errEnded
		case c.policy == Halt || errors.Is(err, ErrNotConsumed):
			return err
		case c.policy == Quarantine:
			c.src.Quarantine(unscoped(c.ctx), "", err)
			return errEnded
		}
		c.src.Ignored(unscoped(c.ctx), 0, err)
		select {
		case <-c.src.Ending:
			return errEnded
		case <-time.After(wait):
		}
	}
	return nil
}

// start begins a call of fn and runs it up to its first request. It blocks while the
// partition is paused.
func (c *consumer[T]) start() error {
	if !c.src.Holds() {
		return c.refuse()
	}
	events := &Events[T]{partition: c.src.Partition, ctx: c.ctx}
	loop := coro.New(func(ask func(want) (*delivery[T], bool)) (err error) {
		defer recoverInto(&err) // here, where the stack is still that of the panic
		events.ask = func(w want) *delivery[T] {
			if d := c.ahead(w); d != nil {
				return d // under the same context
			}
			d, _ := ask(w)
			if d != nil {
				events.ctx = d.ctx
			}
			return d
		}
		if c.timeout > 0 {
			c.goroutine = goroutineID()
		}
		return c.fn(c.ctx, events)
	})
	asked, err := c.resume(loop, nil)
	switch {
	case asked:
		c.loop = loop
		return nil
	case err == nil:
		return ErrNotConsumed
	}
	return err
}

// resume runs the loop until its next request or its return; a panic is an error.
func (c *consumer[T]) resume(loop *coro.Loop[want, *delivery[T]], d *delivery[T]) (asked bool, err error) {
	defer recoverInto(&err)
	w, asked := loop.Resume(d)
	if !asked {
		return false, loop.Err()
	}
	c.want = w
	return true, nil
}

func recoverInto(err *error) {
	if v := recover(); v != nil {
		if f, ok := v.(rows.Failure); ok {
			*err = f.Err
			return
		}
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

// stop ends the loop normally, with the ownership: code after the loop runs.
func (c *consumer[T]) stop(end error) (err error) {
	if !errors.Is(end, io.EOF) {
		return end
	}
	loop := c.loop
	c.loop = nil
	defer recoverInto(&err)
	return loop.Stop()
}

// errLateNext is returned to a middleware that calls next after its own call has
// returned, or with events of another batch.
var errLateNext = errors.New("next was called for events that are not those of the current iteration")

// call runs the middleware and the loop over the current batch. It returns when both have
// returned. It also waits for a call of next that the middleware abandoned: otherwise two
// events of the partition would be processed at once.
func (c *consumer[T]) call(handle Handler) (err error) {
	c.inner.Lock()
	c.open, c.out.ctx = true, c.ctx
	c.inner.Unlock()
	defer func() {
		c.inner.Lock()
		c.open = false
		c.inner.Unlock()
	}()
	defer recoverInto(&err)
	return handle(c.ctx, c.batch)
}

// handle is the innermost Handler: one iteration of the user's loop, or, called
// again, the iteration that a new call of fn makes of the same batch.
func (c *consumer[T]) handle(ctx context.Context, b *Batch) (err error) {
	c.inner.Lock()
	defer c.inner.Unlock()
	if !c.open {
		return errLateNext
	}
	c.out.ctx = ctx
	for _, e := range b.Events {
		if e == nil || e.index >= len(c.events) || c.events[e.index] != e {
			return errLateNext
		}
	}
	if c.bad != nil {
		return c.bad
	}
	for _, e := range b.Events {
		e.Attempt++
	}
	if err := c.atomic.begin(b.Events, c.events[len(c.events)-1].ID); err != nil {
		return err
	}
	c.atomic.ask(b.Events)
	defer func() { c.atomic.end(b.Events, &err) }()
	for events := b.Events; len(events) > 0; {
		if c.loop == nil {
			if err := c.start(); err != nil {
				return err
			}
		}
		// Called again, fn may request fewer events at a time than before.
		n := min(len(events), c.want.n)
		d := &c.out
		*d = delivery[T]{ctx: ctx, events: events[:n:n]}
		if !c.want.raw {
			records, err := c.recordsOf(events[:n])
			if err != nil {
				return err
			}
			d.records = records
		}
		events = events[n:]
		// Decoding and middleware took their time since the entries were taken.
		if !c.src.Holds() {
			return c.refuse()
		}
		c.inside = true
		asked, err := c.deliver(d)
		c.inside = false
		if asked {
			continue
		}
		c.loop = nil
		if err != nil {
			return err
		}
	}
	return nil
}

// refuse returns the error that middleware gets when a call of fn may not begin.
func (c *consumer[T]) refuse() error {
	c.refused = true
	return context.Cause(c.ctx)
}

// settle acks what the Handler's result allows, or applies the policy.
func (c *consumer[T]) settle(err error) error {
	all := &Batch{Events: c.events} // whatever middleware made of the other one
	if c.refused {
		c.src.Interrupted()
		return errEnded // not even if middleware makes nil of the error
	}
	if c.inside { // where middleware called the function in a goroutine of its own, that has ended it
		c.inside, c.loop = false, nil
		if err == nil {
			err = coro.ErrExited
		}
	}
	if err == nil {
		c.atomic.settled()
		c.ack(c.events)
		return nil
	}
	c.atomic.undo()
	if c.ctx.Err() != nil {
		// The partition is lost, or its grace is over: the next owner decides.
		c.src.Interrupted()
		return fmt.Errorf("event %s: %w", c.events[0].name(), err)
	}
	failed := all.Failed(err)
	if c.atomic != nil {
		failed = c.events // whose change is whose cannot be told
	}
	if len(failed) == 0 {
		c.log.LogAttrs(unscoped(c.out.ctx), slog.LevelWarn, "error of no event of the batch", slog.Any("err", err), slog.String("help", help.ErrorOfNoEvent))
		c.ack(c.events)
		return nil
	}
	if f := judge(err, c.retry); f != nil {
		return c.fail(failed, *f)
	}
	if c.policy == Ignore && !errors.Is(err, ErrNotConsumed) {
		c.src.Ignored(unscoped(c.out.ctx), len(failed), fmt.Errorf("event %s: %w", failed[0].name(), err))
		c.ack(c.events)
		return nil
	}
	c.src.Interrupted()
	if c.policy == Quarantine && !errors.Is(err, ErrNotConsumed) {
		c.ackOthers(failed)
		c.src.Quarantine(unscoped(c.out.ctx), failed[0].ID, fmt.Errorf("event %s: %w", failed[0].name(), err))
		return errEnded
	}
	c.ackOthers(failed)
	return &worker.EventError{Stream: c.stream.name, Processor: c.processor, Partition: failed[0].Partition, ID: failed[0].ID, Err: err}
}

// fail reports the failed events to the source, and acks the others of the batch.
func (c *consumer[T]) fail(failed []*Event, f retryqueue.Failure) error {
	failures := make([]retryqueue.Failure, len(failed))
	for i, e := range failed {
		failures[i] = f
		failures[i].Entry = redisconn.Entry{ID: e.ID, Values: e.values}
	}
	err := c.src.Fail(unscoped(c.out.ctx), failures)
	c.ackOthers(failed)
	if err != nil {
		return errEnded
	}
	return nil
}

func (c *consumer[T]) ack(events []*Event) {
	c.ids = c.ids[:0]
	for _, e := range events {
		c.ids = append(c.ids, e.ID)
	}
	if len(c.ids) > 0 {
		c.src.Ack(c.ids)
	}
}

// ackOthers acks the events of the batch that did not fail.
func (c *consumer[T]) ackOthers(failed []*Event) {
	var others []*Event
	for _, e := range c.events {
		if len(failed) > 0 && e == failed[0] {
			failed = failed[1:] // which has the order of the batch
			continue
		}
		others = append(others, e)
	}
	c.ack(others)
}
