package webhook

import (
	"context"
	"fmt"
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
	used, err := iwebhook.UsedMemory(ctx, node)
	if err != nil || used <= b.opts.MaxMemory-b.opts.MinFree {
		return err
	}
	logs, err := b.logsOn(ctx, node.Addr)
	if err != nil {
		return err
	}
	var dropped int64
	for range mostDrops {
		if used, err = iwebhook.UsedMemory(ctx, node); err != nil || used < b.opts.MaxMemory-2*b.opts.MinFree {
			break
		}
		extents, err := b.calls.Extents(ctx, logs)
		if err != nil {
			return err
		}
		var oldest iwebhook.Log
		for log, e := range extents {
			if first := extents[oldest].First; e.First.N > 0 && (first.N == 0 || e.First.MS < first.MS) {
				oldest = log
			}
		}
		if oldest.Topic == "" {
			break // what takes the memory is none of ours
		}
		n, err := b.calls.Drop(ctx, oldest, dropAtOnce)
		if err != nil {
			return err
		}
		dropped += n
	}
	b.log.Warn("events dropped, memory is short", "events", dropped, "server", node.Addr)
	return err
}

// logsOn returns the logs of topics that a node has.
func (b janitor) logsOn(ctx context.Context, addr string) (logs []iwebhook.Log, err error) {
	topics, err := b.calls.Topics(ctx)
	for name := range topics {
		log := b.logOf(name)
		if client := b.calls.Client(); !client.Clustered() || client.NodeOf(b.calls.Key(log)) == addr {
			logs = append(logs, log)
		}
	}
	return logs, err
}
