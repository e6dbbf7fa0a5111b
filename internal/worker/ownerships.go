package worker

import (
	"maps"
	"slices"
	"sync"
)

// ownerships are the ownerships of a member by partition, including ending ones. Its methods may
// be called concurrently.
type ownerships struct {
	mu      sync.Mutex
	of      map[int]*partition
	leaving map[int]bool // the coordinator has asked for the release
	stuck   []int        // partitions whose function did not return
}

func newOwnerships() *ownerships {
	return &ownerships{of: map[int]*partition{}, leaving: map[int]bool{}}
}

func (o *ownerships) add(p *partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of[p.keys.Number] = p
	delete(o.leaving, p.keys.Number)
}

func (o *ownerships) remove(p *partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[p.keys.Number] == p {
		delete(o.of, p.keys.Number)
	}
}

// at returns the ownership of a partition, nil if there is none.
func (o *ownerships) at(partition int) *partition {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[partition]
}

// leave notes that the coordinator has asked for the release of a partition, and returns its
// ownership, nil if there is none.
func (o *ownerships) leave(partition int) *partition {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaving[partition] = true
	return o.of[partition]
}

// ifFree calls fn if the partition is neither owned nor to be released. No ownership of it
// begins meanwhile.
func (o *ownerships) ifFree(partition int, fn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.leaving[partition] && o.of[partition] == nil {
		fn()
	}
}

// owned returns the ownerships to refresh: all that are not lost.
func (o *ownerships) owned() []*partition {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]*partition, 0, len(o.of))
	for _, p := range o.of {
		if !p.life.isLost() {
			out = append(out, p)
		}
	}
	return out
}

// all returns all ownerships, and reports whether any function did not return.
func (o *ownerships) all() (all []*partition, stuck bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.of)), len(o.stuck) > 0
}

// addStuck notes that the function of an ownership did not return.
func (o *ownerships) addStuck(p *partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stuck = append(o.stuck, p.keys.Number)
}

// stuckPartitions returns the partitions whose function did not return, in ascending order.
func (o *ownerships) stuckPartitions() []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.Sort(o.stuck)
	return o.stuck
}
