package model

// executor is what one does by itself.
func (b *brew) executor(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i), b.s.x[i].current}
	switch x.phase {
	case idle:
		b.obtain(i)
	case owning:
		if x.retaken {
			b.then("x%d begins to end its tenure", at, func(n *ownState) { n.x[i].drain() })
		}
		b.reads(i)
		b.acks(i)
		b.runs(i)
		parking{b}.tries(i)
	case draining:
		b.acks(i)
		b.release(i)
	case ending:
		b.end(i)
	case retaking:
		b.retake(i)
	case down:
		b.rejoin(i, "x%d starts again under a new ID")
	}
	if x.phase == owning || x.phase == draining {
		b.refreshes(i)
		if !x.is(leased) {
			b.then("x%d sees that its lease is over", at, func(n *ownState) { n.lose(i) })
		}
	}
	if x.is(killing) {
		b.then("x%d ends the read of unknown outcome", at, func(n *ownState) { n.kill(i) })
	}
	if x.current != 0 {
		b.then("x%d: the function has handled e%d", at, func(n *ownState) { n.complete(i) })
		parking{b}.fails(i)
	}
}

// obtain takes the lock if it is free, and sends the takeover.
func (b *brew) obtain(i int) {
	s, slot := b.s, uint8(i)
	id, number, ok := s.x[i].id, s.x[i].number, true
	if !s.x[i].is(claimed) {
		number, ok = s.freeNumber(slot, id)
	}
	of := tenureOf(slot, id, number)
	if !ok || s.server.lock != 0 && s.server.lock != of {
		return
	}
	args := [4]uint8{slot, id, number}
	b.then("x%d obtains the lock under ID %d, tenure %d, and sends the takeover", args, func(n *ownState) {
		x := &n.x[i]
		x.phase, x.number, x.take = taking, number, sent
		x.set(claimed, true)
		x.set(granted, true)
		n.server.lock = of
	})
	if b.m.LateLocks && s.server.lock == 0 && s.room() {
		b.fault(breaks, "x%d asks for the lock under ID %d, tenure %d: outcome unknown", args, func(n *ownState) {
			n.x[i].number = number
			n.x[i].set(claimed, true)
			n.putLate(late{verb: lateLock, of: of})
		})
	}
}

func (s *ownState) room() bool { return s.late[0].verb == 0 || s.late[1].verb == 0 }

// reads sends the next read: the history of what the server gave and is not held, else new entries.
func (b *brew) reads(i int) {
	x := &b.s.x[i]
	if x.read != none || x.is(killing) || x.waiting() > held-1-b.m.Count {
		return
	}
	if x.is(doubting) && b.m.on(Continues) {
		b.continues(i)
		return
	}
	b.then(readTexts[bit(x.is(behind))], [4]uint8{uint8(i)}, func(n *ownState) {
		n.x[i].read, n.x[i].history, n.x[i].got = sent, n.x[i].is(behind), 0
	})
}

var readTexts = [...]string{"x%d sends a read of new entries", "x%d sends a read of its history"}

// acks sends what is done, one request at a time, while the lease holds.
func (b *brew) acks(i int) {
	x := &b.s.x[i]
	if x.is(byPosition) {
		b.commits(i)
		return
	}
	if x.done == 0 || x.ack != none || !x.is(leased) {
		return
	}
	b.then("x%d sends acks of %03b", [4]uint8{uint8(i), uint8(x.done)}, func(n *ownState) {
		x := &n.x[i]
		x.ack, x.acked, x.ackOf, x.done = sent, x.done, n.tenure(i), 0
	})
}

// runs hands the next entry to the function.
func (b *brew) runs(i int) {
	x := &b.s.x[i]
	if x.current != 0 || x.move != none || x.buffer[0] == 0 || !x.is(leased) && b.m.on(LeaseBeforeDelivery) {
		return
	}
	e := x.buffer[0]
	if (x.kept | x.away).has(e) {
		b.then("x%d acks e%d, which was taken out before", [4]uint8{uint8(i), e}, func(n *ownState) { n.x[i].done |= only(n.x[i].pop()) })
		return
	}
	b.step("x%d: the function begins e%d", [4]uint8{uint8(i), e}, func(n *ownState) string {
		broken := b.m.begin(n, i, e, false)
		x := &n.x[i]
		x.pop()
		x.current, x.begun = e, max(x.begun, e)
		return broken
	})
}

// complete notes that the function has returned. Nothing is acked after its tenure.
func (s *ownState) complete(i int) {
	x := &s.x[i]
	e := only(x.current)
	s.handled |= e
	if of := s.tenure(i); s.server.lock != of || s.server.took != of || x.is(mixed) {
		s.again |= e // another owner may have begun it
	}
	x.ran |= e
	switch ours := x.phase == owning || x.phase == draining; {
	case x.is(lane):
		if ours {
			x.move, x.moved = sent, x.current // the owner settles it
		}
		x.set(lane, ours)
	case ours:
		x.done |= e
	}
	x.current = 0
}

