package model

// takeReply is what happens to a takeover that is under way.
func (b *brew) takeReply(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	of := b.s.tenure(i)
	if x.take == sent {
		b.step("the server executes x%d's takeover", at, func(n *ownState) string {
			floor, epoch, ok, broken := b.m.takeover(n, of, true)
			x := &n.x[i]
			x.take, x.gained, x.given = done, floor, epoch
			x.kept, x.away = n.server.parked, n.server.aside
			x.set(stale, false)
			x.set(mixed, false)
			if !ok {
				x.take = refused
			}
			return broken
		})
	} else {
		b.step("x%d gets the reply to its takeover", at, func(n *ownState) string {
			if x.take == done {
				n.own(i)
				return ""
			}
			b.m.unlock(n, of, false)
			n.x[i].leave()
			return ""
		})
	}
	b.fault(breaks, "the connection of x%d breaks: outcome of the takeover unknown, it is sent again", at, func(n *ownState) {
		if x.take == sent {
			n.putLate(late{verb: lateTakeover, of: of})
		}
		n.x[i].take = sent
	})
}

func (s *ownState) own(i int) {
	x := &s.x[i]
	lease := x.is(granted)
	*x = executor{
		phase: owning, id: x.id, number: x.number, epoch: min(x.epoch, x.given), flags: x.flags & (stale | mixed | byPosition),
		position: x.gained, top: x.gained, floor: x.gained,
		read: x.read, history: x.history, got: x.got, ack: x.ack, acked: x.acked, ackOf: x.ackOf,
		refresh: x.refresh, arg: x.arg, retries: retries{nth: x.nth, outs: x.outs, kept: x.kept, away: x.away},
	}
	x.set(leased, lease)
	x.set(doubting, x.is(byPosition))
}

// faultsOf are those that strike one executor.
func (b *brew) faultsOf(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	if x.phase == idle || x.phase == down {
		return
	}
	if x.is(leased) && (x.phase == owning || x.phase == draining) || x.is(granted) {
		b.fault(lapses, "x%d is paused or cut off until its lease is over", at, func(n *ownState) {
			n.x[i].set(leased, false)
			n.x[i].set(granted, false)
			n.x[i].set(renewed, false)
		})
	}
	b.fault(crashes, "the process of x%d dies", at, func(n *ownState) { n.crash(i) })
	switch x.phase {
	case owning:
		b.fault(surprise, "the ID of x%d ends for a loss elsewhere", at, func(n *ownState) { n.lose(i) })
		b.fault(releases, "x%d is asked to release", at, func(n *ownState) { n.x[i].drain() })
	case taking:
		if x.take == sent && b.s.room() {
			b.fault(releases, "x%d is told not to take the partition: outcome of the takeover unknown", at, func(n *ownState) {
				of := n.tenure(i)
				n.putLate(late{verb: lateTakeover, of: of})
				b.m.unlock(n, of, false)
				n.x[i].leave()
				n.x[i].number = of.number()
				n.x[i].set(claimed, true)
			})
		}
	}
}

// crash ends a process. What it sent may still be executed.
func (s *ownState) crash(i int) {
	x := s.x[i]
	if x.take == sent {
		s.putLate(late{verb: lateTakeover, of: s.tenure(i)})
	}
	if x.ack == sent {
		s.putLate(x.lateAck())
	}
	if x.read == sent && !x.history && !x.is(byPosition) {
		s.putLate(late{verb: lateRead, of: tenureOf(uint8(i), x.id, 0)})
	}
	s.abandon(i)
	s.again |= s.handled
	s.x[i] = executor{phase: down, id: x.id, epoch: 3, flags: x.flags & byPosition}
}

// refreshes extends the lease. One that is quick is a single step, and is there only
// where it changes something; one that takes long goes through its stages.
func (b *brew) refreshes(i int) {
	if b.s.x[i].refresh != none {
		return
	}
	at := [4]uint8{uint8(i)}
	next := *b.s
	next.x[i].ask()
	state, lowest := b.m.refresh(&next, i)
	next.x[i].arg = 0
	next.x[i].set(renewed, true)
	b.m.heard(&next, i, state, lowest)
	broken := ""
	if next.x[i].refresh == strayed {
		b.m.judgeStrays(&next, i)
	}
	if next.x[i].refresh == straying {
		broken = b.m.ackStrays(&next, i)
	}
	if next.x[i].set(renewed, false); next != *b.s {
		b.step("x%d refreshes its lease", at, func(n *ownState) string { *n = next; return broken })
	}
	b.fault(slowness, "x%d sends a refresh, which takes long", at, func(n *ownState) {
		n.x[i].refresh = sent
		n.x[i].ask()
		n.x[i].set(renewed, true)
	})
}

