package worker

import "github.com/runnel-go/runnel/internal/store"

// losses are what a heartbeat knows of entries that were removed before they were
// delivered.
type losses struct {
	seen    int64  // how many there were, ever
	counted string // the last position up to which they were counted
}

// counting asks a refresh to count, where something was delivered since it did.
func (t *tenure) counting(r store.Renewal) store.Renewal {
	r.At, r.Count = t.buffer.Delivered()
	if r.At == t.losses.counted {
		r.At = ""
	}
	return r
}

// countedBy takes in what a refresh counted.
func (t *tenure) countedBy(sent store.Renewal, r store.Renewed) {
	if n := r.Lost - t.losses.seen; n > 0 {
		t.losses.seen = r.Lost
		t.missed(n)
	}
	if r.Counted {
		t.losses.counted = sent.At
		t.buffer.Recount(sent.At, r.Count)
	}
}

// missed counts and tells what was lost.
func (t *tenure) missed(n int64) {
	t.count.Lost.Add(n)
	floor, _ := t.buffer.Checkpoint()
	t.log.Error("events lost: they were removed before they were processed, by a command or to make room; see LOST in status", "events", n, "floor", floor)
}
