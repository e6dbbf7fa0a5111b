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

// Durability is how many replicas are to have confirmed a write before it counts as
// done, and how long that may take. Without replicas nothing is waited for.
type Durability struct {
	MinReplicas int
	Timeout     time.Duration
}

// ErrNotReplicated says that a write was executed, and was not confirmed by as many
// replicas as it should be: a failover may lose it.
var ErrNotReplicated = errors.New("not replicated")

// Durability is what was asked for.
func (c *Conn) Durability() Durability { return c.durability }

// ensureReplicas makes what durable pipelines need, or has them run as all others do.
// While one waits for replicas its connection does nothing else: so they have others
// than leases and acks.
func (c *Conn) ensureReplicas(d Durability) {
	c.durability, c.Replicated = d, c.NoRetry
	if d.MinReplicas == 0 {
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

// lastingOptions are those of connections that wait for replicas.
func (c *Conn) lastingOptions() *redis.Options {
	o := c.options(-1)
	o.ReadTimeout += c.opened.Durability.Timeout
	connected := o.OnConnect
	o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		c.scripts.forget() // it may be another server, or have restarted
		if connected == nil {
			return nil
		}
		return connected(ctx, cn)
	}
	return o
}

// Durably runs calls as Pipeline does, and has the server wait for the replicas, on
// the same connection and in the same round trip. From Redis 7.2 on WAIT asks for the last
// write of its connection, and is content at once where there was none. So each script that
// answers from what is stored, such as the record of a duplicate, writes something too: the
// replication stream has one order, and a replica that confirms the later write has the
// earlier one. The error is ErrNotReplicated, of those calls that were executed.
func (c *Conn) Durably(ctx context.Context, calls []*Call) error {
	if c.durability.MinReplicas == 0 {
		Pipeline(ctx, c.NoRetry, calls)
		return nil
	}
	c.scripts.spell(calls)
	limit := c.durability.Timeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)*9/10) // the reply has to come in time, too
	}
	wait := PlainCall(ctx, "WAIT", c.durability.MinReplicas, max(1, limit.Milliseconds()))
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
	case n < int64(c.durability.MinReplicas):
		return fmt.Errorf("%w: %d of %d replicas have confirmed it within %v; %s", ErrNotReplicated, n, c.durability.MinReplicas, limit.Round(time.Millisecond), help.Replicas)
	}
	return nil
}

// loadedScripts are those that a server ran. With one that it does not know a durable
// pipeline would first wait for the replicas, and only then send the text: so that goes
// along with the first call. Another node of a cluster may not know it all the same;
// pipeline copes with that.
type loadedScripts struct {
	mu    sync.Mutex
	known map[*redis.Script]bool
}

func (l *loadedScripts) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
}

// spell has the calls of scripts that are not known bring their text.
func (l *loadedScripts) spell(calls []*Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		if c.script != nil && !l.known[c.script] {
			c.queue = c.whole
		}
	}
}

// learn notes which scripts were run.
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
