package model

import "math/bits"

// replies is what happens to the requests that an executor waits for: the server
// executes them, the reply arrives, or the connection breaks.
func (b *brew) replies(i int) {
	x := &b.s.x[i]
	if x.read != none {
		b.readReply(i)
	}
	if x.ack != none {
		if x.is(byPosition) {
			b.commitReply(i)
		} else {
			b.ackReply(i)
		}
	}
	if x.phase == taking {
		b.takeReply(i)
	}
	if x.move != none {
		parking{b}.moveReply(i)
	}
	if x.refresh != none {
		b.refreshReply(i)
	}
}

func (b *brew) readReply(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	of := b.s.tenure(i)
	b.fault(breaks, "the connection of x%d breaks: outcome of the read unknown", at, func(n *ownState) {
		if n.x[i].read == sent && !n.x[i].history && !x.is(byPosition) {
			n.putLate(late{verb: lateRead, of: tenureOf(uint8(i), x.id, 0)})
		}
		n.readUnknown(i)
		if !b.m.on(KillBeforeHistory) {
			n.x[i].set(killing, false)
		}
		if !b.m.on(HistoryBeforeNew) {
			n.x[i].set(behind, false)
		}
		if b.m.CannotKill && n.x[i].is(killing) {
			n.x[i].set(killing, false)
			if p := n.x[i].phase; p == owning || p == draining || p == retaking {
				n.lose(i)
			}
		}
	})
	if x.read != sent {
		b.readArrives(i)
		return
	}
	if x.phase != owning {
		b.then("x%d: the read ends without entries", at, func(n *ownState) { n.x[i].read = none })
	}
	if x.is(byPosition) {
		if got := b.s.server.behind(x.position, b.m.Count); got != 0 && x.phase == owning {
			b.then("the server executes x%d's read", at, func(n *ownState) { n.x[i].read, n.x[i].got = done, got })
		}
		return
	}
	if x.history {
		b.then("the server executes x%d's read of its history", at, func(n *ownState) {
			x := &n.x[i]
			if g := n.server.group(of); g == nil {
				x.read = refused
			} else {
				x.read, x.got = done, g.pending&^upTo(x.position)
			}
		})
		return
	}
	if g := b.s.server.group(of); g != nil && b.s.server.log&^upTo(g.last) == 0 {
		return // it waits for entries
	}
	b.then("the server executes x%d's read", at, func(n *ownState) {
		got, group := b.m.readNew(n, of)
		n.x[i].read, n.x[i].got = done, got
		if !group {
			n.x[i].read = refused
		}
	})
}

// readArrives takes a read's reply in. With Refuses the buffer may refuse what is
// behind the first entry, for its size; then that is pending and not held. Of a read
// that goes back, and of later ones, nothing is taken in: the tenure is to end.
func (b *brew) readArrives(i int) {
	x := &b.s.x[i]
	args := [4]uint8{uint8(i), uint8(x.got)}
	if x.phase != owning || x.retaken && x.read == done {
		b.then("x%d drops a read's reply of %03b", args, func(n *ownState) { n.x[i].read, n.x[i].got = none, 0 })
		return
	}
	if x.read == refused {
		b.then("x%d is told that its group is gone", args, func(n *ownState) { n.x[i].read = none; b.m.probe(n, i) })
		return
	}
	if !x.history && x.got != 0 && x.got.lowest() <= x.position && b.m.on(GoingBackIsATakeover) {
		b.then("x%d gets %03b, which goes back: it takes nothing more in", args, func(n *ownState) {
			n.x[i].read, n.x[i].got, n.x[i].retaken = none, 0, true
		})
		return
	}
	n := bits.OnesCount8(uint8(x.got))
	for keep := range n {
		if b.m.Refuses && keep+x.waiting() > 0 { // an empty buffer takes one entry, however large
			b.then("x%d gets %03b, and refuses a part of it", args, func(n *ownState) { b.m.push(n, i, keep) })
		}
	}
	b.then("x%d gets %03b", args, func(n *ownState) { b.m.push(n, i, held) })
}

