package model

// steps appends all that may happen next.
func (m *membership) steps(s *memberState, out []step[memberState]) []step[memberState] {
	b := &boil{m: m, collector: collector[memberState]{s, out}}
	b.servers()
	for i := range s.x {
		b.faultsOf(i)
		b.beat(i)
		b.changes(i)
		b.partitionsOf(i)
		b.end(i)
	}
	return b.out
}

// A boil collects the steps after one state of the membership.
type boil struct {
	collector[memberState]
	m *membership
}

func (b *boil) fault(f fault, format string, args [4]uint8, do func(n *memberState)) {
	if b.s.may(f) {
		b.add(false, format, args, func(n *memberState) string { n.each[f]--; n.left--; do(n); return "" })
	}
}

// servers is what happens on Redis by itself.
func (b *boil) servers() {
	s := b.s
	for p, lock := range s.locks {
		if lock == 0 {
			continue
		}
		x := &s.x[lock.slot()]
		if x.id != lock.id() || !x.leased || x.stand == dead || x.stand == stopped {
			b.then("the lock of partition %d, of x%d, expires", [4]uint8{uint8(p), lock.slot()}, func(n *memberState) { n.locks[p] = 0 })
		}
	}
	if s.late.kind != noChange {
		b.step("a late swap is executed", [4]uint8{}, func(n *memberState) string {
			n.late = change{}
			_, broken := b.m.swap(n, s.late)
			return broken
		})
		b.then("a late swap never arrives", [4]uint8{}, func(n *memberState) { n.late = change{} })
	}
	if b.m.Max[fails] > 0 && !s.replicas && s.may(fails) {
		b.add(false, "the replica gets nothing from here on", [4]uint8{}, func(n *memberState) string {
			n.replica, n.replicaLocks, n.replicas = n.stored, n.locks, true
			return ""
		})
	}
	if s.replicas {
		b.fault(fails, "the replica becomes the master", [4]uint8{}, func(n *memberState) {
			n.restore(n.replica)
			n.locks = n.replicaLocks
			n.replica, n.replicaLocks, n.replicas = roster{}, [partitions]tenure{}, false
		})
	}
	b.fault(destroys, "the membership is deleted by hand", [4]uint8{}, func(n *memberState) { n.restore(roster{}) })
}

func (s *memberState) restore(r roster) {
	s.failed, s.late = true, change{}
	s.write(r)
	for i := range s.x {
		x := &s.x[i]
		x.lapsed, x.removed = true, x.removed || !r.has(i, x.id)
	}
}

// swap is swap.lua.
func (m *membership) swap(s *memberState, c change) (swapped bool, broken string) {
	same := s.stored == c.old
	if !m.on(SwapComparesContent) {
		same = s.stored.generation == c.old.generation
	}
	switch {
	case s.stored == c.new:
		return true, ""
	case !same && m.on(SwapComparesAll):
		return false, ""
	}
	return true, s.write(c.new)
}

func (b *boil) faultsOf(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	if x.stand == dead || x.stand == stopped {
		if x.beats {
			b.then("the heartbeat of x%d expires", at, func(n *memberState) { n.x[i].beats = false })
		}
		return
	}
	if x.beats {
		b.fault(lapses, "x%d is paused or cut off until heartbeat and locks are over", at, func(n *memberState) {
			n.x[i].beats, n.x[i].leased, n.x[i].lapsed = false, false, true
		})
	}
	b.fault(crashes, "the process of x%d dies", at, func(n *memberState) {
		if x.change.state == sent {
			n.late = x.change
		}
		n.x[i].stand, n.x[i].owned = dead, 0
	})
	if x.stand == following {
		b.fault(releases, "x%d is stopped", at, func(n *memberState) { n.x[i].stand, n.x[i].doomed = leaving, 0 })
	}
	if x.change.state != none && x.change.kind != noChange {
		b.fault(breaks, "the connection of x%d breaks: outcome of its swap unknown", at, func(n *memberState) {
			if x.change.state == sent {
				n.late = x.change
			}
			n.x[i].change = change{}
		})
	}
}

