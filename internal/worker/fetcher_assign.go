package worker

import "slices"

// assign chooses the reader of a partition. In a cluster a read that names several slots cannot
// block, so each partition gets a reader of its own while there are enough. Then partitions of one
// node share readers, so that an unreachable node does not hold up the others.
func (f *fetcher) assign(p *partition) *reader {
	if !f.x.w.client.Clustered() {
		r := f.readers[p.keys.Number%len(f.readers)]
		p.reader.Store(r)
		return r
	}
	node := f.x.w.client.NodeOf(p.keys.Log)
	f.assigning.Lock()
	defer f.assigning.Unlock()
	// An idle reader costs nothing; else readers of the same node are preferred.
	cost := func(r *reader) int {
		if r.load > 0 && r.node != node {
			return r.load + elsewhere
		}
		return r.load
	}
	best := slices.MinFunc(f.readers, func(a, b *reader) int { return cost(a) - cost(b) })
	if best.load == 0 {
		best.node = node
	}
	best.load++
	p.reader.Store(best)
	return best
}

// elsewhere is how many partitions of its own node a reader takes rather than one of another.
const elsewhere = 1 << 20

// unassign ends what assign began.
func (f *fetcher) unassign(p *partition) {
	f.assigning.Lock()
	defer f.assigning.Unlock()
	if r := p.reader.Swap(nil); r != nil {
		r.load--
	}
}
