package worker

import "sync"

// places say which reader reads which partition in a cluster. There a read that names
// partitions of several slots cannot block, so that each has a reader of its own as
// long as there are enough. Those of one node share readers then, lest a node that is
// away holds up what others have.
type places struct {
	mu   sync.Mutex
	of   map[*tenure]*reader
	load map[*reader]int
	node map[*reader]string // that most of its partitions were on
}

// of is the reader of a partition.
func (f *fetcher) of(t *tenure) *reader {
	if f.x.w.client.Clustered() {
		f.places.mu.Lock()
		defer f.places.mu.Unlock()
		if r := f.places.of[t]; r != nil {
			return r
		}
	}
	return f.readers[t.place.Partition%len(f.readers)]
}

// settle finds a reader for a partition.
func (f *fetcher) settle(t *tenure) *reader {
	if !f.x.w.client.Clustered() {
		return f.of(t)
	}
	node := f.x.w.client.NodeOf(t.place.Log)
	p := &f.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of, p.load, p.node = map[*tenure]*reader{}, map[*reader]int{}, map[*reader]string{}
	}
	// At no cost with nobody, else with those of the same node.
	cost := func(r *reader) int {
		if p.load[r] > 0 && p.node[r] != node {
			return p.load[r] + elsewhere
		}
		return p.load[r]
	}
	best := f.readers[0]
	for _, r := range f.readers[1:] {
		if cost(r) < cost(best) {
			best = r
		}
	}
	if p.load[best] == 0 {
		p.node[best] = node
	}
	p.of[t] = best
	p.load[best]++
	return best
}

// elsewhere is how many partitions of its own node a reader takes on rather than one
// of another.
const elsewhere = 1 << 20

// leave ends what settle began.
func (f *fetcher) leave(t *tenure) {
	p := &f.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.of[t]; r != nil {
		p.load[r]--
		delete(p.of, t)
	}
}
