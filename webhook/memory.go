package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	memoryEvery = 10 * time.Second // the leader looks at it
	dropAtOnce  = 1000             // events of a log
	mostDrops   = 1000             // between two looks
)

// A janitor is what the leader does for a bus.
type janitor struct{ *Bus }

// spare drops the oldest events of nodes that use too much memory, whoever needs them: those are dropped for who is furthest behind first.
func (b janitor) spare(ctx context.Context) error {
	if err := b.ready(ctx); err != nil {
		return err
	}
	nodes, err := b.calls.Client().Nodes(ctx)
	for _, node := range nodes {
		if err := b.spareNode(ctx, node); err != nil {
			return fmt.Errorf("memory of %s: %w", node.Addr, err)
		}
	}
	return err
}

func (b janitor) spareNode(ctx context.Context, node redisconn.Node) error {
	used, n, err := int64(0), int64(0), error(nil)
	dropped, most := int64(0), b.opts.MaxMemory-b.opts.MinFree
	for range mostDrops {
		if used, err = usedMemory(ctx, node); err != nil || used <= most {
			break
		}
		if n, err = b.dropOldest(ctx, node.Addr); err != nil || n == 0 { // none: what takes the memory is none of ours
			break
		}
		dropped, most = dropped+n, b.opts.MaxMemory-2*b.opts.MinFree
	}
	if dropped > 0 {
		b.log.Warn("events dropped, memory is short", "events", dropped, "server", node.Addr)
	}
	return err
}

// dropOldest drops events of the log on a node that has the oldest, and returns how many.
func (b janitor) dropOldest(ctx context.Context, addr string) (int64, error) {
	client := b.calls.Client()
	topics, err := buses.Topics(ctx, b.calls)
	topics = slices.DeleteFunc(topics, func(t buses.TopicState) bool {
		return t.Length == 0 || client.Clustered() && client.NodeOf(b.calls.Key(t.Topic)) != addr
	})
	if err != nil || len(topics) == 0 {
		return 0, err
	}
	oldest := slices.MinFunc(topics, func(a, b buses.TopicState) int { return a.Oldest.Compare(b.Oldest) })
	return b.calls.Drop(ctx, oldest.Topic, dropAtOnce)
}

// usedMemory returns how many bytes a server uses.
func usedMemory(ctx context.Context, node redisconn.Node) (int64, error) {
	info := node.Redis.InfoMap(ctx, "memory")
	if info.Err() != nil {
		return 0, info.Err()
	}
	return strconv.ParseInt(info.Item("Memory", "used_memory"), 10, 64)
}
