package worker

import (
	"github.com/runnel-go/runnel/internal/store"
)

// A gapCounter is what a heartbeat knows of entries that were removed before they were
// delivered.
type gapCounter struct {
	seen    int64  // how many there were, ever
	counted string // the last position up to which they were counted
}

// ask has a refresh count, where something was delivered since the last count.
func (g *gapCounter) ask(p *partition, r store.LeaseRequest) store.LeaseRequest {
	r.At, r.Count = p.buffer.Delivered()
	if r.At == g.counted {
		r.At = ""
	}
	return r
}

// take takes in what a refresh counted.
func (g *gapCounter) take(p *partition, sent store.LeaseRequest, r store.LeaseResult) {
	if n := r.Lost - g.seen; n > 0 {
		g.seen = r.Lost
		p.missed(n)
	}
	if r.Counted {
		g.counted = sent.At
		p.buffer.Recount(sent.At, r.Count)
	}
}
