package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/rebalance"
)

// An executor is this worker's instance of one processor. It has one member after the other,
// each with an executor ID of its own. A surprising loss ends a member, since commands of
// unknown outcome may still be under way under its ID.
type executor struct {
	w     *Worker
	p     *Processor
	log   *slog.Logger
	count *Counters

	latencies   latencyBook
	rejoinPause time.Duration // the last one of waitBlind

	mu      sync.Mutex
	current *member // nil between two
	blind   error   // why it cannot read, nil if it can

	history history
}

func newExecutor(w *Worker, p *Processor) *executor {
	return &executor{
		w: w, p: p, log: w.log.With("stream", p.Stream, "processor", p.Name), count: new(Counters),
		latencies: latencyBook{on: w.cfg.Latencies, of: map[int]*Latencies{}},
	}
}

// errTooLate is the error of a takeover that waited too long for replicas or a reply. The next
// try begins with the lock. If the partition moves to another worker, Release gives it back.
var errTooLate = errors.New("takeover confirmed after its lease expired")

var errLeaseEnded = errors.New("lease expired: no refresh reached Redis in time")

// errRejoin is the cause of a member's end when the executor goes on.
var errRejoin = errors.New("rejoin under a new executor ID")

// run takes part until ctx ends, or until an error that retrying cannot help.
func (x *executor) run(ctx context.Context) error {
	pace := outage.New(slog.New(slog.DiscardHandler), "rejoining", nil)
	retry := outage.New(x.log, "metadata", &x.count.Errors)
	for {
		m := newMember(x)
		m.open(ctx)
		x.set(m)
		err := m.run(ctx)
		x.set(nil)
		rejoin := errors.Is(err, errRejoin) || errors.Is(err, rebalance.ErrAbsent)
		switch {
		case ctx.Err() != nil && (err == nil || rejoin):
			return nil
		case !rejoin:
			return x.wrap(err)
		}
		x.count.Rejoins.Add(1)
		x.log.Warn("rejoining", "member", m.id, "err", err)
		if m.lasted() {
			pace.Recovered()
		}
		pace.Wait(ctx, err)
		if errors.Is(err, errNotReading) {
			x.waitBlind(ctx, m)
		}
		if err := x.w.ensure(ctx, x.p.Stream, retry); err != nil {
			return x.wrap(err)
		}
	}
}

func (x *executor) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s: processor %s: %w", x.p.Stream, x.p.Name, err)
}

func (x *executor) set(m *member) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.current = m
}

func (x *executor) member() *member {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.current
}
