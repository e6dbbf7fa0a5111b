package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// owningExpiry is the longest time that a call which crashed keeps workers from its partitions;
// workers shorten it to their own lease.
const owningExpiry = 30 * time.Second

// An owning owns partitions of a processor that no worker runs, for as long as it takes to change what only an
// owner may.
type owning struct {
	c                 *core
	client            *store.Client
	stream, processor string
	claim             store.Claim
	held              []store.Partition
}

// run locks the partitions, and calls do with each of them. It reads the members twice, as a worker may start at
// any time:
//
//  1. the processor has no live member; run begins to lock partitions;
//  2. a worker joins. If it takes a partition not yet locked, its lock stops run. If it
//     waits for a locked one, the second look finds it, and everything is given back unchanged;
//  3. a worker that joins after the second look waits for the locks, and begins with what do has done.
//
// do keeps owners before off by a takeover.
func (o *owning) run(ctx context.Context, numbers []int, doing string, do func(store.Partition) error) (err error) {
	o.claim = store.Claim{Executor: store.NewExecutorID(), Number: 1}
	if err := o.unchanged(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.unlock(ctx)) }()
	for i, n := range numbers {
		o.c.tell("locked", i, len(numbers))
		if err := o.lock(ctx, o.client.Partition(o.stream, o.processor, n)); err != nil {
			return err
		}
	}
	if err := o.unchanged(ctx); err != nil {
		return err
	}
	for i, p := range o.held {
		o.c.tell(doing, i, len(o.held))
		if err := do(p); err != nil {
			return err
		}
	}
	return nil
}

// unchanged is notRun before anything was changed.
func (o *owning) unchanged(ctx context.Context) error {
	if err := o.notRun(ctx); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return nil
}

// notRun returns an error while a worker runs the processor.
func (o *owning) notRun(ctx context.Context) error {
	_, members, err := inspect.Members(ctx, o.client, o.stream, o.processor)
	if err != nil {
		return err
	}
	var alive []string
	for _, m := range members {
		if m.Alive {
			alive = append(alive, fmt.Sprintf("%s (%s)", m.Worker, m.Executor))
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("stream %s: processor %s runs on %s: stop these workers first", o.stream, o.processor, strings.Join(alive, ", "))
	}
	return nil
}

func (o *owning) lock(ctx context.Context, p store.Partition) error {
	err := o.client.Lock(ctx, p, o.claim, owningExpiry, 0)
	if !errors.Is(err, store.ErrHeld) {
		o.held = append(o.held, p) // even of an unknown outcome: the lock may be ours
		return err
	}
	views, viewErr := o.client.Views(ctx, []store.Partition{p})
	if viewErr != nil || views[0].Owner == "" {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("stream %s partition %d: processor %s: owned by executor %s, whose lock expires in %s: stop its worker, or wait; nothing was changed",
		o.stream, p.Number, o.processor, views[0].Owner, views[0].LockLeft.Round(time.Second))
}

func (o *owning) unlock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), owningExpiry)
	defer cancel()
	var errs []error
	for _, p := range o.held {
		if err := o.client.Unlock(ctx, p, o.claim); err != nil {
			errs = append(errs, fmt.Errorf("%w; the lock expires in %s", err, owningExpiry))
		}
	}
	return errors.Join(errs...)
}
