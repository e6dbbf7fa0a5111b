package prefetch

import (
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
)

// progress is the state of the acks of a partition.
type progress struct {
	committed string   // all entries up to here are acked
	read      int64    // number of entries up to committed without lost ones, -1 if unknown
	top       string   // the largest ID that was acked
	above     int64    // number of acked entries after committed
	latest    []string // IDs that were acked, the latest ones, as a ring
	oldest    int      // where the next one goes once it is full
}

// confirm counts n acked entries, the last of them being last. committed rises over them
// once none of open, the lowest entries that are not acked ("" for none), is below them.
func (p *progress) confirm(last string, n int, open ...string) {
	if p.top == "" || entryid.Compare(last, p.top) > 0 {
		p.top = last
	}
	p.above += int64(n)
	if slices.ContainsFunc(open, func(id string) bool { return id != "" && entryid.Compare(id, p.top) < 0 }) {
		return
	}
	p.committed = p.top
	if p.read >= 0 {
		p.read += p.above
	}
	p.above = 0
}

// remembered is the number of latest acked entries that are known: a failover may lose
// this many acks at once without a repetition.
const remembered = 256

func (p *progress) remember(ids []string) {
	for _, id := range ids[max(0, len(ids)-remembered):] {
		if len(p.latest) < remembered {
			p.latest = append(p.latest, id)
			continue
		}
		p.latest[p.oldest] = id
		p.oldest = (p.oldest + 1) % remembered
	}
}

func (p *progress) hasAcked(ids []string) bool {
	known := make(map[string]bool, len(p.latest))
	for _, id := range p.latest {
		known[id] = true
	}
	return !slices.ContainsFunc(ids, func(id string) bool { return !known[id] })
}
