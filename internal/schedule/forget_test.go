package schedule

import (
	"fmt"
	"slices"
	"time"
)

// forget takes one step of forgetting: it looks, and when all that it saw is acked it forgets.
func (m *sim) forget() {
	if m.looked == nil {
		now, err := m.rdb.Time(m.Context()).Result()
		m.must(err)
		l := &look{at: now}
		for p := range parts {
			l.seen[p] = "0-0"
			last, err := m.rdb.XRevRangeN(m.Context(), m.s.keysOf(p)[0], "+", "-", 1).Result()
			if m.must(err); len(last) > 0 {
				l.seen[p] = last[0].ID
			}
		}
		m.looked = l
		return
	}
	for p := range parts {
		if less(m.acked[p], m.looked.seen[p]) {
			return
		}
	}
	keep := m.r.IntN(3)
	for p := range parts {
		before, more := m.cells(p), true
		for more {
			var names []string
			for _, k := range m.tasks {
				if partOf(k.name) == p {
					names = append(names, k.name)
				}
			}
			gone, again, err := m.s.Prune(m.Context(), p, &Prune{Fence: "o", Looked: m.looked.at.UnixMilli(), Keep: keep, KeepOpen: time.Hour, Horizon: m.looked.seen[:], Tasks: names})
			m.must(err)
			m.count("cells forgotten", gone)
			more = again
		}
		after := m.cells(p)
		for at, c := range before {
			if _, there := after[at]; !there {
				m.gone[at] = c
			}
		}
	}
	m.looked = nil
}

func less(a, b string) bool {
	var am, as, bm, bs int64
	fmt.Sscanf(a, "%d-%d", &am, &as)
	fmt.Sscanf(b, "%d-%d", &bm, &bs)
	return am < bm || am == bm && as < bs
}

func (m *sim) hurt(c int) {
	switch c {
	case 34: // who was away applies old facts once more
		m.apply(m.r.IntN(parts), "0-0", int64(1+m.r.IntN(20)), true)
		m.count("old facts again", 1)
	case 35:
		if m.kill(m.alive[m.r.IntN(len(m.alive))]); m.r.IntN(2) == 0 {
			m.recover()
		}
	case 36:
		m.recover()
	case 37:
		if len(m.ghosts) > 0 {
			i := m.r.IntN(len(m.ghosts))
			u := m.ghosts[i]
			m.ghosts = slices.Delete(m.ghosts, i, i+1)
			m.finish(u)
			m.count("late ends", 1)
		}
	case 38:
		job := fmt.Sprintf("j%d", m.r.IntN(2))
		m.pause(job, !m.paused[job])
		m.count("pauses and resumes", 1)
	case 39: // who was away repeats the last steps of an operation
		if len(m.done) > 0 {
			o := *m.done[m.r.IntN(len(m.done))]
			o.step = m.r.IntN(2 * len(o.order))
			for i := 0; i < 3 && !m.advance(&o); i++ {
			}
			m.count("old operations again", 1)
		}
	}
}
