package model

// What owners do that read by position: a read has no effect on the server, and one position is up to where all is
// done, which numbered commits move.

// continues asks, over a new connection, whether what was read last is there or done.
func (b *brew) continues(i int) {
	b.then("x%d is connected anew, and asks whether its last entry is there or done", [4]uint8{uint8(i)}, func(n *ownState) {
		r, x, of := &n.server, &n.x[i], n.tenure(i)
		x.set(doubting, false)
		if r.took != of || r.group(of) == nil || x.position > r.floor && !r.log.has(x.position) {
			b.m.probe(n, i)
		}
	})
}

// forgotten ends a tenure of which the server has forgotten something. The partition is taken over again.
func (s *ownState) forgotten(i int) {
	s.x[i].phase = retaking
	s.drop(i)
}

// behind is XREAD: the next entries behind one. It waits while there are none.
func (r *server) behind(e uint8, count int) (got set) {
	for next := r.log &^ upTo(e); count > 0 && next != 0; count-- {
		got |= only(next.lowest())
		next &= next - 1
	}
	return got
}

// commits sends the next commit, or again one of unknown outcome.
func (b *brew) commits(i int) {
	x := &b.s.x[i]
	if x.done|x.acked == 0 || x.ack != none || !x.is(leased) {
		return
	}
	b.then("x%d sends its commit %d", [4]uint8{uint8(i), x.commits + 1}, func(n *ownState) {
		x := &n.x[i]
		if x.acked == 0 || !b.m.on(CommitAsItWas) {
			x.acked, x.done = x.acked|x.done, 0
		}
		x.ack, x.ackOf, x.nth, x.outs = sent, n.tenure(i), x.commits+1, x.out&upTo(x.acked.highest())
	})
}

// lateAck is the ack or commit that is under way, once its caller has given up.
func (x *executor) lateAck() late {
	if x.is(byPosition) {
		return late{verb: lateCommit, of: x.ackOf, acks: x.acked, number: x.nth, out: x.outs}
	}
	return late{verb: lateAck, of: x.ackOf, acks: x.acked}
}

// advance is commit.lua, without the rules that are off.
func (r *server) advance(c late, off Rule) (out request, broken string) {
	on := func(rule Rule) bool { return off&rule == 0 }
	to, g := c.acks.highest(), r.group(c.of)
	switch {
	case r.took != c.of && on(CommitComparesTenure):
		return refused, ""
	case c.number <= r.commit && on(CommitOnce):
		return done, ""
	case c.number > r.commit+1: // no promise of the model needs it
		return forgotten, ""
	case c.out&^r.aside != 0 && on(CommitFindsTakenOut):
		return forgotten, ""
	case !r.log.has(to) && r.log&upTo(to)&^upTo(r.floor) != 0 && on(CommitLooks):
		return forgotten, ""
	case r.log.highest() < to && on(CommitStaysWithin):
		return forgotten, ""
	case g == nil:
		return refused, ""
	case r.took != c.of:
		broken = "no ack of an earlier tenure is accepted"
	}
	g.last, r.floor, r.commit = to, to, c.number
	return done, broken
}

func (b *brew) commitReply(i int) {
	x := &b.s.x[i]
	args := [4]uint8{uint8(i), x.nth, uint8(x.acked)}
	b.fault(breaks, "the connection of x%d breaks: outcome of its commit %d, of %03b, unknown", args, func(n *ownState) {
		if x.ack == sent {
			n.putLate(x.lateAck())
		}
		n.ackUnknown(i)
	})
	if x.ack == sent {
		b.step("the server executes x%d's commit %d, of %03b", args, func(n *ownState) (broken string) {
			n.x[i].ack, broken = n.server.advance(x.lateAck(), b.m.Off)
			return broken
		})
		return
	}
	b.then("x%d gets the reply to its commit %d, of %03b", args, func(n *ownState) {
		switch ours := x.ackOf == n.tenure(i) && (x.phase == owning || x.phase == draining); {
		case ours && x.ack == done:
			n.x[i].commits++
			n.confirm(i)
		case !ours:
			n.confirm(i)
		default:
			n.ackUnknown(i)
			if x.ack == refused {
				b.m.probe(n, i)
			} else {
				n.forgotten(i)
			}
		}
	})
}

// ask notes what a refresh compares.
func (x *executor) ask() {
	if x.is(byPosition) {
		x.arg = x.floor
	} else {
		x.owed = x.owes()
	}
}

// leavePosition is what a clean release stores.
func (s *ownState) leavePosition(i int) {
	if x, of := &s.x[i], s.tenure(i); s.server.lock == of && s.server.took == of {
		s.server.floor = x.floor
	}
}
