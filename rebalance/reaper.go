package rebalance

import (
	"bytes"
	"slices"
	"time"
)

// check has the heartbeats of the other members looked at.
func (m *machine) check() {
	m.checkAt = time.Time{}
	others := slices.DeleteFunc(m.group.IDs(), func(id string) bool { return id == m.self })
	if len(others) == 0 || m.checking != nil {
		return
	}
	m.checking = others
	m.do(action{verb: doAlive, executors: others, limit: m.group.Expiry()})
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
