package store

import (
	"context"
	"sync"

	"github.com/runnel-go/runnel/internal/groupcommit"
)

// A perNode has a group for each node of a cluster, so that those who want something
// of one node never wait for another one; and one, of nil, for a server of its own.
type perNode[P, A any] struct {
	open func() *groupcommit.Group[P, A]

	mu sync.Mutex
	by map[*node]*groupcommit.Group[P, A]
}

// of is the gatherer of a node; nil is also one that is not known yet.
func (p *perNode[P, A]) of(n *node) *groupcommit.Group[P, A] {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.by[n]
	if g == nil {
		if p.by == nil {
			p.by = map[*node]*groupcommit.Group[P, A]{}
		}
		g = p.open()
		p.by[n] = g
	}
	return g
}

// do sends items by the groups of their nodes, all at the same time. key is a key of an item.
func (p *perNode[P, A]) do(ctx context.Context, k *cluster, items []P, key func(P) string) ([]A, error) {
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
