package runnel

import (
	"context"
	"fmt"
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// RetryDead gives dead letters of a processor back to it, and to no other processor of
// the stream, and returns how many. Their events are attempted anew, from attempt 1, in
// their lanes: with OrderKey what comes later under their key waits for them. ids are
// "partition/ID" of the dead letters or of their events; without any all are meant, the
// oldest event first. What somebody else has retried, replayed or dropped meanwhile is
// passed over.
//
// It blocks until Redis has answered, may be called by any program of the app, and needs
// no worker: whoever runs the processor next runs them, also where it has no Retry; then
// OnError decides about those that fail again. As many events may be parked as Size says;
// an error there, as any other, leaves the rest as it was, and the call may be repeated.
func (a *App) RetryDead(ctx context.Context, stream, processor string, ids ...string) (int, error) {
	client, err := a.redis()
	if err != nil {
		return 0, err
	}
	meta, ok, err := client.LoadMeta(ctx, stream)
	switch {
	case err != nil:
		return 0, err
	case !ok || !slices.Contains(meta.Processors, processor):
		return 0, fmt.Errorf("stream %s: there is no processor %s", stream, processor)
	}
	letters, err := deadLetters(ctx, client, stream, processor, meta.Partitions, ids)
	if err != nil {
		return 0, err
	}
	done, owners := 0, map[int]store.Partition{}
	defer func() {
		for _, p := range owners {
			client.NotifyOwner(ctx, p)
		}
	}()
	for _, d := range letters {
		p := client.Partition(stream, processor, d.Partition)
		ok, err := client.Revive(ctx, p, d.Letter, meta.MaxLen)
		if err != nil {
			return done, err
		}
		if ok {
			done, owners[d.Partition] = done+1, p
		}
	}
	return done, nil
}

// deadLetters are those of a processor that ids name, or all of them.
func deadLetters(ctx context.Context, client *store.Client, stream, processor string, partitions int, ids []string) (letters []inspect.DeadState, err error) {
	filters := []inspect.Filter{{}}
	for n := range partitions {
		filters[0].Partitions = append(filters[0].Partitions, n)
	}
	if len(ids) > 0 {
		filters = nil
	}
	for _, id := range ids {
		n, entry, ok := entryid.ParseEventID(id)
		if !ok || n >= partitions {
			return nil, fmt.Errorf("stream %s: %q is no event, such as 3/1767225600000-0", stream, id)
		}
		filters = append(filters, inspect.Filter{Partitions: []int{n}, ID: entry})
	}
	for _, f := range filters {
		some, err := inspect.Dead(ctx, client, stream, processor, f, false)
		if err != nil {
			return nil, err
		}
		letters = append(letters, some...)
	}
	return letters, nil
}
