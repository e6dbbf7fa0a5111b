package model

import (
	"fmt"
	"time"

	"github.com/runnel-go/runnel/rebalance"
)

// partitions is how many partitions the members share.
const partitions = 2

// A roster is a stored membership: its generation, and for each executor whether it
// is a member, under which ID, and its assignment. The zero roster is none.
type roster struct {
	generation uint8
	of         [executors]seat
}

// A seat is the entry of one executor: bit 7 says that there is one, bits 5 and 6 are
// its ID, the lower ones its partitions.
type seat uint8

func seatOf(id uint8, assigned set) seat { return seat(1<<7 | id<<5 | uint8(assigned)) }
func (s seat) taken() bool               { return s>>7 == 1 }
func (s seat) id() uint8                 { return uint8(s) >> 5 & 3 }
func (s seat) assigned() set             { return set(s & 31) }

// has reports whether an executor is a member under an ID.
func (r *roster) has(i int, id uint8) bool { return r.of[i].taken() && r.of[i].id() == id }

// A stand is where an executor stands with the membership; see rebalance/doc.go.
type stand uint8

const (
	joining   stand = iota // not a member
	following              // a member
	leaving                // stopped, its leave is to be written
	parting                // no longer a member: releases all, then joins under a new ID
	stopped                // has left for good
	dead                   // its process died
)

// A change is one of the membership: read, computed, written by comparing.
type change struct {
	kind     changeKind
	state    request
	old, new roster
}

type changeKind uint8

const (
	noChange changeKind = iota
	join
	reap
	leave
)

// A member is one executor of the processor.
type member struct {
	stand   stand
	id      uint8
	beats   bool // its heartbeat is there
	leased  bool // its locks are surely its own
	lapsed  bool // its heartbeat was gone since it has this ID, or Redis forgot
	member  bool // it was in the stored membership under this ID
	removed bool // and then was not
	final   bool // it does not join again
	seen    roster
	owned   set
	doomed  uint8 // those whose heartbeats it found missing, by slot
	change  change

	loads, hears bool   // a slow load, a slow heartbeat is under way
	overtaken    bool   // the load, by a change of its own
	passed       bool   // a change of its own, by a load
	loaded       roster // what they have read
	heard        roster
}

type memberState struct {
	stored, replica roster
	locks           [partitions]tenure
	replicaLocks    [partitions]tenure
	replicas        bool
	failed          bool
	late            change // a swap whose caller has given up
	left            uint8
	each            bounds
	x               [executors]member
}

// wanted is what a member is assigned by what it follows.
func (x *member) wanted(i int) set {
	if x.stand != following && x.stand != leaving || !x.seen.has(i, x.id) {
		return 0
	}
	return x.seen.of[i].assigned()
}

func (s *memberState) alive(i int, r *roster) bool {
	return s.x[i].beats && s.x[i].id == r.of[i].id()
}

// A changeKey names a change: the functions of package rebalance are asked once for each.
type changeKey struct {
	old   roster
	kind  changeKind
	slot  int
	id    uint8
	other uint8 // members that are dead, by slot
}

// next is the membership that a change makes, by the functions of package rebalance.
func (m *membership) next(k changeKey) roster {
	if r, ok := m.known[k]; ok {
		return r
	}
	g := rebalance.Group{Generation: int64(k.old.generation), Partitions: partitions, Executors: map[string]rebalance.Executor{}}
	var dead []string
	for i, s := range k.old.of {
		gone := k.other>>i&1 == 1
		if !s.taken() || gone && k.kind == join { // a join leaves them out in the same step
			continue
		}
		if gone {
			dead = append(dead, memberID(i, s.id()))
		}
		e := rebalance.Executor{Worker: fmt.Sprintf("w%d", i), Expiry: time.Second}
		for p := range partitions {
			if s.assigned().has(uint8(p + 1)) {
				e.Partitions = append(e.Partitions, p)
			}
		}
		g.Executors[memberID(i, s.id())] = e
	}
	const salt = "stream/processor"
	switch k.kind {
	case join:
		g = g.Join(memberID(k.slot, k.id), rebalance.Executor{Worker: fmt.Sprintf("w%d", k.slot), Expiry: time.Second}, partitions, salt)
	case leave:
		g = g.Leave(salt, memberID(k.slot, k.id))
	case reap:
		g = g.Leave(salt, dead...)
	}
	r := rosterOf(g)
	m.known[k] = r
	return r
}

func memberID(slot int, id uint8) string { return fmt.Sprintf("x%d.%d", slot, id) }

func rosterOf(g rebalance.Group) (r roster) {
	r.generation = uint8(g.Generation)
	for id, e := range g.Executors {
		var slot, number uint8
		fmt.Sscanf(id, "x%d.%d", &slot, &number)
		var assigned set
		for _, p := range e.Partitions {
			assigned |= only(uint8(p + 1))
		}
		r.of[slot] = seatOf(number, assigned)
	}
	return r
}

// freeID returns an ID for a member that nothing refers to.
func (s *memberState) freeID(slot int) (id uint8, ok bool) {
	used := uint8(1) << s.x[slot].id
	rosters := []*roster{&s.stored, &s.replica, &s.late.old, &s.late.new}
	for i := range s.x {
		x := &s.x[i]
		rosters = append(rosters, &x.seen, &x.change.old, &x.change.new, &x.loaded, &x.heard)
	}
	for _, r := range rosters {
		if r.of[slot].taken() {
			used |= 1 << r.of[slot].id()
		}
	}
	for p := range partitions {
		for _, t := range [...]tenure{s.locks[p], s.replicaLocks[p]} {
			if t != 0 && int(t.slot()) == slot {
				used |= 1 << t.id()
			}
		}
	}
	return lowestID(used)
}
