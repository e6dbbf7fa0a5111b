package worker

import (
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/store"
)

// A gapCounter is the state of heartbeats about entries removed before their delivery.
type gapCounter struct {
	seen    int64  // how many there were, ever
	counted string // the last position up to which they were counted

	suspect atomic.Bool // by position: there may be more, which the reader counts between two reads
}

// ask makes a refresh count if entries were delivered since the last count.
func (g *gapCounter) ask(p *partition, r store.LeaseRequest) store.LeaseRequest {
	r.At, r.Count = p.buffer.Delivered()
	if r.At == g.counted {
		r.At = ""
	}
	return r
}

// take applies the count of a refresh.
func (g *gapCounter) take(p *partition, sent store.LeaseRequest, r store.LeaseResult) {
	if n := r.Lost - g.seen; n > 0 {
		g.seen = r.Lost
		p.missed(n)
	}
	g.suspect.Store(r.Suspect)
	if r.Counted {
		g.counted = sent.At
		p.buffer.Recount(sent.At, r.Count)
	}
}
