package store

import (
	"context"
	"sync"
)

// A perNode has a gatherer for each node of a cluster, so that those who want something
// of one node never wait for another one; and one, of nil, for a server of its own.
type perNode[P, A any] struct {
	open func() *gatherer[P, A]

	mu sync.Mutex
	by map[*node]*gatherer[P, A]
}

// of is the gatherer of a node; nil is also one that is not known yet.
func (p *perNode[P, A]) of(n *node) *gatherer[P, A] {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.by[n]
	if g == nil {
		if p.by == nil {
			p.by = map[*node]*gatherer[P, A]{}
		}
		g = p.open()
		p.by[n] = g
	}
	return g
}

// gathered sends the next records of parts, alone or with those of others; see gather.
func (c *Client) gathered(ctx context.Context, parts []*part) ([]answer, error) {
	if c.cluster == nil {
		return c.gathers.of(nil).gather(ctx, parts)
	}
	by := map[*node][]int{}
	for i, p := range parts {
		n := c.cluster.known(p.Log)
		by[n] = append(by[n], i)
	}
	if len(by) == 1 {
		for n := range by {
			return c.gathers.of(n).gather(ctx, parts)
		}
	}
	answers := make([]answer, len(parts))
	var wg sync.WaitGroup
	for n, at := range by {
		wg.Go(func() {
			some := make([]*part, len(at))
			for i, k := range at {
				some[i] = parts[k]
			}
			got, err := c.gathers.of(n).gather(ctx, some)
			for i, k := range at {
				if err != nil {
					answers[k] = answer{err: err}
				} else {
					answers[k] = got[i]
				}
			}
		})
	}
	wg.Wait()
	return answers, nil
}
