package store

import (
	"errors"
	"testing"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// Each case begins after alice has read 1-1 to 3-3 of 1-1 to 4-4 and acked 1-1.
var ends = []struct {
	name    string
	do      func(e *env, p Partition)
	unclean bool
	suspect string
}{
	{"died", func(e *env, p Partition) {}, true, "2-2"},
	{"released", func(e *env, p Partition) { e.must(e.Unlock(e.ctx(), p, tenure(alice, 1))) }, false, ""},
	{"gave up", func(e *env, p Partition) { e.must(e.Abandon(e.ctx(), p, tenure(alice, 1))) }, true, "2-2"},
	{"released by a late request of an earlier ownership", func(e *env, p Partition) {
		e.must(e.Unlock(e.ctx(), p, tenure(alice, 0)))
	}, true, "2-2"},
	{"died idle", func(e *env, p Partition) {
		e.ack(p, alice, "2-2", "3-3")
	}, true, ""},
	{"the event was deleted", func(e *env, p Partition) { e.raw.XDel(e.ctx(), p.Log, "2-2") }, true, "3-3"},
	{"all that was read was deleted", func(e *env, p Partition) { e.raw.XDel(e.ctx(), p.Log, "2-2", "3-3") }, true, ""},
	{"the group is gone", func(e *env, p Partition) {
		e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice))
	}, true, ""},
	{"the next owner died before it read", func(e *env, p Partition) { e.own(p, tenure(carol, 1)) }, true, "2-2"},
	{"the next owner released before it read", func(e *env, p Partition) {
		e.own(p, tenure(carol, 1))
		e.must(e.Unlock(e.ctx(), p, tenure(carol, 1)))
	}, false, "2-2"},
	{"the next owner only had the lock", func(e *env, p Partition) {
		e.raw.Del(e.ctx(), p.Lock)
		e.lock(p, tenure(carol, 1))
		e.must(e.Unlock(e.ctx(), p, tenure(carol, 1)))
	}, true, "2-2"},
	{"the next owner parked it and died", func(e *env, p Partition) {
		e.own(p, tenure(carol, 1))
		e.read(p, carol, 1)
		e.must(e.Park(e.ctx(), p, tenure(carol, 1), 0, parkings([]redisconn.Entry{{ID: "2-2"}}, RetryState{Attempts: 1})))
	}, true, ""},
	{"the next owner parked it, read on and died", func(e *env, p Partition) {
		e.own(p, tenure(carol, 1))
		e.read(p, carol, 2)
		e.must(e.Park(e.ctx(), p, tenure(carol, 1), 0, parkings([]redisconn.Entry{{ID: "2-2"}}, RetryState{Attempts: 1})))
	}, true, "3-3"},
	{"the next owner acked it and released", func(e *env, p Partition) {
		e.own(p, tenure(carol, 1))
		e.read(p, carol, 1)
		e.ack(p, carol, "2-2")
		e.must(e.Unlock(e.ctx(), p, tenure(carol, 1)))
	}, false, ""},
	{"what was acked was trimmed", func(e *env, p Partition) {
		e.own(p, tenure(carol, 1))
		e.read(p, carol, 2)
		e.ack(p, carol, "2-2")
		e.raw.XTrimMinID(e.ctx(), p.Log, "3-3")
		e.must(e.Unlock(e.ctx(), p, tenure(carol, 1)))
	}, false, ""},
	{"the position was reset", func(e *env, p Partition) {
		e.own(p, tenure(carol, 1))
		try(e.Reset(e.ctx(), p, tenure(carol, 1), "0-0")).must(e.t)
		e.must(e.Unlock(e.ctx(), p, tenure(carol, 1)))
	}, false, ""},
	{"the position was reset to right before it", func(e *env, p Partition) {
		e.own(p, tenure(carol, 1))
		try(e.Reset(e.ctx(), p, tenure(carol, 1), "1-1")).must(e.t)
		e.must(e.Unlock(e.ctx(), p, tenure(carol, 1)))
	}, false, ""},
	{"a reset died", func(e *env, p Partition) { e.own(p, tenure(carol, 1)) }, true, "2-2"},
}

func TestTakeoverKnowsHowTheLastOwnerEnded(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, tt := range ends {
			t.Run(tt.name, func(t *testing.T) {
				e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}
				p := e.Partition("orders", "printer", i)
				for _, id := range []string{"1-1", "2-2", "3-3", "4-4"} {
					e.add(p.Log, id)
				}
				pos := e.own(p, tenure(alice, 1))
				equal(t, "the first takeover", []any{pos.Crashed, pos.Suspect}, []any{false, ""})
				e.read(p, alice, 3)
				e.ack(p, alice, "1-1")
				tt.do(e, p)
				first := e.own(p, tenure(bob, 1))
				equal(t, "unclean, suspect", []any{first.Crashed, first.Suspect}, []any{tt.unclean, tt.suspect})
				again := try(e.Takeover(e.ctx(), p, tenure(bob, 1), "", 0)).must(t)
				again.Now = first.Now // the clock goes on
				equal(t, "the same takeover again", again, first)
			})
		}
	})
}

// What an owner was given stays given, even if later owners die before they read it.
func TestWhatWasGivenStaysGiven(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		for _, id := range []string{"1-1", "2-2", "3-3", "4-4"} {
			e.add(p.Log, id)
		}
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 3)
		equal(t, "after the one who read", e.own(p, tenure(bob, 1)).Delivered, "3-3")
		equal(t, "after one who died before", e.own(p, tenure(carol, 1)).Delivered, "3-3")
		e.read(p, carol, 1)
		equal(t, "after one who read less", e.own(p, tenure(alice, 2)).Delivered, "3-3")
		try(e.Reset(e.ctx(), p, tenure(alice, 2), "0-0")).must(t)
		equal(t, "after a reset", e.own(p, tenure(bob, 2)).Delivered, "0-0")
	})
}

// Owners that die at one event are counted: after the first, only those that had begun it.
func TestDeathsAtAnEventAreCounted(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		for _, id := range []string{"1-1", "2-2"} {
			e.add(p.Log, id)
		}
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 2)
		number := uint64(1)
		next := func(what, suspect string, deaths int) Claim {
			t.Helper()
			number++
			pos := e.own(p, tenure(bob, number))
			equal(t, what, []any{pos.Suspect, pos.Deaths}, []any{suspect, deaths})
			e.read(p, bob, 2)
			return tenure(bob, number)
		}
		begin := func(owner Claim, id string) Claim {
			t.Helper()
			e.must(e.BeginSuspect(e.ctx(), p, owner, id))
			e.must(e.BeginSuspect(e.ctx(), p, owner, id)) // a repetition changes nothing
			return owner
		}
		next("the first one", "1-1", 1)
		begin(next("one that did not get there", "1-1", 1), "1-1")
		owner := begin(next("one that began it", "1-1", 2), "1-1")
		e.must(e.Unlock(e.ctx(), p, owner))
		begin(next("one that began and released it", "1-1", 2), "1-1")
		if err := e.BeginSuspect(e.ctx(), p, tenure(alice, 1), "1-1"); !errors.Is(err, ErrFenced) {
			t.Errorf("an earlier owner: %v", err)
		}
		begin(next("the third one", "1-1", 3), "")
		begin(next("what an owner forgot", "1-1", 1), "1-1")
		e.ack(p, bob, "1-1")
		next("the next event", "2-2", 1)
		e.ack(p, bob, "2-2")
		next("none", "", 0)
	})
}
