package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/words"
)

// A doer executes a command, and returns what was done.
type doer func(ctx context.Context, c *admin.Client, cmd *command) (string, error)

func setRule(kind admin.RuleKind) doer {
	return func(ctx context.Context, c *admin.Client, cmd *command) (string, error) {
		scope, err := admin.ParseScope(cmd.Scope)
		if err != nil {
			return "", badRequest("%v", err)
		}
		lasts := time.Duration(0)
		if cmd.For != "" {
			if lasts, err = time.ParseDuration(cmd.For); err != nil || lasts < time.Millisecond {
				return "", badRequest("%q is no time, such as 10m", cmd.For)
			}
		}
		change, err := c.SetRule(ctx, kind, scope, &admin.RuleOptions{Who: cmp.Or(cmd.Who, "dashboard") + "@" + cmd.from, Why: cmd.Why, For: lasts})
		if err != nil {
			return "", err
		}
		return change.Rule.String(), nil
	}
}

func removeRule(kind admin.RuleKind) doer {
	return func(ctx context.Context, c *admin.Client, cmd *command) (string, error) {
		scope, err := admin.ParseScope(cmd.Scope)
		if err != nil {
			return "", badRequest("%v", err)
		}
		change, err := c.RemoveRule(ctx, kind, scope)
		if err != nil {
			return "", err
		}
		return change.Removed(), nil
	}
}

func release(ctx context.Context, c *admin.Client, cmd *command) (string, error) {
	stream, processor, err := processorIn(cmd.Processor)
	if err != nil {
		return "", err
	}
	if cmd.Partition == nil {
		return "", badRequest("which partition?")
	}
	done, err := c.Release(ctx, stream, processor, *cmd.Partition, cmd.Skip)
	switch {
	case err != nil:
		return "", err
	case cmd.Skip && done.Event == "":
		return "resumed, the row stays without an end", nil
	case cmd.Skip:
		return "resumed, event " + done.Event + " is passed over", nil
	}
	return "resumed", nil
}

func processorIn(text string) (stream, processor string, err error) {
	stream, processor, _ = strings.Cut(text, "/")
	if stream == "" || processor == "" {
		return "", "", badRequest("which processor? say STREAM/PROCESSOR")
	}
	return stream, processor, nil
}

// chosen returns the elements of a list that a command names, and an error if there are none.
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

// among returns a filter for the partitions in the IDs of a command. They must be partitions of the
// stream.
func among(ctx context.Context, c *admin.Client, cmd *command, stream string) (*admin.Filter, error) {
	st, err := c.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	f := &admin.Filter{}
	for _, id := range cmd.IDs {
		n, _, ok := entryid.ParseEventID(id)
		if !ok || n >= st.Partitions {
			return nil, badRequest("%q is no event, such as 3/1767225600000-0", id)
		}
		if !slices.Contains(f.Partitions, n) {
			f.Partitions = append(f.Partitions, n)
		}
	}
	if len(f.Partitions) == 0 {
		return nil, badRequest("which events?")
	}
	slices.Sort(f.Partitions)
	return f, nil
}

// changeChosen returns a doer that calls change with the elements of a processor's list that a
// command names. what names an element, did what was done to it.
func changeChosen[L interface {
	List(context.Context, *admin.Filter) ([]T, error)
}, T, D any](what, did string, of func(c *admin.Client, stream, processor string) L, id func(*T) string, change func(L, context.Context, []T) ([]D, error)) doer {
	return func(ctx context.Context, c *admin.Client, cmd *command) (string, error) {
		stream, processor, err := processorIn(cmd.Processor)
		if err != nil {
			return "", err
		}
		f, err := among(ctx, c, cmd, stream)
		if err != nil {
			return "", err
		}
		list := of(c, stream, processor)
		all, err := list.List(ctx, f)
		if err != nil {
			return "", err
		}
		some, err := chosen(cmd, all, id)
		if err != nil {
			return "", err
		}
		done, err := change(list, ctx, some)
		return words.Plural(len(done), what) + " " + did, err
	}
}

func changeLetters[D any](did string, change func(*admin.DeadLetters, context.Context, []admin.DeadLetter) ([]D, error)) doer {
	return changeChosen("dead letter", did, (*admin.Client).DeadLetters, func(d *admin.DeadLetter) string { return d.ID }, change)
}

func replay(d *admin.DeadLetters, ctx context.Context, letters []admin.DeadLetter) ([]admin.Replayed, error) {
	return d.Replay(ctx, letters, nil)
}

func changeParked(did string, change func(*admin.Parked, context.Context, []admin.ParkedEvent) ([]admin.ParkedEvent, error)) doer {
	return changeChosen("event", did, (*admin.Client).Parked, func(e *admin.ParkedEvent) string { return e.Event }, change)
}

func changeDelayed(did string, change func(*admin.Delayed, context.Context, ...string) ([]string, error)) doer {
	return func(ctx context.Context, c *admin.Client, cmd *command) (string, error) {
		if cmd.Stream == "" {
			return "", badRequest("which stream?")
		}
		done, err := change(c.Delayed(cmd.Stream), ctx, cmd.IDs...)
		var bad *admin.DelayedIDError
		switch {
		case errors.As(err, &bad):
			return "", badRequest("%v", err)
		case err == nil && len(done) == 0:
			return "", &requestError{http.StatusConflict, "none of them waits any more"}
		}
		return words.Plural(len(done), "event") + " " + did, err
	}
}
