package model

// Membership bounds the exploration of the membership protocol: three executors that share two
// partitions.
type Membership struct {
	Settled bool // at first all are members and own what they are assigned; else none is
	Faults  int  // how many may happen together
	Max     bounds

	Off Rule // the rules that are switched off
}

// Explore visits every state within the bounds. More states than limit are an error.
func (c Membership) Explore(limit int) (Result, error) {
	return explore[memberState](&membership{c, map[changeKey]roster{}}, limit)
}

type membership struct {
	Membership
	known map[changeKey]roster
}

var _ machine[memberState] = (*membership)(nil)

func (m *membership) on(r Rule) bool { return m.Off&r == 0 }

func (m *membership) start() memberState {
	s := memberState{left: uint8(m.Faults), each: m.Max}
	if !m.Settled {
		return s
	}
	for i := range s.x {
		s.stored = m.next(changeKey{old: s.stored, kind: join, slot: i})
	}
	s.stored.generation = 1
	for i := range s.x {
		x := &s.x[i]
		*x = member{stand: following, beats: true, leased: true, member: true, seen: s.stored}
		x.owned = x.wanted(i)
		for p := range partitions {
			if x.owned.has(uint8(p + 1)) {
				s.locks[p] = tenureOf(uint8(i), 0, 0)
			}
		}
	}
	return s
}

// canon clears what nothing depends on. Executors are not interchangeable here: an
// assignment depends on their names.
func (m *membership) canon(s *memberState) {
	for f := range s.each {
		s.each[f] = min(s.each[f], s.left)
	}
	for i := range s.x {
		x := &s.x[i]
		if x.stand == stopped || x.stand == dead {
			*x = member{stand: x.stand, id: x.id, beats: x.beats}
		}
		if x.change.kind == noChange {
			x.change = change{}
		}
	}
}

func (s *memberState) may(f fault) bool { return s.each[f] > 0 && s.left > 0 }

// broken checks the promises that hold in every state.
func (m *membership) broken(s *memberState) string {
	for p := range partitions {
		owners := 0
		for i := range s.x {
			if x := &s.x[i]; x.leased && x.owned.has(uint8(p+1)) {
				owners++
			}
		}
		if owners > 1 && !s.failed {
			return "a partition has one owner whose lease holds"
		}
	}
	return ""
}

// goal is that all who live are members, and each owns just what it is assigned.
func (m *membership) goal(s *memberState) bool {
	living := 0
	for i := range s.x {
		x := &s.x[i]
		switch x.stand {
		case stopped, dead:
			continue
		case following:
		default:
			return false
		}
		living++
		if x.seen != s.stored || !s.stored.has(i, x.id) || x.owned != x.wanted(i) || !x.leased {
			return false
		}
		for p := range partitions {
			if x.owned.has(uint8(p+1)) && s.locks[p] != tenureOf(uint8(i), x.id, 0) {
				return false
			}
		}
	}
	members := 0
	for _, seat := range s.stored.of {
		if seat.taken() {
			members++
		}
	}
	return members == living || living == 0
}

// fair checks a membership to be written: complete, disjoint, even.
func (r *roster) fair() string {
	var all set
	least, most, members := partitions, 0, 0
	for _, s := range r.of {
		if !s.taken() {
			continue
		}
		members++
		if all&s.assigned() != 0 {
			return "an assignment is disjoint"
		}
		n := 0
		for p := range partitions {
			n += int(s.assigned() >> p & 1)
		}
		all |= s.assigned()
		least, most = min(least, n), max(most, n)
	}
	switch {
	case members > 0 && all != upTo(partitions):
		return "an assignment is complete"
	case members > 0 && most-least > 1:
		return "an assignment is even"
	}
	return ""
}

// write puts a membership in the stored one's place.
func (s *memberState) write(r roster) (broken string) {
	for i := range s.x {
		x := &s.x[i]
		stays := x.stand == joining || x.stand == following
		gone := s.stored.has(i, x.id) && !r.has(i, x.id)
		if gone && stays && !x.lapsed {
			broken = "no member is removed whose heartbeat was always there"
		}
		x.removed = x.removed || x.member && gone
		x.member = x.member || r.has(i, x.id)
	}
	s.stored = r
	return broken
}

func (m *membership) load(s *memberState, i int, r roster) (broken string) {
	s.x[i].passed = s.x[i].change.kind != noChange
	return m.follow(s, i, r)
}

// follow makes a membership the one that a member goes by.
func (m *membership) follow(s *memberState, i int, r roster) (broken string) {
	x := &s.x[i]
	if r == x.seen {
		return ""
	}
	older := r.generation < x.seen.generation
	if older && !m.on(StoredIsTruth) {
		return ""
	}
	if !r.has(i, x.id) {
		if !m.on(AbsentRejoins) {
			x.seen = r
			return ""
		}
		if !x.removed {
			broken = "no member that was never removed takes itself for absent"
		}
		x.part()
		return broken
	}
	if older && !s.failed {
		broken = "no membership is followed that is older than one followed before"
	}
	x.seen = r
	return broken
}

// part ends a member's ID.
func (x *member) part() {
	x.stand, x.seen, x.doomed = parting, roster{}, 0
	x.loads, x.hears, x.overtaken, x.loaded, x.heard = false, false, false, roster{}, roster{}
}
