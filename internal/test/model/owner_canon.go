package model

import (
	"cmp"
	"math/bits"
	"slices"
)

// canon gives states that differ in names only the same names: executors, IDs and
// tenures are interchangeable.
func (m *Ownership) canon(s *ownState) {
	m.forget(s)
	renumber(s)
	var keys [executors]sortKey
	mentions := s.mentions()
	for i := range s.x {
		keys[i] = sortKey{s.x[i].key(), mentions[i], uint8(i)}
	}
	slices.SortFunc(keys[:], func(a, b sortKey) int {
		return cmp.Or(slices.Compare(a.own[:], b.own[:]), cmp.Compare(a.mentions, b.mentions))
	})
	var to [executors]uint8
	var x [executors]executor
	for i, k := range keys {
		to[k.slot], x[i] = uint8(i), s.x[k.slot]
	}
	s.x = x
	s.tenures(func(t *tenure) { *t = tenureOf(to[t.slot()], t.id(), t.number()) })
	order(&s.server)
	order(&s.replica)
	if cmp.Or(cmp.Compare(s.late[0].verb, s.late[1].verb), cmp.Compare(s.late[0].of, s.late[1].of)) < 0 {
		s.late[0], s.late[1] = s.late[1], s.late[0]
	}
}

type sortKey struct {
	own      [6]uint64
	mentions uint32
	slot     uint8
}

func (x *executor) key() [6]uint64 {
	pack := func(v ...uint8) (n uint64) {
		for _, b := range v {
			n = n<<8 | uint64(b)
		}
		return n
	}
	return [6]uint64{
		pack(uint8(x.phase), uint8(x.flags), bit(x.bereft), x.position, x.current, x.begun, uint8(x.done), x.floor),
		pack(x.buffer[0], x.buffer[1], x.buffer[2], x.buffer[3], uint8(x.read), uint8(x.ack), uint8(x.take), uint8(x.refresh)),
		pack(bit(x.history), uint8(x.got), uint8(x.acked), uint8(x.ackOf)&^(3<<5), x.arg, x.gained, x.given, x.top),
		pack(x.epoch, x.id, x.number, uint8(x.flags>>8), bit(x.retaken), uint8(x.sure), x.commits),
		pack(uint8(x.move), x.moved, uint8(x.kept), uint8(x.away), uint8(x.out), uint8(x.ran), x.missing),
		pack(x.owed.taken, x.owed.waiting, x.nth, uint8(x.outs)),
	}
}

