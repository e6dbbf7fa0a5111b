package worker

import (
	"context"
	"sync"
)

// ackers has one acker per node: in a cluster, an unreachable node must not hold up the acks for
// the others.
type ackers struct {
	x   *member
	one *acker // nil in a cluster

	mu      sync.Mutex
	by      map[string]*acker // by node of a cluster
	ctx     context.Context   // nil: they do not run yet
	running sync.WaitGroup
}

func newAckers(m *member) *ackers {
	a := &ackers{x: m, by: map[string]*acker{}}
	if !m.w.client.Clustered() {
		a.one = newAcker(m)
		a.by[""] = a.one
	}
	return a
}

func (a *ackers) run(ctx context.Context) {
	a.mu.Lock()
	a.ctx = ctx
	for _, one := range a.by {
		a.running.Go(func() { one.run(ctx) })
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.ctx = nil // no other one begins
	a.mu.Unlock()
	a.running.Wait()
}

func (a *ackers) mark(p *partition) { a.of(p).mark(p) }

func (a *ackers) of(p *partition) *acker {
	if a.one != nil {
		return a.one
	}
	node := a.x.w.client.NodeOf(p.keys.Log)
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.by[node]
	if one == nil {
		one = newAcker(a.x)
		a.by[node] = one
		if ctx := a.ctx; ctx != nil {
			a.running.Go(func() { one.run(ctx) })
		}
	}
	return one
}

// hurry ends the pauses between two rounds.
func (a *ackers) hurry() {
	if a.one != nil {
		a.one.hurry()
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.by {
		one.hurry()
	}
}
