package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/targets"
	"github.com/runnel-go/runnel/internal/words"
)

// part returns the part of an extension that a request names as a processor, nil for a processor.
func (d *dashboard) part(ctx context.Context, c *store.Client, name string) (*extension.Target, error) {
	stream, processor, err := processorIn(name)
	if err != nil || len(extension.All(d.own)) == 0 {
		return nil, err
	}
	t, err := targets.Find(ctx, d.own, c, d.admin, stream, processor)
	if err != nil || targets.OfCore(t) {
		return nil, err
	}
	return t, nil
}

// ofPart returns a handler for what failed at parts of extensions, as of has it, and for what failed at
// processors, as core lists it.
func (d *dashboard) ofPart(of func(*extension.Target) extension.FailureStore, core lister) lister {
	return func(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
		q := r.URL.Query()
		t, err := d.part(ctx, c, q.Get("processor"))
		if err != nil {
			return nil, err
		}
		if t == nil {
			return core(ctx, c, r)
		}
		limit, err := limitOf(r)
		if err != nil || of(t) == nil {
			return listedAside[extension.Failure]{List: []extension.Failure{}}, err
		}
		f := extension.Filter{Key: keyOf(r), ID: q.Get("id"), Error: q.Get("error"), Limit: limit + 1}
		if text := q.Get("partition"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, badRequest("%q is no partition", text)
			}
			f.Partitions = []int{n}
		}
		list, err := targets.Chosen(ctx, of(t), f)
		for i := range list {
			list[i].Error, list[i].Key = cut(list[i].Error, recordInList).Text, cut(list[i].Key, recordInList).Text
		}
		return asked(list, limit), err
	}
}

func parkedAt(t *extension.Target) extension.FailureStore { return t.Parked }
func deadAt(t *extension.Target) extension.FailureStore   { return t.Dead }

// partActions are the actions that parts of extensions know, too.
var partActions = map[string]struct {
	of   func(*extension.Target) extension.FailureStore
	do   func(extension.FailureStore, context.Context, []extension.Failure) ([]extension.Failure, error)
	dead bool
	did  string
}{
	"retry-dead":  {deadAt, extension.FailureStore.Retry, true, "retried"},
	"drop":        {deadAt, extension.FailureStore.Drop, true, "dropped"},
	"retry-now":   {parkedAt, extension.FailureStore.Retry, false, "due now"},
	"drop-parked": {parkedAt, extension.FailureStore.Drop, false, "given up"},
}

// onPart does an action on a part of an extension, or do where the command names a processor.
func (d *dashboard) onPart(ctx context.Context, c *store.Client, name string, cmd *command, do doer) (string, error) {
	todo, known := partActions[name]
	if !known {
		return do(ctx, d.admin, cmd)
	}
	t, err := d.part(ctx, c, cmd.Processor)
	if err != nil {
		return "", err
	}
	if t == nil {
		return do(ctx, d.admin, cmd)
	}
	if todo.of(t) == nil {
		return "", badRequest("%s has none", cmd.Processor)
	}
	var all []extension.Failure
	for f, err := range todo.of(t).List(ctx, extension.Filter{}) {
		if err != nil {
			return "", err
		}
		if slices.Contains(cmd.IDs, f.ID) {
			all = append(all, f)
		}
	}
	if all, err = chosen(cmd, all, func(f *extension.Failure) string { return f.ID }); err != nil {
		return "", err
	}
	done, err := todo.do(todo.of(t), ctx, all)
	noun := t.Noun
	if todo.dead {
		noun = "dead letter"
	}
	return words.Plural(len(done), noun) + " " + todo.did, err
}
