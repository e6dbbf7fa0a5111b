package model

// changes of the membership: each reads it, computes another and writes that by comparing. The
// admin lock only spares them swaps in vain, so it is left out: it may expire at any moment.
func (b *boil) changes(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	switch x.change.state {
	case sent:
		b.step("the server executes x%d's swap", at, func(n *memberState) string {
			swapped, broken := b.m.swap(n, x.change)
			n.x[i].change.state = done
			if !swapped {
				n.x[i].change.state = refused
			}
			return broken
		})
		return
	case done, refused:
		b.step("x%d gets the reply to its swap", at, func(n *memberState) string { return b.m.changed(n, i) })
		return
	}
	switch x.stand {
	case joining:
		if x.beats || !b.m.on(BeatBeforeJoin) {
			b.begin(i, "x%d reads the membership to join, and sends the swap", join)
		}
	case leaving:
		b.begin(i, "x%d reads the membership to leave, and sends the swap", leave)
		b.then("x%d gives up to leave", at, func(n *memberState) { n.x[i].quit() })
	case following:
		b.looks(i)
	}
}

// looks is the look at the heartbeats of the others, and what follows from it.
func (b *boil) looks(i int) {
	x, at := &b.s.x[i], [4]uint8{uint8(i)}
	if !b.m.on(ReapsTheDead) {
		return
	}
	if x.doomed != 0 {
		b.begin(i, "x%d reads the membership to remove the dead, and sends the swap", reap)
		return
	}
	found := uint8(0)
	for k, seat := range x.seen.of {
		if k != i && seat.taken() && !b.s.alive(k, &x.seen) {
			found |= 1 << k
		}
	}
	if found != 0 {
		b.then("x%d finds heartbeats missing", at, func(n *memberState) { n.x[i].doomed = found })
	}
}

// begin reads the membership, looks at heartbeats, and sends what follows. A change
// that changes nothing writes nothing.
func (b *boil) begin(i int, format string, kind changeKind) {
	b.step(format, [4]uint8{uint8(i)}, func(n *memberState) (broken string) {
		x := &n.x[i]
		k := changeKey{old: n.stored, kind: kind, slot: i, id: x.id}
		for j, seat := range n.stored.of {
			switch {
			case kind == join && j == i && seat.taken():
				k.other |= 1 << j // of an ID that has ended, with its heartbeat
			case !seat.taken() || j == i:
			case kind == join && !n.alive(j, &n.stored):
				k.other |= 1 << j
			case kind == reap && x.doomed>>j&1 == 1 && x.seen.has(j, seat.id()):
				if n.alive(j, &n.stored) {
					if b.m.on(ReapLooksAgain) {
						continue
					}
					broken = "no member is removed whose heartbeat is there when the removal is computed"
				}
				k.other |= 1 << j
			}
		}
		x.doomed = 0
		next := n.stored
		if kind != join || !n.stored.has(i, x.id) {
			next = b.m.next(k)
		}
		x.change = change{kind: kind, state: sent, old: n.stored, new: next}
		if next.generation == n.stored.generation {
			x.change.state = done
		} else if unfair := next.fair(); unfair != "" {
			broken = unfair
		}
		return broken
	})
}

// changed takes the result of a change in. One that was overtaken begins again.
func (m *membership) changed(s *memberState, i int) (broken string) {
	x := &s.x[i]
	c := x.change
	x.change = change{}
	defer func() { s.x[i].passed = false }()
	if c.state == refused {
		return ""
	}
	switch {
	case c.kind == join && x.stand == joining:
		x.stand, x.seen = following, roster{}
		broken = m.follow(s, i, c.new)
	case c.kind == reap && x.stand == following:
		if x.passed && m.on(ReapOvertaken) {
			broken = m.follow(s, i, s.stored) // by a load
			break
		}
		x.overtaken = x.loads
		broken = m.follow(s, i, c.new)
	case c.kind == leave:
		x.quit()
	}
	return broken
}

// quit is what follows a leave: all is released, and the heartbeat ends.
func (x *member) quit() {
	x.part()
	x.final = true
}
