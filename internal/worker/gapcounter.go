package worker

import (
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/store"
)

// gapCounter are what a heartbeat knows of entries that were removed before they were
// delivered.
type gapCounter struct {
	seen    int64  // how many there were, ever
	counted string // the last position up to which they were counted
}

// counting asks a refresh to count, where something was delivered since it did.
func (p *partition) counting(r store.LeaseRequest) store.LeaseRequest {
	r.At, r.Count = p.buffer.Delivered()
	if r.At == p.beat.gaps.counted {
		r.At = ""
	}
	return r
}

// countedBy takes in what a refresh counted.
func (p *partition) countedBy(sent store.LeaseRequest, r store.LeaseResult) {
	if n := r.Lost - p.beat.gaps.seen; n > 0 {
		p.beat.gaps.seen = r.Lost
		p.missed(n)
	}
	if r.Counted {
		p.beat.gaps.counted = sent.At
		p.buffer.Recount(sent.At, r.Count)
	}
}

// missed counts and tells what was lost.
func (p *partition) missed(n int64) {
	p.count.Lost.Add(n)
	committed, _ := p.buffer.Checkpoint()
	p.log.Error("events lost", "events", n, "committed", committed, "help", help.EventsLost)
}
