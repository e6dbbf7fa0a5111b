package store

import (
	"context"
	"fmt"
	"time"
)

// A TaskStore stores how far durable tasks have come. internal/leader uses it.
type TaskStore struct{ *core }

// A TaskMark is how far a durable task has come.
type TaskMark struct {
	Claimed bool      // the due time is ours to run
	Last    time.Time // the last due time that was claimed, or when the task was first seen
	Now     time.Time // the server's time
}

// LookAtTask returns how far a durable task has come. The caller must be the leader, whose lock
// holds token, else the error is ErrFenced. It retries while its outcome is unknown.
func (c TaskStore) LookAtTask(ctx context.Context, token, name string) (TaskMark, error) {
	return c.markTask(ctx, name, token, "", 0)
}

// ClaimTask makes a due time the caller's to run, if last is still the last one and the time has
// come by the server's clock: of all that try, one has it, once. The caller must be the leader, as
// for LookAtTask. After ErrNotReplicated the task is not to be run yet. It retries while its
// outcome is unknown, and may be repeated until the outcome is known.
func (c TaskStore) ClaimTask(ctx context.Context, token, name string, last, due time.Time) (TaskMark, error) {
	return c.markTask(ctx, name, token, last.UnixMilli(), due.UnixMilli())
}

func (c TaskStore) markTask(ctx context.Context, name, token string, last any, due int64) (TaskMark, error) {
	var mark TaskMark
	err := persist(ctx, func() error {
		reply, err := c.BatchedReplicated.Run(ctx, taskScript, []string{c.keys.Tasks(), c.keys.Leader()}, name, token, last, due).Int64Slice()
		if err != nil {
			return classify(err)
		}
		if len(reply) != 3 {
			return fmt.Errorf("reply of %d values", len(reply))
		}
		mark = TaskMark{Claimed: reply[0] == 1, Last: time.UnixMilli(reply[1]).UTC(), Now: time.UnixMilli(reply[2]).UTC()}
		return nil
	})
	if err != nil {
		return TaskMark{}, fmt.Errorf("durable task %s: %w", name, err)
	}
	return mark, nil
}
