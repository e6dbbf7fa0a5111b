package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Under drop-oldest, due events push out the oldest entries.
func TestMoveDropsTheOldest(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 4, MaxLen: 4, Overflow: OverflowDropOldest, Processors: []string{"p"}})
		e.must(err)
		e.must(e.delay(later(0, 7, past)...).Err)
		log := e.keys.Partition("orders", 3)
		equal(t, "up to the size", e.contents(log), numbers(0, 4))
		if m := e.move(); m.Events != 0 || m.Wait != 0 || m.Full != nil {
			t.Errorf("making room: %+v", m)
		}
		if m := e.move(); m.Events != 3 || m.Full != nil {
			t.Errorf("moved %+v", m)
		}
		equal(t, "the newest", e.contents(log), numbers(3, 4))
		equal(t, "lost", e.raw.HGet(e.ctx(), e.keys.Ownership("orders", "p", 3), "lost").Val(), "3")
	})
}

// A full server still moves events, which takes no memory; what cannot be appended stays queued.
func TestMoveWithoutMemory(t *testing.T) {
	e := realEnv(t)
	log := e.keys.Partition("orders", 3)
	e.must(e.delay(later(0, 20, future)...).Err)
	for _, id := range e.waitingIDs() {
		try(e.Fire(e.ctx(), "orders", 3, id)).must(t)
	}
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
	if sent := e.delay(later(20, 1, future)...); sent.Err == nil || !strings.Contains(sent.Err.Error(), "OOM") || sent.Unknown {
		t.Errorf("delay without memory: %+v", sent)
	}
	e.move()
	equal(t, "moved", e.contents(log), numbers(0, 20))
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "0").Err())

	sent := e.delay(later(0, 3, future)...)
	e.must(sent.Err)
	_, id, _ := ParseDelayedID(sent.IDs[0])
	try(e.Fire(e.ctx(), "orders", 3, id)).must(t)
	e.must(e.raw.Do(e.ctx(), "XADD", log, "18446744073709551615-18446744073709551615", "n", "last").Err())
	m := e.tryMove()
	if m.Err == nil || m.Events != 0 {
		t.Errorf("into a stream without IDs left: %+v", m)
	}
	equal(t, "waits", e.waiting(), numbers(0, 3))
}

// A refresh reports delayed events in case a hint was lost.
func TestRefreshTellsWhatIsDue(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		var rs []LeaseRequest
		for i := range 5 {
			p := e.Partition("orders", "p", i)
			e.own(p, tenure(alice, 1))
			rs = append(rs, LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "0-0"})
		}
		e.must(e.delay(later(0, 1, time.Now().Add(time.Hour))...).Err)
		sent := e.Append(e.ctx(), []Append{delayed(1, later(0, 1, future)...)})
		ok, err := e.Fire(e.ctx(), "orders", 1, e.ids(sent[0])[0])
		equal(t, "fired", fmt.Sprint(ok, err), "true <nil>")
		e.must(e.raw.Set(e.ctx(), e.dueKeys("orders", 2).Due, "x", 0).Err())
		refreshed := e.refresh(rs...)
		for i, want := range []time.Duration{0, time.Nanosecond, 0, time.Hour, 0} {
			if g := refreshed.Leases[i]; g.State != Ours || g.Due > want || g.Due < want-time.Minute {
				t.Errorf("partition %d: got %+v, want %v", i, g, want)
			}
		}
	})
}
