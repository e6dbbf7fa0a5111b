package worker

import "sync"

// A readerAssignment says which reader reads which partition in a cluster. There a read that
// names partitions of several slots cannot block. So each partition has a reader of its own
// as long as there are enough readers. Then partitions of one node share readers, so that a
// node that is away does not hold up the partitions of others.
type readerAssignment struct {
	mu   sync.Mutex
	of   map[*partition]*reader
	load map[*reader]int
	node map[*reader]string // that most of its partitions were on
}

// of is the reader of a partition.
func (f *fetcher) of(p *partition) *reader {
	if f.x.w.client.Clustered() {
		f.assignment.mu.Lock()
		defer f.assignment.mu.Unlock()
		if r := f.assignment.of[p]; r != nil {
			return r
		}
	}
	return f.readers[p.keys.Number%len(f.readers)]
}

// settle finds a reader for a partition.
func (f *fetcher) settle(p *partition) *reader {
	if !f.x.w.client.Clustered() {
		return f.of(p)
	}
	node := f.x.w.client.NodeOf(p.keys.Log)
	a := &f.assignment
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of, a.load, a.node = map[*partition]*reader{}, map[*reader]int{}, map[*reader]string{}
	}
	// An idle reader costs nothing; else those of the same node are preferred.
	cost := func(r *reader) int {
		if a.load[r] > 0 && a.node[r] != node {
			return a.load[r] + elsewhere
		}
		return a.load[r]
	}
	best := f.readers[0]
	for _, r := range f.readers[1:] {
		if cost(r) < cost(best) {
			best = r
		}
	}
	if a.load[best] == 0 {
		a.node[best] = node
	}
	a.of[p] = best
	a.load[best]++
	return best
}

// elsewhere is how many partitions of its own node a reader takes on rather than one
// of another.
const elsewhere = 1 << 20

// leave ends what settle began.
func (f *fetcher) leave(p *partition) {
	a := &f.assignment
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.of[p]; r != nil {
		a.load[r]--
		delete(a.of, p)
	}
}