// idle says that a late request cannot have an effect any more.
func (m *Ownership) idle(s *ownState, l late) bool {
	own := s.x[l.of.slot()].id == l.of.id() && s.x[l.of.slot()].phase != down
	switch l.verb {
	case lateRead, lateAck:
		return !own && s.server.group(l.of) == nil && s.replica.group(l.of) == nil
	case lateTakeover, lateUnlock, latePark, lateSettle:
		return !own && m.on(FenceTakeover) && m.on(ReleaseComparesTenure) && m.on(MoveComparesTenure) && s.server.lock != l.of && s.replica.lock != l.of &&
			(s.late[0].verb != lateLock && s.late[1].verb != lateLock)
	case lateCommit:
		return m.on(CommitComparesTenure) && (s.server.took != l.of || m.on(CommitOnce) && l.number <= s.server.commit)
	}
	return false
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// mentions tells where each executor is referred to.
func (s *ownState) mentions() (seen [executors]uint32) {
	place := uint32(1)
	s.tenures(func(t *tenure) {
		seen[t.slot()] |= place
		place <<= 1
	})
	return seen
}

// tenures calls fn with every reference to a tenure, in the order of the fields.
func (s *ownState) tenures(fn func(*tenure)) {
	call := func(t *tenure) {
		if *t != 0 {
			fn(t)
		}
	}
	for _, r := range [...]*server{&s.server, &s.replica} {
		call(&r.lock)
		call(&r.took)
		for i := range r.groups {
			call(&r.groups[i].of)
		}
	}
	for i := range s.late {
		call(&s.late[i].of)
	}
	for i := range s.x {
		call(&s.x[i].ackOf)
	}
}

// forget clears what nothing depends on.
func (m *Ownership) forget(s *ownState) {
	for f := range s.each {
		if fault(f) != appends {
			s.each[f] = min(s.each[f], s.left)
		}
	}
	for i := range s.late {
		if m.idle(s, s.late[i]) {
			s.late[i] = late{}
		}
	}
	answered := true // every takeover: a repeated one is told the stored floor
	for i := range s.x {
		x := &s.x[i]
		answered = answered && x.phase != taking && !(x.is(byPosition) && x.is(claimed))
	}
	if !m.rebuilds() && answered && m.Fail == 0 {
		s.server.floor = 0
	}
	if !m.Epochs {
		s.server.epoch, s.replica.epoch, s.aged = 0, 0, false
	}
	for i := range s.x {
		x := &s.x[i]
		if !m.rebuilds() {
			x.top, x.floor = 0, 0
		}
		running := x.phase == owning || x.phase == draining
		if m.Max[fails] == 0 || !running || x.is(byPosition) { // only a failover brings back what was acked
			x.sure = 0
		}
		if x.ack == none {
			x.nth, x.outs = 0, 0
			if !running {
				x.acked, x.ackOf = 0, 0
			}
		}
		if x.phase != owning {
			x.set(doubting, false)
			x.set(unsure, false)
			x.missing = 0
		}
		if !running {
			x.out, x.ran = 0, 0
		}
		if !running && x.phase != taking {
			x.kept, x.away = 0, 0
		}
		if x.refresh == none {
			x.owed = owed{}
		}
		if !m.Epochs {
			x.epoch, x.given = 0, 0
		}
		if x.phase == idle && !x.is(claimed) || x.phase == down {
			x.number = 0
		}
	}
}

// renumber gives each executor's present ID and tenure the number 0, and others the
// next ones in the order in which they appear.
func renumber(s *ownState) {
	const open = 0xff
	var ids [executors][4]uint8
	var used [executors]uint8
	var numbers [executors][4][8]uint8
	var usedNumbers [executors][4]uint8
	for i := range s.x {
		for k := range ids[i] {
			ids[i][k] = open
			for n := range numbers[i][k] {
				numbers[i][k][n] = open
			}
		}
		x := &s.x[i]
		ids[i][x.id], used[i] = 0, 1
		numbers[i][x.id][x.number], usedNumbers[i][x.id] = 0, 1
		x.id, x.number = 0, 0
	}
	s.tenures(func(t *tenure) {
		slot, id, number := t.slot(), t.id(), t.number()
		if ids[slot][id] == open {
			ids[slot][id] = used[slot]
			used[slot]++
		}
		if numbers[slot][id][number] == open {
			numbers[slot][id][number] = usedNumbers[slot][id]
			usedNumbers[slot][id]++
		}
		*t = tenureOf(slot, ids[slot][id], numbers[slot][id][number])
	})
}

func order(r *server) {
	slices.SortFunc(r.groups[:], func(a, b group) int {
		return cmp.Or(cmp.Compare(b.of, a.of), cmp.Compare(a.last, b.last))
	})
}

// freeNumber returns a number for a new tenure that nothing refers to.
func (s *ownState) freeNumber(slot, id uint8) (number uint8, ok bool) {
	var used uint16
	s.tenures(func(t *tenure) {
		if t.slot() == slot && t.id() == id {
			used |= 1 << t.number()
		}
	})
	number = uint8(bits.TrailingZeros16(^used))
	return number, number < 8
}

// freeID returns an ID for an executor that nothing refers to.
func (s *ownState) freeID(slot uint8) (id uint8, ok bool) {
	used := uint8(1) << s.x[slot].id
	s.tenures(func(t *tenure) {
		if t.slot() == slot {
			used |= 1 << t.id()
		}
	})
	return lowestID(used)
}

// lowestID returns the lowest ID that is not among the used ones, if there is one.
func lowestID(used uint8) (id uint8, ok bool) {
	id = uint8(bits.TrailingZeros8(^used))
	return id, id < 4
}
