package redisconn

import (
	"context"
	"sync"

	"github.com/runnel-go/runnel/internal/groupcommit"
)

// A PerNode has one group per node, so that callers of one node never wait for another.
type PerNode[P, A any] struct {
	Open func() *groupcommit.Group[P, A]

	mu sync.Mutex
	by map[*node]*groupcommit.Group[P, A]
}

// of returns the group of n; nil stands for a node that is not known yet, too.
func (p *PerNode[P, A]) of(n *node) *groupcommit.Group[P, A] {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.by[n]
	if g == nil {
		if p.by == nil {
			p.by = map[*node]*groupcommit.Group[P, A]{}
		}
		g = p.Open()
		p.by[n] = g
	}
	return g
}

// Do sends items by the groups of their nodes at the same time. key returns a key of an item.
func (p *PerNode[P, A]) Do(ctx context.Context, c *Conn, items []P, key func(P) string) ([]A, error) {
	k := c.cluster
	if k == nil {
		return p.of(nil).Do(ctx, items)
	}
	by := map[*node][]int{}
	for i, item := range items {
		n := k.known(key(item))
		by[n] = append(by[n], i)
	}
	if len(by) == 1 {
		for n := range by {
			return p.of(n).Do(ctx, items)
		}
	}
	answers := make([]A, len(items))
	var wg sync.WaitGroup
	for n, at := range by {
		wg.Go(func() {
			some := make([]P, len(at))
			for i, k := range at {
				some[i] = items[k]
			}
			g := p.of(n)
			got, err := g.Do(ctx, some)
			for i, k := range at {
				if err != nil {
					answers[k] = g.Unsent(err)
				} else {
					answers[k] = got[i]
				}
			}
		})
	}
	wg.Wait()
	return answers, nil
}

// Waiting returns how many callers wait for a trip.
func (p *PerNode[P, A]) Waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.by {
		n += g.Waiting()
	}
	return n
}
