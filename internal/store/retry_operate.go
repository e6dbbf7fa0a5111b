package store

import (
	"context"
	"fmt"
	"slices"
)

// RetryNow makes the events of ids that wait for their time due at once, and returns their IDs. It
// skips an event that runs, that stands behind another one of its lane, or that is gone. The owner
// learns of the change from LeaseResult.OperatorVersion, or sooner. RetryNow may be repeated.
func (c Operator) RetryNow(ctx context.Context, p Partition, ids []string) (due []string, err error) {
	defer func() {
		if len(due) > 0 {
			Control(c).NotifyOwner(ctx, p)
		}
	}()
	for some := range slices.Chunk(ids, statesAtOnce) {
		part, err := c.retryNow(ctx, p, some)
		due = append(due, part...)
		if err != nil {
			return due, p.wrap("retry now", err)
		}
	}
	return due, nil
}

// retryNow goes on until no event is left to change: the owner may write states meanwhile.
func (c Operator) retryNow(ctx context.Context, p Partition, ids []string) (due []string, err error) {
	for len(ids) > 0 {
		stored, err := c.Retrying.HMGet(ctx, p.Retry, ids...).Result()
		if err != nil {
			return due, classify(err)
		}
		var waiting []string
		var args []any
		for i, id := range ids {
			text, ok := stored[i].(string)
			if !ok {
				continue
			}
			s, err := parseRetry(id, text)
			if err != nil {
				return due, err
			}
			if s.Running || s.At == 0 {
				continue
			}
			s.At = 1
			now, err := s.encode()
			if err != nil {
				return due, err
			}
			waiting, args = append(waiting, id), append(args, id, text, now)
		}
		changed, err := c.amend(ctx, p, args)
		if err != nil {
			return due, err
		}
		ids = nil
		for i, id := range waiting {
			if changed[i] == 1 {
				due = append(due, id)
			} else {
				ids = append(ids, id)
			}
		}
	}
	return due, nil
}

func (c Operator) amend(ctx context.Context, p Partition, args []any) (changed []int64, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	err = persist(ctx, func() error {
		var err error
		changed, err = amendScript.Run(ctx, c.NoRetry, []string{p.Own, p.Retry}, args...).Int64Slice()
		if err == nil && len(changed) != len(args)/3 {
			err = fmt.Errorf("unexpected reply of %d values", len(changed))
		}
		return classify(err)
	})
	return changed, err
}

// DropParked removes parked events for good. An event that runs goes on to its end and is not run
// again. The owner learns of it as of RetryNow. It returns those that it removed, even with an error; after
// a lost reply also those that it may have. DropParked may be repeated.
func (c Operator) DropParked(ctx context.Context, p Partition, ids []string) (dropped []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	defer Control(c).NotifyOwner(ctx, p)
	for some := range slices.Chunk(ids, statesAtOnce) {
		var there []int64
		tries := 0
		err := persist(ctx, func() (err error) {
			tries++
			there, err = dropScript.Run(ctx, c.NoRetry, []string{p.Own, p.Parked, p.Retry}, appendTexts(nil, some)...).Int64Slice()
			return classify(err)
		})
		if err != nil {
			return dropped, p.wrap("drop parked events", err)
		}
		for i, id := range some {
			if there[i] == 1 || tries > 1 {
				dropped = append(dropped, id)
			}
		}
	}
	return dropped, nil
}
