package inspect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	backLogs  = 256 // partitions per round trip
	backFirst = 1   // entries of each partition at first, doubled each time
	backMost  = 64
)

// A Back reads the entries of some partitions from the newest to the oldest: within a partition
// exactly, between partitions by the clocks of their IDs. It reads little more than it returns, and
// takes no entry from any processor. It is for use by one goroutine.
type Back struct {
	client *store.Client
	parts  []*backed
	pace   Pace
	stock  stock
}

type backed struct {
	number  int
	log     string
	from    string // newest ID not read
	page    int
	entries []redisconn.Entry
	dry     bool // nothing is older
}

// NewBack begins at an entry ID in each partition, or at the ends if from is "".
func NewBack(c *store.Client, stream string, partitions []int, from string) *Back {
	b := &Back{client: c}
	for _, n := range partitions {
		b.parts = append(b.parts, &backed{number: n, log: c.Keys().Partition(stream, n), from: cmp.Or(from, "+"), page: backFirst})
	}
	return b
}

// Next returns the next older entry, or false if there is none.
func (b *Back) Next(ctx context.Context) (TailedEvent, bool, error) {
	if err := b.fill(ctx); err != nil {
		return TailedEvent{}, false, err
	}
	var first *backed
	for _, p := range b.parts {
		if len(p.entries) > 0 && (first == nil || entryid.Compare(p.entries[0].ID, first.entries[0].ID) > 0) {
			first = p
		}
	}
	if first == nil {
		return TailedEvent{}, false, nil
	}
	e, err := b.stock.take(ctx, b.client, first.log, first.entries[0])
	first.entries = first.entries[1:]
	return TailedEvent{first.number, e}, err == nil, err
}

// fill reads from every partition whose next entry is unknown.
func (b *Back) fill(ctx context.Context) error {
	var empty []*backed
	for _, p := range b.parts {
		if len(p.entries) == 0 && !p.dry {
			empty = append(empty, p)
		}
	}
	for len(empty) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := b.pace.Next(len(empty) * backMost)
		some := empty[:min(len(empty), n, backLogs)]
		if err := b.read(ctx, some, n/len(some)); err != nil {
			return err
		}
		empty = empty[len(some):]
	}
	return nil
}

// read reads at most most entries of each partition.
func (b *Back) read(ctx context.Context, some []*backed, most int) error {
	pipe := b.client.Redis().Pipeline()
	replies := make([]*redis.XMessageSliceCmd, len(some))
	for i, p := range some {
		p.page = min(p.page, most)
		replies[i] = pipe.XRevRangeN(ctx, p.log, p.from, "-", int64(p.page))
	}
	pipe.Exec(ctx) // every reply carries its error
	read, bytes := 0, int64(0)
	for i, p := range some {
		entries, err := replies[i].Result()
		if err != nil {
			return fmt.Errorf("read %s backwards: %w", p.log, err)
		}
		read, bytes = read+len(entries), bytes+bytesOfAll(entries)
		p.entries, p.dry = entries, len(entries) < p.page
		p.page = min(2*p.page, backMost)
		for k, e := range entries {
			p.entries[k] = b.stock.put(e)
		}
		if len(entries) > 0 {
			p.from = entryid.Before(entries[len(entries)-1].ID)
		}
		p.dry = p.dry || p.from == "0-0"
	}
	b.pace.Came(read, bytes)
	return nil
}
