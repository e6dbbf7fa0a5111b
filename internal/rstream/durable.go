package rstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
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
func (c *Client) Durability() Durability { return c.durability }

// ensureReplicas makes what durable pipelines need, or has them run as all others do.
// While one waits for replicas its connection does nothing else: so they have others
// than leases and acks.
func (c *Client) ensureReplicas(d Durability) {
	c.durability, c.lasting, c.takeovers = d, c.once, c.together
	if d.MinReplicas == 0 {
		return
	}
	if o := c.options(-1); c.cluster == nil {
		o.ReadTimeout += d.Timeout
		c.lasting = redis.NewClient(o)
		c.lasting.AddHook(discreet{})
	} else {
		c.lasting = redis.NewClient(o)
		c.lasting.AddHook(route{k: c.cluster, lasting: true})
	}
	c.takeovers = newPipelined(c.lasting, c.cluster, c.durably)
}

// durably runs calls as pipeline does, and has the server wait for the replicas, on
// the same connection and in the same round trip. WAIT counts for what the connection
// was told, so that it is never too early: also for what somebody else wrote before,
// such as the record of a duplicate. The error is ErrNotReplicated, of those calls that
// were executed.
func (c *Client) durably(ctx context.Context, calls []*call) error {
	if c.durability.MinReplicas == 0 {
		pipeline(ctx, c.once, calls)
		return nil
	}
	limit := c.durability.Timeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)*9/10) // the reply has to come in time, too
	}
	wait := plainCall(ctx, "WAIT", c.durability.MinReplicas, milliseconds(limit))
	wait.last = true
	pipeline(ctx, c.lasting, append(calls, wait))
	n, err := wait.reply.Int64()
	switch {
	case err != nil: // as text: it is no answer to the calls
		return fmt.Errorf("%w: WAIT: %v", ErrNotReplicated, err)
	case n < int64(c.durability.MinReplicas):
		return fmt.Errorf("%w: %d of %d replicas have confirmed it within %v", ErrNotReplicated, n, c.durability.MinReplicas, limit.Round(time.Millisecond))
	}
	return nil
}
