package rebalance

import (
	"bytes"
	"slices"
	"time"
)

// watched is how many other members each one looks at, the next ones in the order of IDs:
// so many look at each, and what a member costs does not grow with their number.
const watched = 3

// check has the heartbeats of the next members looked at.
func (m *machine) check() {
	m.checkAt = time.Time{}
	if m.checking != nil {
		return
	}
	others := m.others()
	m.look(others[:min(watched, len(others))])
}

// others are the other members, from the next one in the order of IDs on.
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
			// Some more, at random, for else all members come at the same time.
			m.checkAt = earlier(m.checkAt, at.Add(m.jitter(80*time.Millisecond)))
		}
	}
	switch {
	case len(dead) == 0:
		m.checkTries = 0
	case len(asked) < len(m.group.Executors)-1: // members die together, as their machine does
		m.look(m.others())
	case !m.reaping:
		m.reaping, m.passed = true, false
		m.do(action{verb: doReap, executors: dead})
	}
	return m.flush(now)
}

// reaped takes the result of doReap: those who were removed, and the stored
// value after that. It is loaded again if something else was meanwhile:
//  1. the reap reads or writes a value;
//  2. another member changes it; that is loaded and followed;
//  3. what the reap left arrives here.
//
// It would otherwise throw the member back.
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

// recheck has the heartbeats looked at again, after an error.
func (m *machine) recheck(now time.Time, err error) {
	m.warnFirst(m.checkTries, err)
	m.checkAt = now.Add(m.jitter(backoff(m.checkTries, errorBackoffMin, errorBackoffMax)))
	m.checkTries++
}
