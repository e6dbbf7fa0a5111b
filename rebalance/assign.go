package rebalance

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// A Member is one of those that Assign spreads partitions over.
type Member struct {
	ID     string // unique
	Worker string // stays the same when the worker comes back under a new ID; may be shared or empty
}

// Assign spreads partitions 0 to n-1 over members and returns the partitions
// of each, ascending. Every partition has exactly one member, sizes differ by
// at most one, and as few partitions as possible move away from a member that
// has them in prev. Without members the result is empty.
//
// When n does not divide evenly and prev does not decide who gets one more, a
// hash of salt and worker does (then of salt and ID). With the processor's
// name as salt, the remainders of many small processors spread over workers,
// and a worker that comes back is treated as before.
//
// Equal arguments give equal results in every process, whatever the order of
// members. Assign retains and changes none of its arguments. A partition that
// prev gives to several members counts as the one's with the least ID.
func Assign(prev map[string][]int, members []Member, n int, salt string) map[string][]int {
	next := make(map[string][]int, len(members))
	if len(members) == 0 {
		return next
	}
	held, free := claims(prev, members, n)
	base, extra := n/len(members), n%len(members)
	ranked := rank(members, held, base, salt)
	for i, m := range ranked {
		quota := base
		if i < extra {
			quota++
		}
		keep := held[m.ID]
		if len(keep) > quota {
			free = append(free, keep[quota:]...)
			keep = keep[:quota]
		}
		// Capacity is the quota: who has room below gets what others left.
		next[m.ID] = append(make([]int, 0, quota), keep...)
	}
	slices.Sort(free)
	for _, m := range ranked {
		room := cap(next[m.ID]) - len(next[m.ID])
		next[m.ID] = append(next[m.ID], free[:room]...)
		free = free[room:]
		slices.Sort(next[m.ID])
	}
	return next
}

// claims returns what each member holds in prev, ascending, and what nobody
// holds.
func claims(prev map[string][]int, members []Member, n int) (held map[string][]int, free []int) {
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

// rank puts first who shall have one more than base. Each member that already
// has more than base saves exactly one move by it, and no other member saves
// any, so that only the hash is left to decide among equals.
func rank(members []Member, held map[string][]int, base int, salt string) []Member {
	type place struct {
		m          Member
		above      int
		worker, id [sha256.Size]byte
	}
	places := make([]place, len(members))
	for i, m := range members {
		places[i] = place{m: m, worker: digest(salt, m.Worker), id: digest(salt, m.ID)}
		if len(held[m.ID]) > base {
			places[i].above = 1
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(
			cmp.Compare(b.above, a.above),
			bytes.Compare(a.worker[:], b.worker[:]),
			bytes.Compare(a.id[:], b.id[:]),
		)
	})
	ranked := make([]Member, len(places))
	for i, p := range places {
		ranked[i] = p.m
	}
	return ranked
}

func digest(salt, name string) [sha256.Size]byte {
	return sha256.Sum256([]byte(salt + "\x00" + name))
}