// beat writes the heartbeat and reads the membership.
func (b *boil) beat(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	lives := x.stand == joining || x.stand == following
	if lives && (!x.beats || !x.leased && x.owned == 0) {
		b.then("x%d writes its heartbeat", at, func(n *memberState) {
			n.x[i].beats, n.x[i].leased = true, n.x[i].owned == 0
		})
	}
	if lives && !x.hears && b.m.on(BeatReadsMembership) {
		b.fault(slowness, "x%d reads the membership with a heartbeat, whose reply is late", at, func(n *memberState) {
			n.x[i].hears, n.x[i].heard = true, n.stored
		})
	}
	if x.stand != following {
		return
	}
	if x.seen != b.s.stored && b.m.on(BeatReadsMembership) && !x.loads {
		b.step("x%d finds the membership changed, and follows it", at, func(n *memberState) string { return b.m.load(n, i, n.stored) })
		b.fault(slowness, "x%d loads the membership, the reply is late", at, func(n *memberState) {
			n.x[i].loads, n.x[i].loaded = true, n.stored
		})
	}
	if x.hears {
		b.step("x%d gets the reply to its heartbeat", at, func(n *memberState) string {
			n.x[i].hears, n.x[i].heard = false, roster{}
			switch {
			case !b.m.on(BeatIsAHint):
				return b.m.follow(n, i, x.heard)
			case x.loads:
				return "" // it will be loaded once more
			}
			return b.m.load(n, i, n.stored)
		})
	}
	if x.loads {
		b.step("x%d gets the membership that it loads", at, func(n *memberState) string {
			n.x[i].loads, n.x[i].overtaken, n.x[i].loaded = false, false, roster{}
			if x.overtaken && b.m.on(LoadOvertaken) {
				return b.m.load(n, i, n.stored) // once more
			}
			return b.m.load(n, i, x.loaded)
		})
	}
}

// partitionsOf acquires what is assigned and releases what is not.
func (b *boil) partitionsOf(i int) {
	x := &b.s.x[i]
	wanted, own := x.wanted(i), tenureOf(uint8(i), x.id, 0)
	gone := !x.leased && x.owned != 0
	for p := range partitions {
		gone = gone || x.owned.has(uint8(p+1)) && b.s.locks[p] != own
	}
	if gone && (x.stand == following || x.stand == leaving) {
		b.then("x%d finds a partition lost, its ID ends", [4]uint8{uint8(i)}, func(n *memberState) { n.x[i].part() })
		if !x.leased {
			return
		}
	}
	for p := range partitions {
		bit, args := only(uint8(p+1)), [4]uint8{uint8(i), uint8(p)}
		switch {
		case x.stand == following && x.leased && wanted&bit != 0 && x.owned&bit == 0:
			if b.s.locks[p] == 0 || b.s.locks[p] == own || !b.m.on(LocksDecide) {
				b.then("x%d obtains partition %d", args, func(n *memberState) {
					n.x[i].owned |= bit
					n.locks[p] = own
				})
			}
		case x.owned&^wanted&bit != 0:
			b.then("x%d releases partition %d", args, func(n *memberState) {
				n.x[i].owned &^= bit
				if n.locks[p] == own {
					n.locks[p] = 0
				}
			})
		}
	}
}

// end goes on under a new ID when all is released, or is through with leaving.
func (b *boil) end(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	if x.owned != 0 || x.change.kind != noChange {
		return
	}
	if x.stand == parting && x.final {
		b.then("x%d ends, and deletes its heartbeat", at, func(n *memberState) { n.x[i] = member{stand: stopped, id: x.id} })
	} else if x.stand == parting {
		if id, ok := b.s.freeID(i); ok {
			b.then("x%d goes on under a new ID", at, func(n *memberState) { n.x[i] = member{id: id} })
		}
	}
}
