package model

// What the scripts and commands do on the server, each in one step, as the .lua files of
// internal/store and Redis do it. What breaks a promise is returned.

// takeover is takeover.lua. The caller gets the floor and the epoch.
func (m *Ownership) takeover(s *ownState, of tenure, awaited bool) (floor, epoch uint8, ok bool, broken string) {
	r := &s.server
	if !m.mayTakeOver(r.lock, of) {
		return 0, 0, false, ""
	}
	mine := r.group(of)
	if m.on(TakeoverOnce) && r.took == of {
		if mine == nil {
			return 0, 0, false, ""
		}
		return r.floor, r.epoch, true, ""
	}
	floor, aside := m.findFloor(r)
	if m.rebuilds() && floor < r.floor && !s.failed {
		broken = "nothing up to a stored floor is handled again"
	}
	if mine != nil && !m.on(OwnGroupAnew) {
		r.took, r.open, mine.of = of, true, of
		return mine.last, r.epoch, true, ""
	}
	if r.open {
		s.again |= s.handled
	}
	if m.on(OldGroupsGo) {
		r.groups = [maxGroups]group{}
	} else if mine != nil {
		*mine = group{}
	}
	for i := range r.groups {
		if g := &r.groups[i]; g.of == 0 {
			*g = group{of: of, last: floor}
			break
		}
	}
	r.took, r.open, r.floor, r.aside = of, true, floor, aside&^upTo(floor)
	if m.on(CommitsFromOne) {
		r.commit = 0
	}
	epoch, falls := m.raise(s, int(of.slot()), awaited)
	return floor, epoch, true, broken + falls
}

func (m *Ownership) mayTakeOver(lock, of tenure) bool {
	switch {
	case !m.on(FenceTakeover):
		return true
	case !m.on(FenceTenure):
		return lock != 0 && lock.executor() == of.executor()
	}
	return lock == of
}

// findFloor is where a takeover begins: at the groups' floor, else at the stored one; and what was taken out behind it.
func (m *Ownership) findFloor(r *server) (floor uint8, aside set) {
	found := false
	if !m.on(BeginsAtPosition) {
		return 0, 0
	}
	for _, g := range r.groups {
		if g.of == 0 {
			continue
		}
		f := g.last
		if m.on(OldestPending) {
			f = g.floor()
		}
		if !found || f < floor { // repeat, never skip
			found, floor = true, f
		}
	}
	switch {
	case found:
		return floor, r.aside
	case !m.on(RefreshStoresFloor) || r.floor > r.log.highest():
		return 0, 0
	case !m.on(ParkedAreAside):
		return r.floor, r.aside
	}
	return r.floor, r.aside | r.parked
}

// raise makes the next epoch. Epochs are kept as the number of larger ones that were
// given since: 0 is the largest of all.
func (m *Ownership) raise(s *ownState, slot int, awaited bool) (epoch uint8, broken string) {
	if !m.Epochs {
		return 0, ""
	}
	const most = 3
	r, seen := &s.server, s.x[slot].epoch
	clock := m.on(EpochClock) && !(m.ClockBehind && s.failed)
	switch {
	case m.on(EpochStored) && r.epoch == 0, clock && s.aged, m.on(EpochSeen) && seen == 0 && awaited:
		for _, e := range s.epochs() {
			*e = min(*e+1, most)
		}
		r.epoch, s.aged = 0, false
		return 0, ""
	}
	next := uint8(most)
	if m.on(EpochStored) {
		next = min(next, r.epoch-1)
	}
	if m.on(EpochSeen) && seen > 0 && awaited {
		next = min(next, seen-1)
	}
	if clock {
		next = 0
	}
	r.epoch = next
	switch {
	case !m.ClockBehind:
		return next, "epochs rise"
	case awaited && next >= seen && seen < most:
		return next, "an executor's epochs rise"
	}
	return next, ""
}

// epochs are all that are known.
func (s *ownState) epochs() []*uint8 {
	all := []*uint8{&s.server.epoch, &s.replica.epoch}
	for i := range s.x {
		all = append(all, &s.x[i].epoch)
		if s.x[i].take == done {
			all = append(all, &s.x[i].given)
		}
	}
	return all
}

// readNew is XREADGROUP with '>'. It waits while there is nothing.
func (m *Ownership) readNew(s *ownState, of tenure) (got set, group bool) {
	g := s.server.group(of)
	if g == nil {
		return 0, false
	}
	for n := 0; n < m.Count; n++ {
		next := s.server.log &^ upTo(g.last)
		if next == 0 {
			break
		}
		g.last = next.lowest()
		g.pending |= only(g.last)
		got |= only(g.last)
	}
	return got, true
}

// xack is XACK. An ack has an effect only in the group of the last takeover, and only
// under its executor's ID: that is the fence.
func (m *Ownership) xack(s *ownState, of tenure, acks set) (acked set, broken string) {
	g := s.server.group(of)
	if g == nil {
		return 0, ""
	}
	acked = g.pending & acks
	g.pending &^= acks
	switch {
	case acked == 0:
	case g.of != s.server.took:
		broken = "no ack of an earlier owner is accepted"
	case g.of != of && !m.rebuilds() && !m.LateLocks: // a late lock may be a lost one that is found again
		broken = "no ack of an earlier tenure is accepted"
	}
	return acked, broken
}

// unlock is unlock.lua; clean says that everything is flushed.
func (m *Ownership) unlock(s *ownState, of tenure, clean bool) {
	r := &s.server
	if r.lock != of && (m.on(ReleaseComparesTenure) || r.lock == 0) {
		return
	}
	if clean && r.took == of {
		r.open = false
	}
	s.dropLock()
}

// dropLock deletes the lock, whatever its value, and notes it.
func (s *ownState) dropLock() {
	lock := s.server.lock
	s.server.lock = 0
	if lock == 0 {
		return
	}
	x := &s.x[lock.slot()]
	if s.tenure(int(lock.slot())) != lock {
		return
	}
	x.set(granted, false)
	x.set(renewed, false)
	x.bereft = x.phase == owning || x.phase == draining
}

// refresh is refresh.lua for one tenure. By position lowest tells that the server has forgotten commits: arg is the
// position that was confirmed when the refresh was sent.
func (m *Ownership) refresh(s *ownState, i int) (state request, lowest uint8) {
	r, of := &s.server, s.tenure(i)
	if r.lock != of {
		if r.lock != 0 || m.on(RefreshTakesNothing) {
			return notOurs, 0
		}
		r.lock = of
	}
	if m.on(RefreshComparesTenure) && r.took != 0 && r.took != of {
		return refused, 0
	}
	stored := r.floor
	switch x := &s.x[i]; {
	case x.is(byPosition) && m.on(RefreshLeavesPosition):
	case x.is(byPosition):
		r.floor = x.arg
	case r.took != 0 || !m.on(FloorWithTakeover):
		r.floor = x.floor
	}
	g := r.group(of)
	if g == nil {
		return refused, 0
	}
	if x := &s.x[i]; x.is(byPosition) {
		lowest = bit(stored < x.arg)
	} else if g.pending != 0 {
		lowest = g.pending.lowest()
	}
	return done, lowest
}
