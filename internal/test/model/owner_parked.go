package model

// What owners do with events that fail: they are taken out of the partition, and tried again from where they are parked. The
// function waits for each of these moves.

type (
	parking struct{ *brew }      // the steps
	mover   struct{ *Ownership } // what the server does, and what its replies mean
)

// fails ends the function with a failure. Of a parked event it changes nothing that is stored here.
func (b parking) fails(i int) {
	x := &b.s.x[i]
	if !b.m.Fail.has(x.current) || x.is(lane) {
		return
	}
	b.then("x%d: the function fails with e%d", [4]uint8{uint8(i), x.current}, func(n *ownState) {
		x := &n.x[i]
		if x.phase == owning || x.phase == draining {
			x.move, x.moved = sent, x.current
		}
		x.current = 0
	})
}

// tries hands the first parked event to the function.
func (b parking) tries(i int) {
	x := &b.s.x[i]
	if x.is(unsure) && x.current == 0 && x.move == none && b.m.on(ReadsParkedAgain) {
		b.then("x%d reads again what is parked", [4]uint8{uint8(i)}, func(n *ownState) {
			x := &n.x[i]
			x.set(unsure, false)
			if n.server.parked != x.kept {
				x.drain()
			}
		})
	}
	if x.current != 0 || x.move != none || x.kept == 0 || !x.is(leased) && b.m.on(LeaseBeforeDelivery) {
		return
	}
	e := x.kept.lowest()
	b.step("x%d: the function begins e%d, which is parked", [4]uint8{uint8(i), e}, func(n *ownState) string {
		broken := b.m.begin(n, i, e, true)
		n.x[i].current = e
		n.x[i].set(lane, true)
		return broken
	})
}

// abandon leaves a move that is under way to itself.
func (s *ownState) abandon(i int) {
	x := &s.x[i]
	if x.move == sent {
		verb := latePark
		if x.is(lane) {
			verb = lateSettle
		}
		s.putLate(late{verb: verb, of: s.tenure(i), acks: only(x.moved)})
	}
	if x.move != none {
		x.move, x.moved = none, 0
		x.set(lane, false)
	}
}

func (b parking) moveReply(i int) {
	x := &b.s.x[i]
	at := [4]uint8{uint8(i), x.moved}
	b.fault(breaks, "the connection of x%d breaks: outcome of its move of e%d unknown, it is sent again", at, func(n *ownState) {
		again := n.x[i]
		n.abandon(i)
		n.x[i] = again
		n.x[i].move = sent
	})
	if x.move == sent {
		b.step("the server executes x%d's move of e%d", at, func(n *ownState) (broken string) {
			if of := n.tenure(i); x.is(lane) {
				n.x[i].move = mover{b.m}.settle(n, of, x.moved)
			} else {
				n.x[i].move, broken = mover{b.m}.park(n, of, x.moved)
			}
			return broken
		})
		return
	}
	b.then("x%d gets the reply to its move of e%d", at, func(n *ownState) {
		y, e := &n.x[i], only(x.moved)
		if x.move == refused {
			y.move = sent // an error says nothing
			b.m.probe(n, i)
			return
		}
		y.move, y.moved = none, 0
		y.set(lane, false)
		switch {
		case x.is(lane):
			y.kept &^= e
		case x.is(byPosition):
			y.kept, y.done, y.out = y.kept|e, y.done|e, y.out|e
		default:
			y.kept, y.top = y.kept|e, max(y.top, x.moved)
			y.rise()
		}
	})
}

// park is park.lua, for one event.
func (m mover) park(s *ownState, of tenure, e uint8) (out request, broken string) {
	r := &s.server
	g := r.group(of)
	if r.lock != of && m.on(MoveComparesTenure) || g == nil {
		return refused, ""
	}
	position := s.x[of.slot()].is(byPosition)
	there := g.pending.has(e)
	if position {
		there = e > r.floor && !r.aside.has(e)
	}
	g.pending &^= only(e)
	if !there && m.on(ParksPending) {
		return done, ""
	}
	if g.of != r.took || g.of != of && !m.rebuilds() && !m.LateLocks {
		broken = "no ack of an earlier tenure is accepted"
	}
	r.parked |= only(e)
	r.setAside(g, position, e, m.on(TakenOutAside))
	return done, broken
}

// setAside is set_aside of tenure.lua.
func (r *server) setAside(g *group, position bool, e uint8, notes bool) {
	oldest, any := first(g.pending), g.pending != 0
	if position {
		oldest, any = r.floor, true
	}
	kept := oldest
	if !any {
		kept = g.last
	}
	all := r.aside &^ upTo(kept)
	if any && !position {
		all |= r.aside & only(oldest)
	}
	if any && e > oldest && notes {
		all |= only(e)
	}
	r.aside = all
}

// settle is settle.lua.
func (m mover) settle(s *ownState, of tenure, e uint8) (out request) {
	if s.server.lock != of && m.on(MoveComparesTenure) {
		return refused
	}
	if s.server.parked.has(e) && !s.failed && !s.byHand {
		s.settled |= only(e)
	}
	s.server.parked &^= only(e)
	return done
}

// owed is what an owner holds of the partition and has not done.
type owed struct{ taken, waiting uint8 }

func (x *executor) owes() owed { return owed{x.taken(), x.buffer[0]} }

// taken returns the entry of the partition that the function has, or that moves.
func (x *executor) taken() uint8 {
	switch {
	case x.is(lane):
		return 0
	case x.move != none:
		return x.moved
	}
	return x.current
}

// findMissing ends a tenure whose group does not have pending what it holds: by another one, which begins at the stored floor. Two
// refreshes have to agree about what the function has.
func (m mover) findMissing(s *ownState, i int, lowest uint8) {
	x := &s.x[i]
	missing := func(e uint8) bool { return e != 0 && (lowest == 0 || e < lowest) }
	now, known, lost := x.owes(), x.missing, false
	x.missing = 0
	switch {
	case now.waiting == x.owed.waiting && missing(now.waiting):
		lost = true
	case now.taken == x.owed.taken && missing(now.taken) && x.move == none:
		x.missing, lost = now.taken, known == now.taken
	}
	if !lost || x.phase != owning || x.retaken {
		return
	}
	g := s.server.group(s.tenure(i))
	if g != nil && g.last < x.position && m.on(ForgottenReadsAreRead) {
		x.drain()
		return
	}
	if g != nil {
		*g = group{}
	}
	m.regain(s, i)
}
