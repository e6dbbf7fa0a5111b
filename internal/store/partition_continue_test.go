package store

import (
	"errors"
	"testing"
)

// After a new connection a partition is read on if what was read last is done or there, under the same ownership.
func TestContinue(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 4)
		e.own(p, me)
		e.must(e.commit(p, me, 1, "1-2", 2))
		e.must(e.raw.XDel(e.ctx(), p.Log, "1-1", "1-3").Err())
		r := e.NewReader()
		defer r.Close()
		on := func(claim Claim, last ...string) []bool {
			t.Helper()
			var places []Place
			for _, id := range last {
				places = append(places, Place{Partition: p, Claim: claim, Last: id, Count: -1})
			}
			found, errs := e.Continue(e.ctx(), r, places)
			e.must(errors.Join(errs...))
			return found
		}
		equal(t, "at 1-1, done; 1-2, the position; 1-3, dropped; 1-4; 1-5, never there", on(me, "1-1", "1-2", "1-3", "1-4", "1-5"), []bool{true, true, true, true, false})
		e.must(e.raw.XAdd(e.ctx(), addArgs(p.Log, "data", "x")).Err())
		equal(t, "1-5, never there, and 1-4 is", on(me, "1-5"), []bool{false})
		equal(t, "pending", e.pending(p, alice), 0)
		equal(t, "connections", r.Connections(), 1)
		equal(t, "another ownership", on(byPosition(bob), "1-2"), []bool{false})
		e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice)).Err())
		equal(t, "without the group", on(me, "1-2"), []bool{false})
	})
}

// Of a server that has forgotten the last entry that was read nothing is read on, though others came there behind it. Where entries were
// dropped for want of room, it goes on.
func TestNothingIsReadOnBehindWhatWasForgotten(t *testing.T) {
	for _, trimmed := range []bool{false, true} {
		e := realEnv(t)
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 2)
		e.own(p, me)
		e.must(e.commit(p, me, 1, "1-2", 2))
		if trimmed { // then only the number tells
			e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 0).Err())
		}
		e.add(p.Log, "1-4") // by another master, which never had 1-3
		r := e.NewReader()
		defer r.Close()
		on := func(last string, count int64) bool {
			t.Helper()
			found, errs := e.Continue(e.ctx(), r, []Place{{Partition: p, Claim: me, Last: last, Count: count}})
			e.must(errors.Join(errs...))
			return found[0]
		}
		equal(t, "1-3, forgotten", on("1-3", 3), false)
		equal(t, "1-3, at a number that is not known", on("1-3", -1), trimmed)
		equal(t, "1-4", on("1-4", 3), true)
		e.add(p.Log, "1-5")
		e.must(e.raw.XTrimMinID(e.ctx(), p.Log, "1-5").Err())
		equal(t, "1-4, dropped", on("1-4", 3), true)
		e.must(e.raw.XDel(e.ctx(), p.Log, "1-5").Err())
		e.add(p.Log, "1-6")
		equal(t, "1-5, deleted", on("1-5", 4), true)
		e.must(e.raw.HSet(e.ctx(), p.Own, "read", 1000).Err()) // of another stream
		e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 0).Err())
		e.add(p.Log, "1-7")
		equal(t, "1-6, dropped, at a wrong number", on("1-6", 1004), true)
	}
}
