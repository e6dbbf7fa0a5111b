package worker

import (
	"sync"
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/store"
)

// A history is what an executor has seen of its processor's partitions. It outlives
// members, and what Redis forgets.
type history struct {
	begun atomic.Bool // the processor has begun in every partition

	mu     sync.Mutex
	epochs map[int]int64 // largest epoch seen, by partition
	parted []store.Known // of partitions that were lost; Redis is to be asked whether it knows as much
}

// saw notes an epoch.
func (h *history) saw(partition int, epoch int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epochs == nil {
		h.epochs = map[int]int64{}
	}
	h.epochs[partition] = max(h.epochs[partition], epoch)
}

// parts notes what was known of a partition that was lost.
func (h *history) parts(known ...store.Known) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parted = append(h.parted, known...)
}

// toAsk returns what was noted, once.
func (h *history) toAsk() []store.Known {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.parted
	h.parted = nil
	return known
}

// largest returns the largest epoch seen, at least 1 once the processor has begun: a
// partition of which Redis then knows nothing was forgotten, and Start applies only once.
func (h *history) largest(partition int) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun.Load() {
		return max(1, h.epochs[partition])
	}
	return h.epochs[partition]
}

// settled notes that the processor has begun in every partition: this member owns what
// it is assigned, or has been a member for as long as the others may take for theirs.
func (m *member) settled() {
	if m.history.begun.Load() {
		return
	}
	if s := m.coord.State(); s.Settled() && len(s.Owned) > 0 || s.Joined && m.lasted() {
		m.history.begun.Store(true)
	}
}
