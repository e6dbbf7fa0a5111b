package stage

import (
	"errors"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
	istage "github.com/runnel-go/runnel/internal/stage"
)

var errCrash = errors.New("its worker ended, or lost the partition, while the function ran")

// recover charges a crash to what ran under the ownership before, which an ownership that ends cleanly
// leaves none of. It must be done before the first take.
func (o *owner) recover() error {
	runs, err := o.set.calls.Runs(o.calls, o.partition)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(runs, takenAtOnce) {
		stored, err := o.set.calls.Failures(o.calls, o.partition, some)
		if err != nil {
			return err
		}
		c := &istage.Commit{Partition: o.partition, Fence: o.own.Fence()}
		for i, v := range some {
			end, err := o.crashed(&v, stored[i])
			if err != nil {
				return err
			}
			c.Ends = append(c.Ends, end)
		}
		if o.set.calls.Commit(o.calls, c); c.Err != nil {
			return c.Err
		}
	}
	return nil
}

// crashed returns the End of a visit that ran when its owner died. The first crash in a row costs no
// wait. A visit dies of crashes only if it ran alone at the last one: another visit may have ended the
// worker otherwise.
func (o *owner) crashed(v *istage.Visit, stored string) (istage.End, error) {
	var f failure
	if found, err := istage.ParseFailure(stored); err == nil && !found.Dead { // else it was revived
		f = failure(found)
	}
	crashes := f.Crashes + 1
	f = f.failed(o.own.Now(), errCrash, retryqueue.ReasonCrash, f.Version)
	f.Crashes = crashes
	retry, wait := o.set.retry, new(time.Duration)
	if s := o.set.by[v.Stage]; s != nil {
		retry = s.retry
		f.Dead = f.Attempts >= retry.Max && v.Alone
	}
	if crashes > 1 {
		wait = nil
	}
	if f.Dead {
		now, err := o.set.get(o.calls, o.partition, v.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return istage.End{}, err
		}
		f.Version = now.version
		o.set.counted(v.Stage, dead)
	}
	o.log.Warn("visit ended its worker", "stage", named(v.Stage), "entity", v.ID, "attempt", f.Attempts, "dead", f.Dead)
	return istage.End{ID: v.ID, Number: v.Number, Settle: []istage.Settlement{f.settle(v.Stage, retry, wait)}}, nil
}

// recount looks for visits that run in Redis though no chain has them: their take's reply was lost, or
// its request came late. They wait again, uncharged. running is how many ran when no chain was expected
// to.
func (o *owner) recount(running int64) {
	o.mu.Lock()
	look := o.unknown || running > 0 && len(o.chains) == 0
	o.unknown = false
	o.mu.Unlock()
	if !look {
		return
	}
	runs, err := o.set.calls.Runs(o.calls, o.partition)
	if err != nil {
		o.doubt()
		return
	}
	type run struct {
		stage, id string
		number    int64
	}
	has := map[run]bool{}
	o.mu.Lock()
	for _, c := range o.chains {
		for _, v := range c.waiting {
			has[run{v.Stage, v.ID, v.Number}] = true
		}
		if c.runs != nil {
			has[run{c.runs.Stage, c.id, c.runs.Number}] = true
		}
	}
	o.mu.Unlock()
	for _, v := range runs {
		if !has[run{v.Stage, v.ID, v.Number}] {
			o.running.Go(func() { o.commit(waitAgain(&v)) })
		}
	}
}

// waitAgain is the End of a visit that waits again as if it had not begun.
func waitAgain(v *istage.Visit) *istage.End {
	due := istage.At(time.UnixMilli(v.At))
	return &istage.End{ID: v.ID, Number: v.Number, Settle: []istage.Settlement{{Stage: v.Stage, What: istage.Waits, Due: due}}}
}
