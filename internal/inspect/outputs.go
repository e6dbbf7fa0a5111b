package inspect

import (
	"context"
	"slices"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// HasOutboxes reports whether partitions of a processor may have outboxes: only those of an Atomic one, under names with hash
// tags. No other processor costs a request.
func HasOutboxes(c *store.Client, m store.Meta, processor string) bool {
	return c.UsesOutboxes() && slices.Contains(m.Atomic, processor)
}

// Outboxes returns how many outputs wait in the outboxes of a processor's partitions, where there are some, by number. The state
// of one that does not tell gets the reason.
func Outboxes(ctx context.Context, c *store.Client, places []store.Partition, seen []PartitionState) (found map[int]int64, err error) {
	waiting, failed := c.Outputs(ctx, places)
	if failed != nil && !redisconn.IsReply(failed) {
		return nil, failed
	}
	for i, p := range places {
		if n := waiting[i]; n > 0 {
			if found == nil {
				found = map[int]int64{}
			}
			found[p.Number] = n
		}
		if failed == nil || seen[i].Err != "" {
			continue
		}
		if _, err := c.Outputs(ctx, []store.Partition{p}); err != nil {
			seen[i].Err = err.Error()
		}
	}
	return found, nil
}

// Waiting returns how many outputs wait in outboxes together.
func Waiting(outboxes map[int]int64) (total int64) {
	for _, n := range outboxes {
		total += n
	}
	return total
}

// waits says how many outputs wait.
func waits(n int64) string {
	if n == 1 {
		return "1 output waits"
	}
	return words.Plural(n, "output") + " wait"
}
