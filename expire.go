package runnel

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/verdict"
)

// OnExpire sets the function that is called when a row of the table ends: after its TTL, or
// at the time of Rows.SetUntil. The partition's owner calls it between two iterations, as one
// of its own, in the order of the partition's time: after all events that were appended
// before the row ends, and before any other. Where no event comes, Redis' clock says that
// the time has come. The row is gone by then, and ctx is good for Table.Rows and
// Stream.Emit: what fn changes and emits comes in one step with the end of the row, once.
// Rows.Now is the time at which the row ended.
//
// fn runs in the processor's own goroutine, never beside its function, and under its
// Timeout; middleware does not see the call. After an error nothing of it has happened.
// Without a Retry the policy decides as for an event; Ignore removes the row. With a Retry
// the partition waits for the next attempt, whatever its Order. After the last attempt, or
// DeadLetter, the row stays in the table without an end, and the log tells its key; after
// Drop it is removed. Attempts are counted in memory.
//
// It panics if fn is nil, if the table has a function already, and after Run.
func (t *Table[V]) OnExpire(fn func(ctx context.Context, key string, row V) error) {
	where := "runnel: stream " + t.of.name + ": table " + t.name + ": OnExpire: "
	if fn == nil {
		panic(where + "nil function")
	}
	t.of.app.register(func() {
		if t.expired != nil {
			panic(where + "the table has a function already")
		}
		t.expired = func(ctx context.Context, key string, row any) error { return fn(ctx, key, row.(V)) }
		t.config.Ends, t.config.Calls = true, true
	})
}

// expire ends the rows whose time comes before that of the entries that were taken, if any were. These may be of an earlier time
// than the partition has come to: parked ones are, and a takeover begins where events were passed.
func (c *consumer[T]) expire() error {
	r := c.src.Rows
	if r == nil {
		return nil
	}
	by := max(r.Now(), r.QuietTo())
	if len(c.rest) > 0 {
		by = max(r.Now(), entryid.Millis(c.rest[0].ID))
	}
	for attempt := 1; r.NextEnd() <= by; {
		err := c.endFirst(by, &attempt)
		if err == nil {
			continue
		}
		c.src.Interrupted()
		if c.policy == Quarantine && !errors.Is(err, errEnded) && c.ctx.Err() == nil {
			c.src.Quarantine(c.ctx, "", err)
			return errEnded
		}
		return err
	}
	return nil
}

// endFirst ends the first row that ends by then, or makes one of several attempts.
func (c *consumer[T]) endFirst(by int64, attempt *int) error {
	if !c.src.Live() { // there may be many
		return errEnded
	}
	e, ok, err := c.src.Rows.Ending(by)
	if !ok && err != nil {
		return errEnded
	}
	again := false
	if ok {
		again, err = c.end(e, err, *attempt)
	}
	if *attempt++; !again {
		*attempt = 1
	}
	if c.refused {
		return errEnded
	}
	return err
}

// end ends one row, which cannot be decoded if bad is not nil, or reports that another attempt is to be made. With an
// error nothing more is done.
func (c *consumer[T]) end(e rows.Ending, bad error, attempt int) (again bool, err error) {
	t := c.atomic.tables[e.Table]
	remove := func(in *rows.Table) error { in.Delete(e.Key); return nil }
	if !e.There {
		return false, c.ending(e, remove)
	}
	if c.src.Rows.Suspect {
		c.src.Rows.Suspect = false
		c.log.LogAttrs(c.ctx, slog.LevelInfo, "a row ends where an owner has ended", slog.Int("partition", c.src.Partition), slog.String("table", t.name), slog.String("key", e.Key))
	}
	failed := &rows.EndError{Table: t.name, Key: e.Key, At: e.At}
	if skip := c.src.Rows.Skip; skip != "" && skip == failed.Name() {
		failed.Err = errSkipped
		return false, c.keep(e, 0, failed)
	}
	if err = bad; err == nil {
		err = c.ending(e, func(in *rows.Table) error {
			in.Delete(e.Key)
			return c.within(c.ctx, t.name+"/"+e.Key, goroutineIf(c.timeout > 0), func(ctx context.Context) error { return t.expired(ctx, e.Key, e.Value) })
		})
	}
	if err == nil || c.refused {
		return false, err
	}
	failed.Err, err = err, failed
	f := judge(err, c.retry)
	switch {
	case c.ctx.Err() != nil:
		return false, err
	case f == nil && c.policy == Ignore, f != nil && f.Verdict == verdict.Drop:
		c.src.Ignored(c.ctx, 1, err)
		return false, c.ending(e, remove)
	case f == nil:
		return false, err
	case c.retry == nil || f.Verdict == verdict.Dead || attempt >= c.retry.Max:
		return false, c.keep(e, attempt, err)
	}
	wait := c.retry.Wait(attempt)
	if f.After != nil {
		wait = *f.After
	}
	c.log.LogAttrs(c.ctx, slog.LevelWarn, "attempt failed", slog.Int("partition", c.src.Partition),
		slog.Int("attempt", attempt), slog.Duration("wait", wait.Round(time.Millisecond)), slog.Any("err", err), slog.String("help", help.AttemptFailed))
	if !c.src.Wait(wait) {
		return false, errEnded
	}
	return true, nil
}

