package redisconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/help"
)

// ErrNotReplicated is returned if a write was executed, but not confirmed by enough
// replicas: a failover may lose it.
var ErrNotReplicated = errors.New("not replicated")

// MinReplicas returns how many replicas must confirm a durable write.
func (c *Conn) MinReplicas() int { return c.opened.MinReplicas }

// ensureReplicas makes the clients of durable pipelines, or uses the ordinary ones. A
// connection that waits for replicas does nothing else, so durable pipelines have
// connections apart from those of leases and acks.
func (c *Conn) ensureReplicas() {
	c.Replicated = c.NoRetry
	if c.opened.MinReplicas == 0 {
		c.BatchedReplicated = newPipelined(c.NoRetry, c.cluster, takeoversTogether, c.Durably)
		return
	}
	if c.cluster == nil {
		c.Replicated = c.hooked(c.lastingOptions(), redactHook{})
	} else {
		c.Replicated = c.hooked(c.options(-1), clusterHook{k: c.cluster, lasting: true}) // of which only the hooks are used
	}
	c.BatchedReplicated = newPipelined(c.Replicated, c.cluster, takeoversTogether, c.Durably)
}

// lastingOptions returns the options of connections that wait for replicas.
func (c *Conn) lastingOptions() *redis.Options {
	o := c.options(-1)
	o.ReadTimeout += c.opened.ReplicationTimeout
	o.OnConnect = inTurn(func(context.Context, *redis.Conn) error {
		c.scripts.forget() // the server may be another one, or have restarted
		return nil
	}, o.OnConnect)
	return o
}

// Durably runs calls as Pipeline does, and makes the server wait for the replicas, on the
// same connection and in the same round trip. From Redis 7.2 on, WAIT waits for the last
// write of its connection, and returns at once if there was none. So each script that
// answers from stored data, such as the record of a duplicate, also writes something: the
// replication stream has one order, and a replica that confirms the later write has the
// earlier one. The error, ErrNotReplicated, is that of the calls that were executed.
func (c *Conn) Durably(ctx context.Context, calls []*Call) error {
	if c.opened.MinReplicas == 0 {
		Pipeline(ctx, c.NoRetry, calls)
		return nil
	}
	c.scripts.spell(calls)
	limit := c.opened.ReplicationTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)*9/10) // the reply has to come in time, too
	}
	wait := PlainCall(ctx, "WAIT", c.opened.MinReplicas, max(1, limit.Milliseconds()))
	wait.last = true
	Pipeline(ctx, c.Replicated, append(calls, wait))
	c.scripts.learn(calls)
	n, err := wait.Reply.Int64()
	if wait.before != nil && c.cluster != nil && err == nil { // of other nodes than the second time
		var first int64
		first, err = wait.before.Int64()
		n = min(n, first)
	}
	switch {
	case err != nil: // as text: it is no answer to the calls
		return fmt.Errorf("%w: WAIT: %v", ErrNotReplicated, err)
	case n < int64(c.opened.MinReplicas):
		return fmt.Errorf("%w: %d of %d replicas have confirmed it within %v; %s", ErrNotReplicated, n, c.opened.MinReplicas, limit.Round(time.Millisecond), help.Replicas)
	}
	return nil
}

// loadedScripts are the scripts that a server has run. With a script that the server does
// not know, a durable pipeline would first wait for the replicas, and only then send the
// script's text. So the text is sent with the first call. Another node of a cluster may
// still not know the script; pipeline handles that.
type loadedScripts struct {
	mu    sync.Mutex
	known map[*redis.Script]bool
}

func (l *loadedScripts) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
}

// spell makes calls of scripts that are not known to be loaded send the script's text.
func (l *loadedScripts) spell(calls []*Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		if c.script != nil && !l.known[c.script] {
			c.queue = c.whole
		}
	}
}

// learn stores which scripts were run.
func (l *loadedScripts) learn(calls []*Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		if c.script == nil || c.Reply.Err() != nil {
			continue
		}
		if l.known == nil {
			l.known = map[*redis.Script]bool{}
		}
		l.known[c.script] = true
	}
}