func (b *brew) refreshReply(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	switch {
	case x.refresh == straying:
		b.step("the server executes x%d's acks of %03b, which it does not hold", [4]uint8{uint8(i), x.arg}, func(n *ownState) string { return b.m.ackStrays(n, i) })
	case x.phase != owning && x.phase != draining:
		b.then("x%d has no use for its refresh any more", at, func(n *ownState) {
			n.x[i].refresh, n.x[i].arg = none, 0
			n.x[i].set(renewed, false)
			n.x[i].set(elder, false)
		})
	case x.refresh == strayed:
		b.then("x%d is told what is pending and it does not hold", at, func(n *ownState) { b.m.judgeStrays(n, i) })
	case x.refresh == sent:
		b.then("the server executes x%d's refresh", at, func(n *ownState) {
			n.x[i].refresh, n.x[i].arg = b.m.refresh(n, i)
		})
	default:
		b.then("x%d gets the reply to its refresh", at, func(n *ownState) {
			n.x[i].refresh, n.x[i].arg = none, 0
			b.m.heard(n, i, x.refresh, x.arg)
			n.x[i].set(renewed, false)
			n.x[i].set(elder, false)
		})
	}
}

// heard is what an executor makes of a refresh. What it grants counts from before it
// was sent: that may be over by the time at which the reply is there.
func (m *Ownership) heard(s *ownState, i int, state request, lowest uint8) {
	x := &s.x[i]
	switch state {
	case notOurs:
		s.lose(i)
	case refused:
		m.regain(s, i)
	case done:
		if x.is(renewed) || !m.on(LeaseFromRequest) {
			x.set(leased, true)
		}
		x.set(stale, x.is(stale) && x.is(elder))
		if x.is(byPosition) {
			if lowest != 0 && m.on(LostCommitIsATakeover) {
				s.forgotten(i)
			}
			return
		}
		if upTo, ok := x.strays(lowest); ok && m.on(StraysAreAcked) {
			x.refresh, x.arg = strayed, upTo
		} else if m.Fail != 0 {
			mover{m}.findMissing(s, i, lowest)
		}
	}
}

// strays is up to which entry what is pending must have been acked already: all
// below the lowest that is held, and all that were ever held where none is.
func (x *executor) strays(lowest uint8) (upTo uint8, ok bool) {
	if x.phase != owning || x.retaken || lowest == 0 || lowest > x.position {
		return 0, false
	}
	least := x.buffer[0]
	for _, e := range [...]uint8{x.taken(), first(x.done), first(x.acked)} {
		if e != 0 && (least == 0 || e < least) {
			least = e
		}
	}
	if least == 0 {
		return x.position, true
	}
	return least - 1, lowest < least
}

func first(s set) uint8 {
	if s == 0 {
		return 0
	}
	return s.lowest()
}

// judgeStrays reads what is pending up to an entry. It is acked only if all of it was acked
// in this tenure; else the partition is taken over again: of an entry whose ID went back, the
// read that brings it may be unanswered yet, or of unknown outcome.
func (m *Ownership) judgeStrays(s *ownState, i int) {
	x, strays := &s.x[i], set(0)
	if g := s.server.group(s.tenure(i)); g != nil {
		strays = g.pending & upTo(x.arg)
	}
	switch {
	case strays == 0:
		x.refresh, x.arg = none, 0
		x.set(elder, false)
	case strays&^x.sure != 0 && m.on(OtherStraysAreATakeover):
		x.refresh, x.arg, x.retaken = none, 0, x.phase == owning
		x.set(elder, false)
	default:
		x.refresh, x.arg = straying, uint8(strays)
	}
}

func (m *Ownership) ackStrays(s *ownState, i int) (broken string) {
	x := &s.x[i]
	of := s.tenure(i)
	if g := s.server.group(of); g != nil {
		if g.of != of && (x.phase == owning || x.phase == taking) {
			of = g.of // the group's name has no tenure
		}
		_, broken = m.xack(s, of, set(x.arg))
	}
	x.refresh, x.arg = none, 0
	x.set(elder, false)
	return broken
}