// errUnfinished is the error of a function that ends its goroutine instead of returning.
var errUnfinished = errors.New("the function ended its goroutine (runtime.Goexit)")

// errSkipped is why a row stays that an operator wants skipped.
var errSkipped = errors.New("it is skipped, as an operator said")

// keep lets a row that has ended stay for good, as the log tells.
func (c *consumer[T]) keep(e rows.Ending, attempt int, why error) error {
	c.atomic.tables[e.Table].config.Budget.Kept.Add(1)
	c.log.LogAttrs(c.ctx, slog.LevelError, "row kept without an end", slog.Int("partition", c.src.Partition),
		slog.Int("attempt", attempt), slog.Any("err", why), slog.String("help", help.RowKept))
	return c.ending(e, func(in *rows.Table) error { in.Keep(e.Key); return nil })
}

// ending is the iteration of a row that ends: what fn changes and emits is committed without an event, or undone.
func (c *consumer[T]) ending(e rows.Ending, fn func(in *rows.Table) error) (err error) {
	if !c.src.Holds() {
		return c.refuse()
	}
	if err := c.atomic.begin(nil, ""); err != nil {
		return err
	}
	c.atomic.mu.Lock()
	c.atomic.rows.BeginEnd(e.At)
	c.atomic.mu.Unlock()
	defer func() {
		if c.atomic.end(nil, &err); err == nil {
			c.atomic.settled()
			c.src.Commit()
		}
	}()
	defer recoverInto(&err)
	err = errUnfinished
	return fn(c.atomic.rows.Tables[e.Table])
}

// goroutineIf is goroutineID where it is needed: it takes its time.
func goroutineIf(needed bool) string {
	if !needed {
		return ""
	}
	return goroutineID()
}

// beforeEnds returns how many of the next n entries are before the end of a row that a function is called for; the
// first of them is.
func (b *batcher[T]) beforeEnds(n int) int {
	if b.src.Rows == nil || n < 2 {
		return n
	}
	e, ok, err := b.src.Rows.Ending(entryid.Millis(b.rest[n-1].ID))
	switch {
	case !ok && err != nil: // the ownership has ended
		return 1
	case !ok:
		return n
	}
	for i := range n {
		if entryid.Millis(b.rest[i].ID) >= e.At {
			return max(i, 1)
		}
	}
	return n
}

// due reports whether a row ends before an entry.
func (a *atomicState) due(id string) bool {
	return a != nil && a.rows.NextEnd() <= max(a.rows.Now(), entryid.Millis(id))
}

// furthestEnd is the last end of a row that Redis keeps exactly: scores are floats.
var furthestEnd = time.UnixMilli(1 << 53)

// SetUntil sets the row of a key until a time of the partition, at the earliest a millisecond
// behind Now, whatever the table's TTL is; the zero time: for good. It panics as Set does, and
// if the table has neither a TTL nor OnExpire.
func (r *Rows[V]) SetUntil(key string, row V, until time.Time) {
	r.mustChange("SetUntil", key)
	ms := int64(0)
	if !until.IsZero() {
		if until.After(furthestEnd) {
			until = furthestEnd
		}
		ms = max(until.UnixMilli(), r.c.rows.Now()+1)
	}
	if ms > 0 && !r.t.config.Ends {
		panic("runnel: table " + r.t.name + ": SetUntil: rows of the table do not end: give it a TTL, or OnExpire")
	}
	r.in.Set(key, row, ms)
}
