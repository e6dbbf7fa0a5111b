package model

import "slices"

// steps appends all that may happen next.
func (m *Ownership) steps(s *ownState, out []step[ownState]) []step[ownState] {
	b := &brew{m: m, collector: collector[ownState]{s, out}}
	b.locks()
	b.servers()
	for i := range s.late {
		if s.late[i].verb != 0 {
			b.lateOne(i)
		}
	}
	for i := range s.x {
		b.faultsOf(i)
		b.executor(i)
		b.replies(i)
	}
	return b.out
}

// A brew collects the steps after one state of a partition.
type brew struct {
	collector[ownState]
	m *Ownership
}

// fault adds a step that is a fault, if the bounds have room for it.
func (b *brew) fault(f fault, format string, args [4]uint8, do func(n *ownState)) {
	if b.s.may(f) {
		b.add(false, format, args, func(n *ownState) string { n.spend(f); do(n); return "" })
	}
}

// locks lets the lock expire. Of an owner that lives it does so only when the lease
// has ended before, by a margin.
func (b *brew) locks() {
	lock := b.s.server.lock
	if lock == 0 {
		return
	}
	i := lock.slot()
	x := &b.s.x[i]
	expire := func(n *ownState) { n.dropLock() }
	if x.phase != down && b.s.tenure(int(i)) == lock && (x.is(leased) || x.is(granted)) {
		if !b.m.on(LeaseMargin) {
			b.fault(lapses, "the lock of x%d expires", [4]uint8{i}, expire)
		}
		return
	}
	b.then("the lock of x%d expires", [4]uint8{i}, func(n *ownState) { expire(n) })
}

// servers are the faults of Redis, and what is appended.
func (b *brew) servers() {
	s := b.s
	if b.m.Max[fails] > 0 {
		if !s.replicas && s.may(fails) {
			b.add(false, "the replica gets nothing from here on", [4]uint8{}, func(n *ownState) string {
				n.replica, n.replicas = n.server, true
				return ""
			})
		} else if s.replicas {
			b.fault(fails, "the replica becomes the master, replies of the old one still arrive", [4]uint8{}, func(n *ownState) { n.failOver(false, b.m.Fail != 0) })
			b.fault(fails, "the replica becomes the master, replies of the old one are lost", [4]uint8{}, func(n *ownState) { n.failOver(true, b.m.Fail != 0) })
		}
	}
	b.fault(destroys, "the group is destroyed by hand", [4]uint8{}, func(n *ownState) {
		n.server.groups = [maxGroups]group{}
		n.again |= n.handled // what was acked and is behind the stored floor
		n.settled, n.byHand = 0, n.server.parked|b.m.Fail != 0
	})
	b.fault(flushes, "FLUSHALL", [4]uint8{}, func(n *ownState) {
		n.dropLock()
		n.server = server{epoch: 3}
		n.disturb()
	})
	if s.may(appends) {
		e := b.m.Later[len(b.m.Later)-int(s.each[appends])]
		if e > s.server.log.highest() {
			b.add(false, "e%d is appended", [4]uint8{e}, func(n *ownState) string {
				n.spend(appends)
				n.server.log |= only(e)
				n.handled &^= only(e) // the ID may have been another entry's, which is lost
				return ""
			})
		}
	}
}

// failOver puts the replica into the server's place. Connections to the old one are
// gone, with what was under way there.
func (s *ownState) failOver(repliesToo, parks bool) {
	s.server, s.replica, s.replicas, s.aged = s.replica, server{}, false, true
	s.late = [maxLate]late{}
	for i := range s.x {
		x := &s.x[i]
		cut := func(r request) bool { return r == sent || r != none && repliesToo }
		x.set(doubting, x.is(byPosition))
		x.set(unsure, parks)
		if cut(x.read) {
			s.readUnknown(i)
		}
		if cut(x.ack) {
			s.ackUnknown(i)
		}
		if cut(x.take) {
			x.take = sent
		}
		if cut(x.move) {
			x.move = sent
		}
		if cut(x.refresh) {
			x.refresh = none
		}
	}
	s.disturb()
}

// disturb notes that owners know nothing of the server any more.
func (s *ownState) disturb() {
	s.failed = true
	s.again |= s.handled
	s.settled = 0
	for i := range s.x {
		x := &s.x[i]
		x.bereft = false
		x.set(elder, x.refresh != none && x.refresh != sent)
		if x.phase != idle && x.phase != down {
			x.set(stale, true)
			x.set(mixed, true)
		}
	}
}

// lateOne executes a request whose caller has given up, or loses it.
func (b *brew) lateOne(k int) {
	l := b.s.late[k]
	args := [4]uint8{l.of.slot(), l.of.id(), l.of.number(), uint8(l.acks)}
	drop := func(n *ownState) { n.late[k] = late{} }
	b.then(lateTexts[l.verb][1], args, func(n *ownState) { drop(n) })
	if l.verb == lateRead {
		if g := b.s.server.group(l.of); g != nil && b.s.server.log&^upTo(g.last) == 0 {
			return // it waits for entries
		}
	}
	b.step(lateTexts[l.verb][0], args, func(n *ownState) (broken string) {
		drop(n)
		switch l.verb {
		case lateLock:
			if n.server.lock == 0 {
				n.server.lock = l.of
				if x := &n.x[l.of.slot()]; n.tenure(int(l.of.slot())) == l.of {
					x.bereft = false
				}
			}
		case lateTakeover:
			_, _, _, broken = b.m.takeover(n, l.of, false)
		case lateRead:
			b.m.readNew(n, l.of)
		case lateAck:
			_, broken = b.m.xack(n, l.of, l.acks)
		case lateCommit:
			_, broken = n.server.advance(l, b.m.Off)
		case lateUnlock:
			b.m.unlock(n, l.of, true)
		case latePark:
			_, broken = mover{b.m}.park(n, l.of, l.acks.highest())
		case lateSettle:
			mover{b.m}.settle(n, l.of, l.acks.highest())
		}
		return broken
	})
}

// lateTexts tell that a late request is executed, or never is.
var lateTexts = func() (texts [len(verbs)][2]string) {
	for v, name := range verbs {
		texts[v] = [2]string{
			"the late " + name + " of x%d, ID %d, tenure %d, entries %03b is executed",
			"the late " + name + " of x%d, ID %d, tenure %d, entries %03b never arrives",
		}
	}
	return texts
}()

// putLate notes a request whose caller has given up, where there is room for one.
func (s *ownState) putLate(l late) {
	if k := slices.IndexFunc(s.late[:], func(other late) bool { return other.verb == 0 }); k >= 0 {
		s.late[k] = l
	}
}
