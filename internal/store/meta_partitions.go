package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
)

// A MorePartitionsError reports that another program, such as one with Python's runnel, has more
// partitions of a stream than this app, which does not read what goes to the others.
type MorePartitionsError struct {
	Stream     string
	Own, There int
	Key        string // of the last partition
}

// Error names both numbers, the key that shows it, and the remedy.
func (e *MorePartitionsError) Error() string {
	return fmt.Sprintf("stream %s: this app has %d partitions of it, and Redis has %d, up to %s: nothing reads the others here, and keys go to other partitions; "+
		"give all programs the same number (Python's runnel stores none), or delete the keys from partition %d on if they are left over; %s",
		e.Stream, e.Own, e.There, e.Key, e.Own, help.StreamSettings)
}

// MorePartitions returns an error for each stream that has a partition beyond its number in own.
// Programs in other languages share streams with the standalone layout only.
func (c MetaStore) MorePartitions(ctx context.Context, own map[string]int) (more map[string]*MorePartitionsError, err error) {
	if c.keys.Layout != keys.Standalone || c.Clustered() {
		return nil, nil
	}
	more = map[string]*MorePartitionsError{}
	for step := 0; len(own) > 0; step++ {
		pipe, found := c.Retrying.Pipeline(), map[string]*redis.IntCmd{}
		for stream, n := range own {
			found[stream] = pipe.Exists(ctx, c.keys.Partition(stream, n+step))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, classify(err)
		}
		next := map[string]int{}
		for stream, n := range own {
			if found[stream].Val() > 0 {
				next[stream] = n
				more[stream] = &MorePartitionsError{stream, n, n + step + 1, c.keys.Partition(stream, n+step)}
			}
		}
		own = next
	}
	return more, nil
}

// Numbers returns the numbers of all partitions.
func (m Meta) Numbers() []int {
	all := make([]int, m.Partitions)
	for n := range all {
		all[n] = n
	}
	return all
}

// checkPartitions returns the *MorePartitionsError of one stream.
func (c MetaStore) checkPartitions(ctx context.Context, stream string, own int) error {
	more, err := c.MorePartitions(ctx, map[string]int{stream: own})
	if err == nil && more[stream] != nil {
		return more[stream]
	}
	return err
}
