package webhook

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
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
	used, err := usedMemory(ctx, node)
	if err != nil || used <= b.opts.MaxMemory-b.opts.MinFree {
		return err
	}
	dropped, n := int64(0), int64(0)
	for range mostDrops {
		if n, err = b.dropOldest(ctx, node.Addr); err != nil || n == 0 { // none: what takes the memory is none of ours
			break
		}
		dropped += n
		if used, err = usedMemory(ctx, node); err != nil || used < b.opts.MaxMemory-2*b.opts.MinFree {
			break
		}
	}
	b.log.Warn("events dropped, memory is short", "events", dropped, "server", node.Addr)
	return err
}

// dropOldest drops events of the log on a node that has the oldest, and returns how many.
func (b janitor) dropOldest(ctx context.Context, addr string) (int64, error) {
	topics, err := b.calls.Topics(ctx)
	if err != nil {
		return 0, err
	}
	var logs []iwebhook.Log
	for name := range topics {
		log := b.logOf(name)
		if client := b.calls.Client(); !client.Clustered() || client.NodeOf(b.calls.Key(log)) == addr {
			logs = append(logs, log)
		}
	}
	extents, err := b.calls.Extents(ctx, logs)
	var oldest iwebhook.Log
	for log, e := range extents {
		if first := extents[oldest].First; e.First.N > 0 && (first.N == 0 || e.First.MS < first.MS) {
			oldest = log
		}
	}
	if err != nil || oldest.Topic == "" {
		return 0, err
	}
	return b.calls.Drop(ctx, oldest, dropAtOnce)
}

// usedMemory returns how many bytes a server uses.
func usedMemory(ctx context.Context, node redisconn.Node) (int64, error) {
	info := node.Redis.InfoMap(ctx, "memory")
	if info.Err() != nil {
		return 0, info.Err()
	}
	return strconv.ParseInt(info.Item("Memory", "used_memory"), 10, 64)
}
