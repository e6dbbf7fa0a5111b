package rebalance

import (
	"bytes"
	"slices"
	"time"
)

// watched is how many other members each member looks at, the next ones in the order of IDs.
// So the cost of a member does not grow with their number.
const watched = 3

func (m *machine) check() {
	m.checkAt = time.Time{}
	if m.checking != nil {
		return
	}
	others := m.others()
	m.look(others[:min(watched, len(others))])
}

// others returns the other members, from the next one in the order of IDs on.
func (m *machine) others() []string {
	ids := m.group.IDs()
	at, in := slices.BinarySearch(ids, m.self)
	if in {
		ids = slices.Delete(ids, at, at+1)
	}
	return slices.Concat(ids[at:], ids[:at])
}

func (m *machine) look(ids []string) {
	if len(ids) == 0 {
		return
	}
	m.checking = ids
	m.do(action{verb: doAlive, executors: ids, limit: m.group.Expiry()})
}

// alive takes the result of doAlive.
func (m *machine) alive(now time.Time, life map[string]time.Duration, err error) []action {
	asked := m.checking
	m.checking = nil
	if m.phase != following {
		return m.flush(now)
	}
	if err != nil {
		m.recheck(now, err)
		return m.flush(now)
	}
	var dead []string
	for _, id := range asked {
		left, ok := life[id]
		if _, member := m.group.Executors[id]; !member {
			continue
		}
		if !ok {
			dead = append(dead, id)
		} else if at := now.Add(left); at.Before(m.beatAt) {
			// Random, since otherwise all members look at the same time.
			m.checkAt = earlier(m.checkAt, at.Add(m.jitter(80*time.Millisecond)))
		}
	}
	switch {
	case len(dead) == 0:
		m.checkTries = 0
	case len(asked) < len(m.group.Executors)-1: // the members of a machine die together
		m.look(m.others())
	case !m.reaping:
		m.reaping, m.passed = true, false
		m.do(action{verb: doReap, executors: dead})
	}
	return m.flush(now)
}

// reaped takes the result of doReap: the removed members, and the value stored then. If
// another value was followed meanwhile, the membership is loaded again. Following the
// result could set the member back:
//  1. the reap reads or writes a value;
//  2. another member changes it, which is loaded and followed;
//  3. the result of the reap arrives here.
func (m *machine) reaped(now time.Time, dead []string, value []byte, err error) []action {
	m.reaping = false
	if m.phase != following {
		return m.flush(now)
	}
	if err != nil {
		m.recheck(now, err)
		return m.flush(now)
	}
	m.checkTries = 0
	if m.passed && !bytes.Equal(value, m.seen) {
		m.reload()
	} else {
		m.overtaken = m.loading
		m.follow(value)
	}
	for _, id := range dead {
		m.announce(Died, id)
	}
	return m.flush(now)
}

// recheck looks at the heartbeats again after an error.
func (m *machine) recheck(now time.Time, err error) {
	m.warnFirst(m.checkTries, err)
	m.checkAt = now.Add(m.jitter(backoff(m.checkTries, errorBackoffMin, errorBackoffMax)))
	m.checkTries++
}
