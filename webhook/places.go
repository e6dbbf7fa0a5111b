package webhook

import "sync"

// places bound how many requests a worker makes at once: in all, to one host, and for subscribers that keep failing.
type places struct {
	most, perHost, mostFailing int

	mu      sync.Mutex
	taken   int
	failing int
	hosts   map[string]int
	waiting map[*owner]bool // that found none
}

// A place is permission for one request.
type place struct {
	host    string
	failing bool
}

func newPlaces(most, perHost int) *places {
	return &places{most: most, perHost: perHost, mostFailing: most / 2, hosts: map[string]int{}, waiting: map[*owner]bool{}}
}

// take takes a place. Where there is none, the owner is told when there may be one.
func (p *places) take(at place, o *owner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || at.failing && p.failing >= p.mostFailing || p.hosts[at.host] >= p.perHost {
		p.waiting[o] = true
		return false
	}
	p.count(at, 1)
	return true
}

// free gives a place back.
func (p *places) free(at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(at, -1)
	for o := range p.waiting {
		o.mail.post(o.unblock)
	}
	clear(p.waiting)
}

func (p *places) count(at place, n int) {
	p.taken += n
	if at.failing {
		p.failing += n
	}
	if p.hosts[at.host] += n; p.hosts[at.host] == 0 {
		delete(p.hosts, at.host)
	}
}
