package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// metaAge is how old a sender's metadata may be, and so how long a new MaxLen takes to reach all.
const metaAge = 10 * time.Second

// A metaCache holds the metadata that was read last, by stream.
type metaCache struct {
	mu sync.Mutex
	m  map[string]readMeta
}

type readMeta struct {
	Meta
	at      time.Time
	refused error // why this client must not work with the stream
}

func (c *metaCache) load(stream string) (m readMeta, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok = c.m[stream]
	return m, ok
}

// store keeps metadata that was just read, zero for none; refused is why not to use the stream.
func (c *metaCache) store(stream string, m Meta, refused error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]readMeta{}
	}
	c.m[stream] = readMeta{m, time.Now(), refused}
}

func (c *metaCache) forget(stream string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, stream)
}

// ErrNoPartition is the error of outputs for a partition that their stream does not have any more: no processor would read it.
var ErrNoPartition = errors.New("the stream was made anew")

// mostOf returns how many entries the partition of an output may have, 0 for any number: a processor never waits for room in its
// own stream.
func (c MetaStore) mostOf(ctx context.Context, own string, to StreamPartition) (int64, error) {
	if to.Stream == own {
		return 0, nil
	}
	meta, err := c.recentMeta(ctx, to.Stream)
	if err == nil && meta.Partitions > 0 && to.Partition >= meta.Partitions {
		err = fmt.Errorf("%w, and has %d partitions", ErrNoPartition, meta.Partitions)
	}
	return meta.MaxLen, err
}

// recentMeta returns the metadata of a stream as it was a moment ago. If there is none any more, or
// it cannot be read, it returns the last known one, zero if there never was any. A stream whose
// keys have other names by now, or are about to, is refused.
func (c MetaStore) recentMeta(ctx context.Context, stream string) (Meta, error) {
	if stream == "" {
		return Meta{}, nil
	}
	old, known := c.metas.load(stream)
	if known && time.Since(old.at) < metaAge {
		return old.Meta, old.refused
	}
	m, ok, err := c.loadMeta(ctx, c.NoRetry, stream)
	switch {
	case ok:
		return m, c.refused(stream, m.Layout)
	case err != nil && !known:
		return Meta{}, err
	case err == nil:
		if gone := (*MetaConflictError)(nil); errors.As(c.checkLayout(ctx, stream), &gone) {
			return old.Meta, gone
		}
		c.metas.store(stream, old.Meta, old.refused)
	}
	return old.Meta, nil
}
