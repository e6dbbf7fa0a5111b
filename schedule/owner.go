package schedule

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/outage"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/worker"
)

// factsPerBatch is how many facts share their round trips.
const factsPerBatch = 256

// fireAgain is how long after an error what is due in the heap is tried again. Runs start meanwhile: a full server refuses only what grows.
const fireAgain = time.Second

// An owner works for one partition and one ownership. Its loop fires what is due, takes runs for the crew, and sleeps until there may be
// more: the take that found nothing has stored until when, and scripts wake it for what is earlier.
type owner struct {
	s         *Scheduler
	own       *worker.Ownership
	ctx       context.Context
	log       *slog.Logger
	partition int
	fence     string
	ended     atomic.Bool // facts have been applied since the last look

	memory  memory
	lists   map[string][]int64 // of what catches up, by ID in the heap
	firing  *outage.Outage     // of what is due in the heap
	unfired time.Time          // when that failed last

	asks  int // for how many runs it asks next
	first int // priority of the first run that could not be taken, for the crew; negative: none
}

func newOwner(ctx context.Context, s *Scheduler, own *worker.Ownership) *owner {
	n, _ := own.At()
	return &owner{
		s: s, own: own, ctx: ctx, log: own.Log(), partition: n, fence: own.Fence(),
		lists: map[string][]int64{}, asks: fewestAsked, first: -1, firing: outage.New(own.Log(), "triggers", nil),
	}
}

// apply applies the facts of a batch, again until that succeeds. Its error is that of the end of the ownership.
func (o *owner) apply(batch []*runnel.Event) error {
	var facts []ischedule.Fact
	for _, e := range batch {
		f, err := ischedule.FactOf(o.partition, e.ID, e.Fields())
		if err != nil {
			o.log.Error("fact is not readable", "event", e.ID, "err", err)
		} else if f.Source != "" {
			facts = append(facts, f)
		}
	}
	if len(facts) == 0 {
		return nil
	}
	o.ended.Store(true)
	tokens := ischedule.Tokens(facts, o.s.partition)
	outage.Retry(o.ctx, o.log, "facts", func() error {
		_, err := o.s.calls.Apply(o.ctx, tokens)
		return err
	})
	return o.ctx.Err()
}

// run works until the ownership ends.
func (o *owner) run() {
	defer o.s.crew.forget(o)
	o.s.crew.expiry.Store(int64(o.own.Expiry()))
	outage.Retry(o.ctx, o.log, "jobs", o.remember)
	if o.partition == 0 { // after FLUSHALL it is taken over anew
		var register sync.WaitGroup
		register.Go(func() { o.s.crew.register(o.ctx) })
		defer register.Wait()
	}
	unknown := true
	look := func() (next time.Duration, err error) {
		if next, err = o.look(unknown); err == nil {
			unknown = false
		}
		return next, err
	}
	o.own.Run(o.ctx, "schedule", look, func(err error) bool {
		o.s.crew.forget(o)
		return o.over(err)
	})
}

// over reports whether an error, or the end of the ownership, means that the owner does nothing more.
func (o *owner) over(err error) bool { return o.own.Over(o.ctx, err) }

// look does what there is to do now, and returns how long until there is more.
func (o *owner) look(unknown bool) (next time.Duration, err error) {
	expiry := o.own.Expiry() // a failover may forget that the owner sleeps
	if !o.own.Open("") {
		o.s.crew.forget(o)
		return expiry, nil // until a rule changes
	}
	for {
		t := &ischedule.Take{Partition: o.partition, Fence: o.fence, Runner: o.s.crew.runner, Life: o.s.crew.life(), Sleep: true, Unknown: unknown}
		end, open := o.own.Begin(ischedule.GateRuns)
		if open {
			t.Most, t.MostBackfill = o.s.crew.reserve(o)
			end()
		}
		began := time.Now()
		err := o.s.calls.Take(o.ctx, t)
		o.s.crew.begin(o, t, began, open, err)
		lost := t.Recovered + t.Crashed
		if lost > 0 {
			o.log.Warn("runs lost their worker", "runs", t.Recovered, "crashed", t.Crashed)
		}
		if err != nil {
			return 0, err
		}
		more := lost == ischedule.PerCall // perhaps
		unknown = unknown && more
		due := t.Next == 0 && time.Since(o.unfired) >= fireAgain // in the heap
		if due {
			switch err := o.fire(); {
			case err == nil:
				o.firing.Recovered()
			case o.over(err):
				return 0, err
			default:
				o.firing.Failed(o.ctx, err)
				o.unfired = time.Now()
			}
		}
		if due || more || len(t.Runs) > 0 {
			continue
		}
		next = expiry
		switch {
		case t.Next == 0:
			next = min(next, fireAgain)
		case t.Next > 0:
			next = min(next, t.Next)
		}
		if o.ended.Swap(false) {
			o.memory.busy = true
		}
		wait, err := o.forget()
		if err == nil && wait >= 0 {
			next = min(next, wait)
		}
		return next, err
	}
}
