package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/operate"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
)

func setRule(kind rules.Kind) func(context.Context, *store.Client, *command) (string, error) {
	return func(ctx context.Context, c *store.Client, cmd *command) (string, error) {
		scope, err := rules.ParseScope(cmd.Scope)
		if err != nil {
			return "", badRequest("%v", err)
		}
		lasts := time.Duration(0)
		if cmd.For != "" {
			if lasts, err = time.ParseDuration(cmd.For); err != nil || lasts < time.Millisecond {
				return "", badRequest("%q is no time, such as 10m", cmd.For)
			}
		}
		r := rules.Rule{Kind: kind, Scope: scope, Who: cmp.Or(cmd.Who, "dashboard") + "@" + cmd.from, Why: cmd.Why}
		change, err := c.SetRule(ctx, r, lasts)
		if err != nil {
			return "", err
		}
		r.At, r.Until = change.At, change.Until
		return r.String(), nil
	}
}

func removeRule(kind rules.Kind) func(context.Context, *store.Client, *command) (string, error) {
	return func(ctx context.Context, c *store.Client, cmd *command) (string, error) {
		scope, err := rules.ParseScope(cmd.Scope)
		if err != nil {
			return "", badRequest("%v", err)
		}
		change, err := c.RemoveRule(ctx, kind, scope)
		switch {
		case err != nil:
			return "", err
		case !change.Was:
			return fmt.Sprintf("there was no %s of %s", kind, scope), nil
		}
		return fmt.Sprintf("the %s of %s is removed", kind, scope), nil
	}
}

func resume(ctx context.Context, c *store.Client, cmd *command) (string, error) {
	p, err := placeOf(ctx, c, cmd.Processor)
	if err != nil {
		return "", err
	}
	if cmd.Partition == nil || *cmd.Partition < 0 || *cmd.Partition >= p.meta.Partitions {
		return "", badRequest("which partition?")
	}
	q, ok, err := c.ReleaseQuarantine(ctx, c.Partition(p.stream, p.processor, *cmd.Partition), cmd.Skip)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", &requestError{http.StatusConflict, "it is not quarantined"}
	case cmd.Skip:
		return "resumed, event " + entryid.EventID(*cmd.Partition, q.Event) + " is passed over", nil
	}
	return "resumed", nil
}

// chosen are those of a list that a command names. It is an error if none is there.
func chosen[T any](cmd *command, list []T, name func(*T) string) ([]T, error) {
	var out []T
	for i := range list {
		if slices.Contains(cmd.IDs, name(&list[i])) {
			out = append(out, list[i])
		}
	}
	if len(out) == 0 {
		return nil, &requestError{http.StatusConflict, "none of them is there any more"}
	}
	return out, nil
}

// partitionsIn are those that the IDs of a command name, which must be of the stream.
func partitionsIn(cmd *command, meta store.Meta) ([]int, error) {
	var numbers []int
	for _, id := range cmd.IDs {
		n, _, ok := entryid.ParseEventID(id)
		if !ok || n >= meta.Partitions {
			return nil, badRequest("%q is no event, such as 3/1767225600000-0", id)
		}
		if !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return nil, badRequest("which events?")
	}
	slices.Sort(numbers)
	return numbers, nil
}

// letters are the dead letters that a command names.
func letters(ctx context.Context, c *store.Client, cmd *command) (place, []inspect.DeadState, error) {
	p, err := placeOf(ctx, c, cmd.Processor)
	if err != nil {
		return p, nil, err
	}
	partitions, err := partitionsIn(cmd, p.meta)
	if err != nil {
		return p, nil, err
	}
	all, err := inspect.Dead(ctx, c, p.stream, p.processor, inspect.Filter{Partitions: partitions}, false)
	if err != nil {
		return p, nil, err
	}
	some, err := chosen(cmd, all, func(d *inspect.DeadState) string { return d.ID })
	return p, some, err
}

func replay(ctx context.Context, c *store.Client, cmd *command) (string, error) {
	p, some, err := letters(ctx, c, cmd)
	if err != nil {
		return "", err
	}
	done, err := operate.Replay(ctx, c, p.processor, some, operate.Back(p.stream), false)
	return count(len(done), "dead letter") + " replayed", err
}

func retryDead(ctx context.Context, c *store.Client, cmd *command) (string, error) {
	p, some, err := letters(ctx, c, cmd)
	if err != nil {
		return "", err
	}
	done, err := operate.Retry(ctx, c, p.stream, p.processor, some, p.meta.MaxLen)
	return count(len(done), "dead letter") + " retried", err
}

func dropDead(ctx context.Context, c *store.Client, cmd *command) (string, error) {
	p, some, err := letters(ctx, c, cmd)
	if err != nil {
		return "", err
	}
	n, err := operate.Drop(ctx, c, p.stream, p.processor, some)
	return count(n, "dead letter") + " dropped", err
}

func changeParked(did string, change operate.ParkedChange) func(context.Context, *store.Client, *command) (string, error) {
	return func(ctx context.Context, c *store.Client, cmd *command) (string, error) {
		p, err := placeOf(ctx, c, cmd.Processor)
		if err != nil {
			return "", err
		}
		partitions, err := partitionsIn(cmd, p.meta)
		if err != nil {
			return "", err
		}
		all, err := inspect.Retries(ctx, c, p.stream, p.processor, inspect.Filter{Partitions: partitions})
		if err != nil {
			return "", err
		}
		some, err := chosen(cmd, all, func(s *inspect.RetryState) string { return s.Event })
		if err != nil {
			return "", err
		}
		done, err := operate.ChangeParked(ctx, c, p.stream, p.processor, some, change)
		return count(len(done), "event") + " " + did, err
	}
}

func changeDelayed(did string, change func(*store.Client, context.Context, string, int, string) (bool, error)) func(context.Context, *store.Client, *command) (string, error) {
	return func(ctx context.Context, c *store.Client, cmd *command) (string, error) {
		meta, err := streamOf(ctx, c, cmd.Stream)
		if err != nil {
			return "", err
		}
		done := 0
		for _, id := range cmd.IDs {
			partition, n, ok := store.ParseDelayedID(id)
			if !ok || partition >= meta.Partitions {
				return "", badRequest("%q is no delayed event, such as 3/0000000000000042", id)
			}
			waited, err := change(c, ctx, cmd.Stream, partition, n)
			if err != nil {
				return count(done, "event") + " " + did, err
			}
			if waited {
				done++
			}
		}
		if done == 0 {
			return "", &requestError{http.StatusConflict, "none of them waits any more"}
		}
		return count(done, "event") + " " + did, nil
	}
}

// count is "1 event" or "2 events".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
