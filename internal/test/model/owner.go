package model

// Ownership bounds the exploration of the protocol of one partition: three executors, each of which
// may try for the lock whenever it is free, as if all memberships were followed at once.
type Ownership struct {
	Log    []uint8 // the entries that are there at first, ascending, from 1 to 8
	Later  []uint8 // those that are appended later, in this order
	Count  int     // entries that a read brings at most
	Faults int     // how many may happen together
	Max    bounds

	Epochs      bool // epochs are told apart
	ClockBehind bool // after a failover the server's clock is behind what epochs were made of
	CannotKill  bool // CLIENT KILL is not permitted
	Refuses     bool // buffers may refuse a part of what was read, for its size
	LateLocks   bool // a request for the lock may be executed late
	ByPosition  bool // executors read by position
	Mixed       bool // the second executor reads the other way
	Fail        set  // entries with which a function may fail: they are parked

	Off Rule // the rules that are switched off
}

// Explore visits every state within the bounds. More states than limit are an error.
func (o Ownership) Explore(limit int) (Result, error) {
	return explore[ownState](&o, limit)
}

var _ machine[ownState] = (*Ownership)(nil)

func (m *Ownership) on(r Rule) bool { return m.Off&r == 0 }

// rebuilds reports whether a group may have to be made anew under a lock that is held: only then the stored floor matters.
func (m *Ownership) rebuilds() bool {
	return m.Max[destroys] > 0 || m.Max[fails] > 0 || m.Max[flushes] > 0
}

// may reports whether one more fault is within the bounds.
func (s *ownState) may(f fault) bool { return s.each[f] > 0 && (f == appends || s.left > 0) }

func (s *ownState) spend(f fault) {
	s.each[f]--
	if f != appends {
		s.left--
	}
}

func (m *Ownership) start() ownState {
	s := ownState{left: uint8(m.Faults), each: m.Max}
	s.each[appends] = uint8(len(m.Later))
	for _, e := range m.Log {
		s.server.log |= only(e)
	}
	for i := range s.x {
		s.x[i].epoch = 3
		s.x[i].set(byPosition, m.ByPosition != (m.Mixed && i == 1))
	}
	return s
}

func (m *Ownership) goal(s *ownState) bool {
	if s.server.log&^s.handled|s.server.parked != 0 {
		return false
	}
	groups := 0
	for _, g := range s.server.groups {
		if g.of == 0 {
			continue
		}
		groups++
		if g.pending != 0 || s.server.log&^upTo(g.last) != 0 {
			return false
		}
	}
	return groups == 1
}

// broken checks the promises that hold in every state.
func (m *Ownership) broken(s *ownState) string {
	passed, groups := set(0), 0
	for _, g := range s.server.groups {
		if g.of != 0 {
			groups++
			passed |= upTo(g.last) &^ g.pending
		}
	}
	if groups > 1 && m.on(OldGroupsGo) {
		return "there is one group"
	}
	if groups == 0 && m.rebuilds() && s.server.floor <= s.server.log.highest() {
		passed = upTo(s.server.floor)
	}
	if s.server.log&passed&^(s.handled|s.server.parked) != 0 {
		return "nothing is passed over that was not handled"
	}
	if lock := s.server.lock; lock != 0 {
		x := &s.x[lock.slot()]
		if x.bereft && (x.phase == owning || x.phase == draining) && s.tenure(int(lock.slot())) == lock {
			return "a lost lock is never held again"
		}
	}
	return ""
}

// begin checks the promises about a function that begins an entry, which may be a parked one.
func (m *Ownership) begin(s *ownState, i int, e uint8, parked bool) string {
	x, of := &s.x[i], s.tenure(i)
	// After a failover an owner learns what was lost with its next refresh: until then asynchronous
	// replication leaves a window.
	forgotten := x.is(stale) && s.server.took != of
	switch {
	case !parked && s.server.log.has(e) && s.server.log&upTo(e-1)&^(s.handled|s.server.parked|x.kept) != 0 && !forgotten:
		return "an entry begins when all before it are handled"
	case s.server.took != of && !forgotten:
		return "who was followed by another owner begins nothing"
	case !parked && e <= x.begun:
		return "entries ascend within a tenure"
	case x.ran.has(e):
		return "nothing is handled twice in a tenure"
	case s.settled.has(e):
		return "what was parked and is done is not handled again"
	case s.handled.has(e) && !s.again.has(e) && !forgotten:
		return "nothing is handled again after a clean release"
	}
	for k := range s.x {
		if y := &s.x[k]; k != i && y.current != 0 && y.is(leased) && !y.is(stale) && !x.is(stale) {
			return "no two functions run while the lease of the first one holds"
		}
	}
	return ""
}
