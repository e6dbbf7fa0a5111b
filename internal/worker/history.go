package worker

import (
	"sync"
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/store"
)

// A history is what an executor has seen of its processor's partitions. It outlives members and
// losses of data in Redis.
type history struct {
	begun atomic.Bool // the processor has begun in every partition

	mu     sync.Mutex
	epochs map[int]int64 // largest epoch seen, by partition
	parted []store.Known // of lost partitions, to ask Redis about
}

func (h *history) saw(partition int, epoch int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epochs == nil {
		h.epochs = map[int]int64{}
	}
	h.epochs[partition] = max(h.epochs[partition], epoch)
}

func (h *history) parts(known ...store.Known) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parted = append(h.parted, known...)
}

// toAsk returns the stored states, once.
func (h *history) toAsk() []store.Known {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.parted
	h.parted = nil
	return known
}

// largest returns the largest epoch seen, at least 1 once the processor has begun. If Redis then
// knows nothing of a partition, it has forgotten it, and Start does not apply again.
func (h *history) largest(partition int) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun.Load() {
		return max(1, h.epochs[partition])
	}
	return h.epochs[partition]
}

// settled stores that the processor has begun in every partition once this member owns its
// assignment, or has lasted as long as the others may take for theirs.
func (m *member) settled() {
	if m.history.begun.Load() {
		return
	}
	if s := m.coord.State(); s.Settled() && len(s.Owned) > 0 || s.Joined && m.lasted() {
		m.history.begun.Store(true)
	}
}
