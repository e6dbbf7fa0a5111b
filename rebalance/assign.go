package rebalance

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// A member is an executor that may get partitions.
type member struct {
	ID     string // unique
	Worker string // survives a restart under a new ID; may be shared or empty
}

// Salt is the salt of a processor's assignments.
func Salt(stream, processor string) string { return stream + "/" + processor }

// wishes are the requests of operators for an assignment.
type wishes struct {
	Pins     map[int]string // partition to its worker, as long as that is a member
	Cordoned []string       // workers that get only pinned partitions
}

// assign spreads partitions 0 to n-1 over members and returns the partitions of each, ascending.
// Every partition has exactly one member, sizes differ by at most one, and as few partitions as
// possible move away from a member that has them in prev. Without members the result is empty.
//
// Wishes come first. Pinned partitions count for the size of their member, and alone may make it
// larger. If a worker with pins has several members, one partition more than necessary may move. If
// all members are cordoned, cordons are ignored.
//
// When n does not divide evenly and prev does not decide which members get one more, a hash of salt
// and worker does, then of salt and ID. With the processor's name as salt, the remainders of many
// small processors spread over workers, and a worker that comes back is treated as before.
//
// Equal arguments give equal results in every process, whatever the order of members. assign
// retains and changes none of its arguments. If prev gives a partition to several members, it
// counts for the one with the least ID.
func assign(prev map[string][]int, members []member, n int, salt string, w wishes) map[string][]int {
	next := make(map[string][]int, len(members))
	if len(members) == 0 {
		return next
	}
	for _, m := range members {
		next[m.ID] = []int{}
	}
	held, free := claims(prev, members, n)
	pinned := w.pinned(held, members, n)
	for p, id := range pinned {
		next[id] = append(next[id], p)
	}
	open := w.open(members)
	held, free = without(held, free, pinned, open)
	level, extra := level(next, open, n-len(pinned))
	ranked := rank(open, held, func(m member) int { return max(0, level-len(next[m.ID])) }, salt)
	for _, m := range ranked {
		quota := max(0, level-len(next[m.ID]))
		if extra > 0 && len(next[m.ID]) <= level {
			quota++
			extra--
		}
		keep := held[m.ID]
		if len(keep) > quota {
			free = append(free, keep[quota:]...)
			keep = keep[:quota]
		}
		// The capacity is the quota: the free partitions below fill it.
		next[m.ID] = append(append(make([]int, 0, len(next[m.ID])+quota), next[m.ID]...), keep...)
	}
	slices.Sort(free)
	for _, m := range ranked {
		room := cap(next[m.ID]) - len(next[m.ID])
		next[m.ID] = append(next[m.ID], free[:room]...)
		free = free[room:]
	}
	for _, list := range next {
		slices.Sort(list)
	}
	return next
}

// pinned returns the member of each pinned partition. Of several members of the worker it is
// the one that holds the partition, else the one with the least ID.
func (w wishes) pinned(held map[string][]int, members []member, n int) map[int]string {
	out := map[int]string{}
	for p, worker := range w.Pins {
		if p < 0 || p >= n {
			continue
		}
		best, holds := "", false
		for _, m := range members {
			if m.Worker != worker {
				continue
			}
			has := slices.Contains(held[m.ID], p)
			if best == "" || has && !holds || has == holds && m.ID < best {
				best, holds = m.ID, has
			}
		}
		if best != "" {
			out[p] = best
		}
	}
	return out
}

// open returns the members that are not cordoned, or all if all are cordoned.
func (w wishes) open(members []member) []member {
	out := slices.DeleteFunc(slices.Clone(members), func(m member) bool { return slices.Contains(w.Cordoned, m.Worker) })
	if len(out) == 0 {
		return members
	}
	return out
}

// without removes pinned partitions from those that open members hold and from the free ones.
// Partitions of other members become free.
func without(held map[string][]int, free []int, pinned map[int]string, open []member) (map[string][]int, []int) {
	loose := func(list []int) []int {
		return slices.DeleteFunc(slices.Clone(list), func(p int) bool { _, is := pinned[p]; return is })
	}
	left, kept := loose(free), make(map[string][]int, len(open))
	for _, m := range open {
		kept[m.ID] = loose(held[m.ID])
	}
	for id, list := range held {
		if _, is := kept[id]; !is {
			left = append(left, loose(list)...)
		}
	}
	return kept, left
}

// level returns the size up to which n more partitions fill the members, and the number left
// over, which is smaller than the number of members of that size.
func level(sizes map[string][]int, members []member, n int) (at, left int) {
	need := func(at int) (sum int) {
		for _, m := range members {
			sum += max(0, at-len(sizes[m.ID]))
		}
		return sum
	}
	low, high := 0, n+1 // need(low) <= n; need(high) may be more
	for _, m := range members {
		high = max(high, len(sizes[m.ID])+n+1)
	}
	for high-low > 1 {
		if mid := (low + high) / 2; need(mid) <= n {
			low = mid
		} else {
			high = mid
		}
	}
	return low, n - need(low)
}

// claims returns the partitions that each member holds in prev, ascending, and those that
// no member holds.
func claims(prev map[string][]int, members []member, n int) (held map[string][]int, free []int) {
	owner := make([]string, n)
	taken := make([]bool, n)
	for _, m := range members {
		for _, p := range prev[m.ID] {
			if p >= 0 && p < n && (!taken[p] || m.ID < owner[p]) {
				owner[p], taken[p] = m.ID, true
			}
		}
	}
	held = make(map[string][]int, len(members))
	for p := range n {
		if taken[p] {
			held[owner[p]] = append(held[owner[p]], p)
		} else {
			free = append(free, p)
		}
	}
	return held, free
}

// rank sorts the members that should get one more than their base to the front. A member
// that has more than its base saves exactly one move that way, and no other saves any; the
// hash decides among equals.
func rank(members []member, held map[string][]int, base func(member) int, salt string) []member {
	type place struct {
		m          member
		above      int
		worker, id [sha256.Size]byte
	}
	places := make([]place, len(members))
	for i, m := range members {
		places[i] = place{m: m, worker: digest(salt, m.Worker), id: digest(salt, m.ID)}
		if len(held[m.ID]) > base(m) {
			places[i].above = 1
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(b.above-a.above, bytes.Compare(a.worker[:], b.worker[:]), bytes.Compare(a.id[:], b.id[:]))
	})
	ranked := make([]member, len(places))
	for i, p := range places {
		ranked[i] = p.m
	}
	return ranked
}

func digest(salt, name string) [sha256.Size]byte {
	return sha256.Sum256([]byte(salt + "\x00" + name))
}