// push adds what was read to the buffer: so many entries, the others are refused.
func (m *Ownership) push(s *ownState, i, keep int) {
	x := &s.x[i]
	if x.history {
		x.set(behind, false)
	}
	at := x.waiting()
	for got := x.got; got != 0; got &= got - 1 {
		if keep == 0 || at == held {
			x.set(behind, m.on(RefusedComesAgain) && !x.is(byPosition))
			break
		}
		x.buffer[at], x.position = got.lowest(), got.lowest()
		keep--
		at++
	}
	x.read, x.got, x.history = none, 0, false
}

// readUnknown is what an executor does about a read of unknown outcome.
func (s *ownState) readUnknown(i int) {
	x := &s.x[i]
	if x.is(byPosition) { // it had no effect
		x.read, x.got = none, 0
		x.set(doubting, true)
		return
	}
	x.set(killing, !x.history && x.phase != ending || x.is(killing))
	x.set(behind, x.phase == owning)
	x.read, x.got, x.history = none, 0, false
}

func (b *brew) ackReply(i int) {
	x := &b.s.x[i]
	args := [4]uint8{uint8(i), uint8(x.acked)}
	b.fault(breaks, "the connection of x%d breaks: outcome of the acks of %03b unknown", args, func(n *ownState) {
		if x.ack == sent {
			n.putLate(x.lateAck())
		}
		if b.m.on(AcksAgain) {
			n.ackUnknown(i)
		} else {
			n.confirm(i)
		}
	})
	if x.ack == sent {
		b.step("the server executes x%d's acks of %03b", args, func(n *ownState) string {
			acked, broken := b.m.xack(n, x.ackOf, x.acked)
			n.x[i].ack = done
			if acked != x.acked {
				n.x[i].ack = refused
			}
			return broken
		})
		return
	}
	b.step("x%d gets the reply to its acks of %03b", args, func(n *ownState) string {
		switch {
		case x.ack == done, x.ackOf != n.tenure(i), x.phase != owning && x.phase != draining:
			n.confirm(i)
		case !b.m.on(ShortIsAQuestion):
			n.ackUnknown(i)
			return b.m.giveUp(n, i)
		case n.server.group(x.ackOf) != nil:
			n.confirm(i)
		default:
			n.ackUnknown(i)
			b.m.probe(n, i)
		}
		return ""
	})
}

// giveUp loses a tenure for what a reply said.
func (m *Ownership) giveUp(s *ownState, i int) string {
	of := s.tenure(i)
	fine := s.server.lock == of && s.server.group(of) != nil
	s.lose(i)
	if fine {
		return "no owner gives up while lock and group are its own"
	}
	return ""
}

// ackUnknown puts back what was sent, to be sent again while the tenure lasts.
func (s *ownState) ackUnknown(i int) {
	x := &s.x[i]
	if x.ackOf == s.tenure(i) && (x.phase == owning || x.phase == draining) {
		if x.is(byPosition) {
			x.ack = none // the same commit is sent again
			return
		}
		x.done |= x.acked
	}
	x.ack, x.acked, x.ackOf = none, 0, 0
}

// confirm notes acks. The floor rises over them once nothing below is open.
func (s *ownState) confirm(i int) {
	x := &s.x[i]
	acked, of := x.acked, x.ackOf
	x.ack, x.acked, x.ackOf = none, 0, 0
	if of != s.tenure(i) || x.phase != owning && x.phase != draining {
		return
	}
	x.top, x.sure = max(x.top, acked.highest()), x.sure|acked
	x.out &^= acked
	x.rise()
}

// rise lets the floor rise once nothing below what was confirmed is open.
func (x *executor) rise() {
	open := x.done | x.acked
	if e := x.taken(); e != 0 {
		open |= only(e)
	}
	if open&upTo(x.top) == 0 {
		x.floor = x.top
	}
}

// probe asks the server what became of a tenure: another's, or without its group. By position it is over in any case.
func (m *Ownership) probe(s *ownState, i int) {
	of := s.tenure(i)
	switch {
	case s.server.lock != of:
		s.lose(i)
	case s.server.group(of) == nil:
		m.regain(s, i)
	case s.x[i].is(byPosition):
		s.forgotten(i)
	}
}

// regain ends a tenure whose group is gone while the lock is ours.
func (m *Ownership) regain(s *ownState, i int) {
	if !m.on(GroupAnew) {
		return
	}
	s.x[i].phase = retaking
	s.drop(i)
}
