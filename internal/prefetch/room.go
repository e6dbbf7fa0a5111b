package prefetch

// room calculates how much more a buffer may hold, and how many entries are worth a read.
type room struct {
	capacity int // entries that may wait
	maxBytes int64
	window   window
	size     int64 // assumed size of the next entry
	target   int   // how many entries a read should bring
	wants    int   // entries that the consumer waits for, 0: it does not wait
	refused  int64 // size of the entry that did not fit last, 0: none
	left     bool  // the fetcher skipped this partition for lack of room
}

// refuses reports whether an entry of size does not fit, and stores its size. A first
// entry always fits.
func (r *room) refuses(size int64, q *queue) bool {
	if held := q.len(); held == 0 || q.bytes+size <= r.maxBytes && held < r.capacity {
		return false
	}
	r.refused = size
	return true
}

// full reports whether no other entry fits, by its assumed size.
func (r *room) full(q *queue) bool { return q.bytes+max(r.size, r.refused) > r.maxBytes }

// free returns how many entries are worth a read now.
func (r *room) free(q *queue) int {
	held, ahead := q.len(), max(r.window.ahead, r.wants)
	if held == 0 {
		return max(1, min(r.target, ahead, int(r.maxBytes/max(r.size, 1))))
	}
	if q.bytes+r.refused > r.maxBytes {
		return 0 // the next entry would be refused again
	}
	n := min(ahead-held, int((r.maxBytes-q.bytes)/max(r.size, 1)))
	if r.wants <= held && n < min(r.target, ahead/2) {
		return 0
	}
	return max(0, min(n, r.target))
}

// regained reports, once, whether a partition that was skipped has room again.
func (r *room) regained(q *queue) bool {
	if !r.left || r.free(q) == 0 {
		return false
	}
	r.left = false
	return true
}
