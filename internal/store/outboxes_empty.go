package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// ErrOutputs is returned if an outbox has something that has not come where it is for.
var ErrOutputs = errors.New("its outbox is not empty")

// An OutputsLeftError tells which outputs of a partition cannot be brought away.
type OutputsLeftError struct {
	From  Partition
	To    StreamPartition // that takes none
	Count int64           // in the outbox, for To and others
	Err   error           // why
}

// Error names both partitions, how much waits and why.
func (e *OutputsLeftError) Error() string {
	return e.From.wrap("outbox", fmt.Errorf("%d committed outputs wait, and partition %d of stream %s takes none: %w", e.Count, e.To.Partition, e.To.Stream, e.Err)).Error()
}

// Unwrap returns Err.
func (e *OutputsLeftError) Unwrap() error { return e.Err }

// emptyPatience is how long nothing may come before EmptyOutboxes gives up.
const emptyPatience = 2 * time.Second

// EmptyOutboxes brings all that is in the outboxes of partitions, which need have no owner, to where it is for, and returns how many
// outputs came. It blocks, some seconds where a target takes nothing: then it returns an *OutputsLeftError. What is left comes by another
// call, or by the next owner.
func (c *Client) EmptyOutboxes(ctx context.Context, ps []Partition) (came int64, err error) {
	waiting, err := c.Outputs(ctx, ps)
	if err != nil {
		return 0, err
	}
	for i, p := range ps {
		if waiting[i] == 0 {
			continue
		}
		n, err := c.emptyOutbox(ctx, p)
		if came += n; err != nil {
			return came, err
		}
	}
	return came, nil
}

func (c *Client) emptyOutbox(ctx context.Context, p Partition) (came int64, err error) {
	courier, left := c.NewCourier(p), &OutputsLeftError{From: p}
	courier.Failed = func(to StreamPartition, err error) {
		if err != nil {
			left.To, left.Err = to, err
		}
	}
	last := monotime.Now()
	for {
		n, again, err := courier.Round(ctx)
		if came += n; n > 0 {
			last = monotime.Now()
		}
		switch {
		case err != nil:
			return came, err
		case again < 0:
			return came, nil
		case left.Err != nil && time.Duration(monotime.Now()-last) > emptyPatience:
			counts, err := c.Outputs(ctx, []Partition{p})
			left.Count = counts[0]
			return came, cmp.Or[error](err, left)
		case !monotime.Sleep(ctx, again):
			return came, p.wrap("outbox", context.Cause(ctx))
		}
	}
}
