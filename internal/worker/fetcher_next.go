package worker

import (
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

const (
	// readsOfMore are how many reads in a row may leave out the partitions that had no more, and othersWait is for how long they
	// may, by more than one.
	readsOfMore = 8
	othersWait  = 10 * time.Millisecond
)

// next chooses the next read: the history of a partition that is behind, else every partition
// with room, and of each at most the room of the fullest. If that is too much for one read,
// next takes some of the partitions, in turn, or less of each. Where partitions that had more would get less
// than they have room for, they are read by themselves, some at a time, and the rest now and then.
func (r *reader) next() (set []*partition, logs []string, count int, behind *partition) {
	now := monotime.Now()
	size, target := r.f.sizes.largest(now), int(r.f.target.Load())
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.reading)
	count = target
	var more, rest []*partition
	moreCount, restCount := target, target
	for i := range r.partitions {
		p := r.partitions[(r.from+i)%len(r.partitions)]
		n, isBehind := p.buffer.Room(size, target, now)
		switch {
		case n == 0:
		case isBehind:
			r.from = (r.from+i)%len(r.partitions) + 1 // others that are behind come next
			r.begin([]*partition{p})
			return nil, nil, n, p
		case r.more[p]:
			set, more, moreCount = append(set, p), append(more, p), min(moreCount, n)
		default:
			set, rest, restCount = append(set, p), append(rest, p), min(restCount, n)
		}
	}
	count = min(moreCount, restCount)
	each, most := r.f.sizes.perRead(size, count, len(set))
	late := r.again > 0 && now-r.others > int64(othersWait)
	switch r.again++; {
	case len(more) == 0 || most < len(set) || each == moreCount:
		r.again, r.others = 0, now
		// One read blocks for all partitions once none of them had anything.
		r.partial = most < len(set) && r.quiet < len(set)
	case r.again <= readsOfMore && !late || len(rest) == 0:
		each, most = r.f.sizes.perReadOfMore(size, moreCount, len(more))
		most = min(most, len(more))
		r.partial, set = true, more
	default:
		r.again, r.others = 0, now
		each, most = r.f.sizes.perRead(size, restCount, len(rest))
		r.partial, set = true, rest
	}
	if r.partial {
		set = set[:most]
		r.from = slices.Index(r.partitions, set[most-1]) + 1
	}
	if len(set) > 0 {
		r.begin(set)
	}
	for _, p := range set {
		logs = append(logs, p.keys.Log)
	}
	return set, logs, each, nil
}
