package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/runnel-go/runnel/internal/store"
)

// claims are a member's tries to own partitions with an open outcome, and the errors that keep
// partitions from being owned. Its methods may be called concurrently.
type claims struct {
	like store.Claim // without a number

	mu     sync.Mutex
	next   uint64
	open   map[int]store.Claim
	broken map[int]error
}

func newClaims(member string, p *Processor) *claims {
	like := store.Claim{Executor: member, Expiry: p.Lease}
	if p.ByPosition {
		like.Reach = reachOf(int64(p.Prefetch))
	}
	return &claims{like: like, open: map[int]store.Claim{}, broken: map[int]error{}}
}

// of returns the claim of a try. The claim stays the same until the outcome is known: if the reply
// to Lock was lost, the lock may hold this claim already, or later.
func (c *claims) of(partition int) store.Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.open[partition]
	if !ok {
		c.next++
		t = c.like
		t.Number = c.next
		c.open[partition] = t
	}
	return t
}

// pending returns the claim of a partition whose outcome is open.
func (c *claims) pending(partition int) (t store.Claim, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok = c.open[partition]
	return t, ok
}

// settle notes that the outcome of a try is known.
func (c *claims) settle(partition int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, partition)
}

// note stores the error that keeps a partition from being owned, and reports whether it is the
// first. A cancelled try clears it, since the partition is no longer assigned to the member.
func (c *claims) note(ctx context.Context, partition int, err error) (first bool) {
	if ctx.Err() == nil && errors.Is(err, store.ErrHeld) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil || err == nil {
		delete(c.broken, partition)
		return false
	}
	first = c.broken[partition] == nil
	c.broken[partition] = err
	return first
}

// err returns an error if something keeps one of these partitions from being owned.
func (c *claims) err(partitions []int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range partitions {
		if err := c.broken[p]; err != nil {
			return fmt.Errorf("partition %d cannot be taken over: %w", p, err)
		}
	}
	return nil
}
