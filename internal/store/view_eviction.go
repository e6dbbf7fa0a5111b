package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// An Eviction reports that a server may remove keys when its memory is full, or that it has.
type Eviction struct {
	Addr    string
	Policy  string // maxmemory-policy
	Limit   int64  // maxmemory in bytes, 0 without one: then nothing is evicted as yet
	Evicted int64  // keys evicted since the server's start
}

// Forbidden reports whether the server's settings rule out evictions.
func (e Eviction) Forbidden() bool { return e.Policy == "noeviction" }

// Error describes the server's settings, and what it has removed.
func (e Eviction) Error() string {
	text := fmt.Sprintf("redis at %s: maxmemory-policy is %s, ", e.Addr, e.Policy)
	if e.Limit > 0 {
		text += fmt.Sprintf("with maxmemory %d MiB", e.Limit>>20)
	} else {
		text += "and nothing is evicted as long as maxmemory is not set"
	}
	if e.Evicted > 0 {
		text += fmt.Sprintf("; %d keys were evicted since its start", e.Evicted)
	}
	return text
}

// Evictions returns the servers, all masters in a cluster, that may evict keys or have done so
// since they began. A server that does not let us ask is left out. The error is the connection's.
func (c Viewer) Evictions(ctx context.Context) (out []Eviction, err error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		text, err := n.Redis.Do(ctx, "INFO", "memory", "stats").Text()
		if err != nil && !redisconn.IsReply(err) {
			return nil, fmt.Errorf("redis at %s: INFO: %w", n.Addr, err)
		}
		if e := parseEviction(text); e.Policy != "" && (!e.Forbidden() || e.Evicted > 0) {
			e.Addr = n.Addr
			out = append(out, e)
		}
	}
	return out, nil
}

func parseEviction(info string) (e Eviction) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "maxmemory_policy":
			e.Policy = value
		case "maxmemory":
			e.Limit = n
		case "evicted_keys":
			e.Evicted = n
		}
	}
	return e
}