// release gives the lock back when everything has ended.
func (b *brew) release(i int) {
	x := &b.s.x[i]
	quiet := x.read == none && !x.is(killing)
	flushed := x.done == 0 && (x.acked == 0 || x.ackOf != b.s.tenure(i))
	switch {
	case x.move != none,
		!quiet && b.m.on(ReleaseAwaitsRead),
		x.current != 0 && b.m.on(ReleaseAwaitsFunction),
		!flushed && b.m.on(ReleaseFlushes):
		return
	}
	at := [4]uint8{uint8(i)}
	of := b.s.tenure(i)
	b.then("x%d has ended everything and releases the lock", at, func(n *ownState) {
		n.leavePosition(i)
		b.m.unlock(n, of, true)
		n.x[i].leave()
	})
	if b.s.room() {
		b.fault(breaks, "x%d releases the lock twice, the first request is late", at, func(n *ownState) {
			n.leavePosition(i)
			b.m.unlock(n, of, true)
			n.putLate(late{verb: lateUnlock, of: of})
			n.x[i].leave()
		})
	}
}

// drain begins the orderly end of a tenure: nothing more is delivered.
func (x *executor) drain() { x.phase, x.buffer, x.retaken = draining, [held]uint8{}, false }

// leave ends a tenure; what is under way on the executor's connections stays.
func (x *executor) leave() {
	*x = executor{
		phase: idle, id: x.id, flags: x.flags & (killing | byPosition), epoch: x.epoch, current: x.current,
		read: x.read, history: x.history, got: x.got, ack: x.ack, acked: x.acked, ackOf: x.ackOf,
		refresh: x.refresh, arg: x.arg, retries: retries{nth: x.nth, outs: x.outs},
	}
	if x.refresh != straying {
		x.refresh, x.arg = none, 0
	}
}

// end is what follows the loss of a tenure: the function returns, the lock is given
// back if it is still there, and the executor goes on under a new ID.
func (b *brew) end(i int) {
	x, at, of := &b.s.x[i], [4]uint8{uint8(i)}, b.s.tenure(i)
	if x.current != 0 {
		b.outlive(i)
		if !b.m.on(ReleaseAwaitsFunction) && b.s.server.lock == of {
			b.then("x%d gives the lock back while its function runs", at, func(n *ownState) { b.m.unlock(n, of, false) })
		}
		return
	}
	if b.s.server.lock == of {
		b.then("x%d gives the lock back", at, func(n *ownState) { b.m.unlock(n, of, false) })
		return
	}
	if !b.m.on(NewIDAfterLoss) {
		b.then("x%d goes on under the same ID", at, func(n *ownState) { n.x[i].leave() })
		return
	}
	if x.read == none && x.ack == none && x.refresh == none {
		b.rejoin(i, "x%d goes on under a new ID")
	}
}

// outlive ends the lease of a tenure that is lost while its function runs on.
func (b *brew) outlive(i int) {
	if b.s.x[i].is(leased) {
		b.then("the lease of x%d ends, which is not refreshed any more", [4]uint8{uint8(i)}, func(n *ownState) { n.x[i].set(leased, false) })
	}
}

func (b *brew) rejoin(i int, format string) {
	id, ok := b.s.freeID(uint8(i))
	if !ok {
		return
	}
	b.then(format, [4]uint8{uint8(i)}, func(n *ownState) {
		n.x[i] = executor{id: id, epoch: n.x[i].epoch, flags: n.x[i].flags & byPosition}
	})
}

// retake gives back the lock of a tenure whose group is gone, once nothing of it can
// be executed any more. The floor is stored before, by a refresh.
func (b *brew) retake(i int) {
	x, of := &b.s.x[i], b.s.tenure(i)
	if x.current != 0 {
		b.outlive(i)
	}
	if x.read != none || x.is(killing) || x.current != 0 {
		return
	}
	b.then("x%d gives the lock back, to take the partition over anew", [4]uint8{uint8(i)}, func(n *ownState) {
		if n.server.lock == of {
			if x := &n.x[i]; !x.is(byPosition) && (n.server.took == of || n.server.took == 0 && !b.m.on(FloorWithTakeover)) {
				n.server.floor = x.floor
			}
			b.m.unlock(n, of, false)
		}
		n.x[i].leave()
	})
}

// lose ends a tenure that may have another owner, and the executor's ID with it.
func (s *ownState) lose(i int) {
	x := &s.x[i]
	x.phase, x.floor = ending, 0
	s.drop(i)
}

// drop forgets what was read in a tenure that is lost.
func (s *ownState) drop(i int) {
	s.abandon(i)
	x := &s.x[i]
	x.buffer, x.done, x.position, x.begun, x.top = [held]uint8{}, 0, 0, 0, 0
	x.retaken, x.sure = false, 0
	x.set(behind, false)
}

// kill makes sure that no read of unknown outcome is executed any more.
func (s *ownState) kill(i int) {
	s.x[i].set(killing, false)
	for k := range s.late {
		if l := &s.late[k]; l.verb == lateRead && l.of.executor() == s.tenure(i).executor() {
			*l = late{}
		}
	}
}
