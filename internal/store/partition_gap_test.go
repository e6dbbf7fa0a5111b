package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// beat refreshes one partition of alice.
func (e *env) beat(p Partition, at string, count int64) LeaseResult {
	e.t.Helper()
	got := e.refresh(LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "0-0", Read: 0, At: at, Count: count})
	return got.Leases[0]
}

// only returns n on the real server, and 0 on the embedded one, which does not count.
func (e *env) only(n int64) int64 {
	if e.real {
		return n
	}
	return 0
}

func TestEntriesRemovedUnreadAreCounted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		remove func(e *env, log string)
		rest   int // entries left to read
		want   int64
	}{
		{"nothing", func(*env, string) {}, 6, 0},
		{"trimmed", func(e *env, log string) { e.must(e.raw.XTrimMaxLen(e.ctx(), log, 3).Err()) }, 3, 3},
		{"deleted in the middle", func(e *env, log string) { e.must(e.raw.XDel(e.ctx(), log, "6-1", "8-1").Err()) }, 4, 2},
		{"deleted at the end", func(e *env, log string) { e.must(e.raw.XDel(e.ctx(), log, "9-1", "10-1").Err()) }, 4, 2},
		{"delivered ones", func(e *env, log string) { e.must(e.raw.XDel(e.ctx(), log, "2-1", "3-1").Err()) }, 6, 0},
		{"all", func(e *env, log string) { e.must(e.raw.XTrimMaxLen(e.ctx(), log, 0).Err()) }, 0, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				p := e.Partition("orders", "printer", 0)
				e.own(p, tenure(alice, 1))
				e.fill(p.Log, 10)
				at := e.read(p, alice, 4)[3]
				tt.remove(e, p.Log)
				if tt.rest > 0 && e.beat(p, at, 4).Counted {
					t.Error("counted though something is left to read")
				}
				if tt.rest > 0 {
					rest := e.read(p, alice, 10)
					equal(t, "read", len(rest), tt.rest)
					at = rest[len(rest)-1]
				}
				count := int64(4 + tt.rest)
				for range 2 { // the second time it finds nothing more
					got := e.beat(p, at, count)
					if !got.Counted || got.Lost != e.only(tt.want) {
						t.Errorf("got %+v, want %d lost", got, e.only(tt.want))
					}
				}
				e.add(p.Log, "11-1")
				at = e.read(p, alice, 10)[0]
				equal(t, "lost, after another entry", e.beat(p, at, count+1).Lost, e.only(tt.want))
			})
		})
	}
}

func TestWhatIsUnknownIsNotCounted(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.own(p, tenure(alice, 1))
		e.fill(p.Log, 10)
		at := e.read(p, alice, 10)[9]
		got := e.beat(p, at, -1)
		if !got.Counted || got.Lost != 0 {
			t.Errorf("got %+v", got)
		}
		if e.real && got.Count != 10 {
			t.Errorf("the count is known as %d", got.Count)
		}
	})
}

func TestATakeoverCountsWhatWasRemoved(t *testing.T) {
	for _, tt := range []struct {
		name       string
		read, ack  int
		keep       int64 // of 10 entries
		lost, gone int64
	}{
		{"acked ones", 6, 6, 4, 0, 0},
		{"unread ones", 4, 4, 3, 3, 0},
		{"pending ones", 6, 2, 6, 0, 2},
		{"both", 4, 2, 3, 3, 2},
		{"everything", 4, 4, 0, 6, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				p := e.Partition("orders", "printer", 0)
				e.own(p, tenure(alice, 1))
				e.fill(p.Log, 10)
				read := e.read(p, alice, tt.read)
				e.ack(p, alice, read[:tt.ack]...)
				e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, tt.keep).Err())
				pos := e.own(p, tenure(bob, 1))
				equal(t, "lost", pos.Lost, e.only(tt.lost))
				equal(t, "gone", pos.Gone, tt.gone)
				if e.real {
					equal(t, "missed", pos.Missed, tt.lost+tt.gone)
					equal(t, "read at the committed position", pos.Read, 10-tt.keep)
				}
				again := e.own(p, tenure(carol, 1))
				equal(t, "lost, after another takeover", again.Lost, pos.Lost)
				equal(t, "gone, after another takeover", again.Gone, pos.Gone)
				equal(t, "missed by another takeover", again.Missed, 0)
			})
		})
	}
}

// What DropOldest counted is not counted again by a refresh or a takeover.
func TestWhatWasDroppedIsCountedOnce(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(10, OverflowDropOldest, "printer")
		p := e.owner("printer", 0, 0)
		e.must(e.send(e.ctx(), 0, 10).Err)
		read := e.read(p, alice, 3)
		e.ack(p, alice, read...)
		e.must(e.send(e.ctx(), 10, 10).Err) // drops 7 unread entries and 3 acked ones
		rest := e.read(p, alice, 20)
		equal(t, "read", len(rest), 10)
		equal(t, "lost", e.beat(p, rest[9], 13).Lost, 7)
		e.ack(p, alice, rest...)
		pos := e.own(p, tenure(bob, 1))
		equal(t, "lost at the takeover", pos.Lost, 7)
		equal(t, "missed", pos.Missed, 0)
	})
}

func TestForgetRemovesAProcessor(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(10, OverflowReject, "printer", "old")
		p := e.owner("old", 0, 0)
		e.owner("printer", 0, 0)
		e.must(e.send(e.ctx(), 0, 10).Err)
		if err := e.Forget(e.ctx(), p, true); err == nil {
			t.Fatal("forgotten while it has an owner")
		}
		e.must(e.raw.Del(e.ctx(), p.Lock).Err())
		e.must(e.Forget(e.ctx(), p, true))
		e.must(e.Forget(e.ctx(), p, true))
		equal(t, "groups", e.groups(p.Log), map[string]string{GroupName("printer", alice): "0-0"})
		equal(t, "keys", e.raw.Exists(e.ctx(), p.Parked, p.Retry, p.Dead).Val(), 0)
		// For a while an owner that did not release is told that the processor was removed.
		equal(t, "of the ownership", e.raw.HKeys(e.ctx(), p.Own).Val(), []string{"moved"})
		equal(t, "expires", e.raw.PTTL(e.ctx(), p.Own).Val() > 0, true)
		e.own(p, tenure(bob, 1))
		equal(t, "the ownership expires", e.raw.PTTL(e.ctx(), p.Own).Val() > 0, false)
		e.must(e.Unlock(e.ctx(), p, tenure(bob, 1)))
		e.must(e.Forget(e.ctx(), p, true))
		equal(t, "once it was released", e.raw.Exists(e.ctx(), p.Own).Val(), 0)
		for _, want := range []bool{true, false} {
			was := try(e.Unregister(e.ctx(), "orders", "old")).must(t)
			equal(t, "was registered", was, want)
		}
		m, _, err := e.LoadMeta(e.ctx(), "orders")
		e.must(err)
		equal(t, "processors", m.Processors, []string{"printer"})
	})
}

// Entries removed while they are pending are counted once, with their ack.
func TestGoneEntriesAreCountedWithTheirAck(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.begin(p, 4)
		e.must(e.raw.XDel(e.ctx(), p.Log, "2-2", "3-3").Err())
		ack := Ack{Place: p, IDs: []string{"1-1", "2-2", "3-3"}, Gone: []string{"2-2", "3-3"}}
		for range 2 {
			e.must(e.Ack(e.ctx(), GroupName("printer", alice), []Ack{ack})[0])
		}
		pos := e.own(p, tenure(bob, 1))
		equal(t, "gone, floor", []any{pos.Gone, pos.Committed}, []any{int64(2), "4-3"})
		if err := e.Ack(e.ctx(), GroupName("printer", alice), []Ack{ack})[0]; !errors.Is(err, ErrFenced) {
			t.Errorf("an ack of the owner before: %v", err)
		}
		equal(t, "counted once", e.own(p, tenure(carol, 1)).Gone, int64(2))
	})
}

// Entries that Python's producers trimmed before its processor acked them are lost. After a restart
// from an append-only file entries-read is too low; then an entry that is still at the group's
// position proves that nothing is lost.
func TestATakeoverCountsWhatPythonLost(t *testing.T) {
	for _, tt := range []struct {
		name      string
		read, ack int
		keep      int64 // of 10 entries
		counted   int64 // entries-read; -1: what Redis counts
		want      int64
	}{
		{"acked ones", 6, 6, 5, -1, 0},
		{"unread ones", 4, 4, 3, -1, 3},
		{"pending ones", 6, 2, 6, -1, 2},
		{"both", 4, 2, 3, -1, 5},
		{"everything", 4, 4, 0, -1, 6},
		{"acked ones, and Redis has counted too few", 9, 9, 5, 1, 0},
		{"at the end, and Redis has counted too few", 10, 10, 5, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := realEnv(t)
			p := e.Partition("orders", "printer", 0)
			e.must(e.raw.XGroupCreateMkStream(e.ctx(), p.Log, "printer", "0").Err())
			e.fill(p.Log, 10)
			read, err := e.raw.XReadGroup(e.ctx(), &redis.XReadGroupArgs{Group: "printer", Consumer: "python", Streams: []string{p.Log, ">"}, Count: int64(tt.read)}).Result()
			e.must(err)
			var at []string
			for _, m := range read[0].Messages {
				at = append(at, m.ID)
			}
			e.must(e.raw.XAck(e.ctx(), p.Log, "printer", at[:tt.ack]...).Err())
			if tt.counted >= 0 {
				e.must(e.raw.Do(e.ctx(), "XGROUP", "SETID", p.Log, "printer", at[len(at)-1], "ENTRIESREAD", tt.counted).Err())
			}
			e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, tt.keep).Err())
			pos := e.own(p, tenure(bob, 1))
			equal(t, "found", pos.Found, FoundPlainGroup)
			equal(t, "lost, missed", []int64{pos.Lost, pos.Missed}, []int64{tt.want, tt.want})
			equal(t, "lost, after another takeover", e.own(p, tenure(carol, 1)).Lost, tt.want)
			equal(t, "groups", len(e.groups(p.Log)), 2)
		})
	}
}

// After a position was set back by hand, reads count from there, without what was pending before.
// Uncertain losses are not reported.
func TestATakeoverOfAGroupThatWasSetBackCountsNothingLost(t *testing.T) {
	for _, again := range []int{0, 1, 3, 15} { // entries read again before the takeover
		for _, acked := range []int{10, 20} {
			t.Run(fmt.Sprint(acked, " acked, ", again, " read again"), func(t *testing.T) {
				e := realEnv(t)
				p := e.Partition("orders", "printer", 0)
				e.own(p, tenure(alice, 1))
				e.fill(p.Log, 20)
				e.ack(p, alice, e.read(p, alice, 20)[:acked]...)
				e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 15).Err()) // all of these are acked
				e.must(e.raw.XGroupSetID(e.ctx(), p.Log, GroupName(p.Processor, alice), "0").Err())
				if again > 0 {
					e.read(p, alice, again)
				}
				pos := e.own(p, tenure(bob, 1))
				equal(t, "lost", pos.Lost, int64(0))
				rest := e.read(p, bob, 20)
				equal(t, "read at last", rest[len(rest)-1], "20-1")
				count := int64(-1)
				if pos.Read >= 0 {
					count = pos.Read + int64(len(rest))
				}
				got := e.refresh(LeaseRequest{Partition: p, Claim: tenure(bob, 1), Committed: pos.Committed, Read: pos.Read, At: "20-1", Count: count})
				equal(t, "lost, once all is read", got.Leases[0].Lost, int64(0))
			})
		}
	}
}

// halfAcked lets alice read 10 of 20 entries and ack all but the third.
func (e *env) halfAcked(p Partition) {
	e.t.Helper()
	e.series(p.Log, 20)
	e.own(p, tenure(alice, 1))
	given := e.read(p, alice, 10)
	e.ack(p, alice, append(given[:2:2], given[3:]...)...)
}

// When acks have gaps, the owner knows its position; the number of pending entries does not tell.
func TestTakeoverKnowsTheNumberReadThoughAcksHaveGaps(t *testing.T) {
	e := realEnv(t)
	p := e.Partition("orders", "printer", 0)
	e.halfAcked(p)
	e.release(LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "1-2", Read: 2})
	pos := e.own(p, tenure(bob, 1))
	equal(t, "floor", pos.Committed, "1-2")
	equal(t, "read", pos.Read, 2)
	for _, g := range e.raw.XInfoGroups(e.ctx(), p.Log).Val() {
		equal(t, g.Name+": lag", g.Lag, 18)
	}
	equal(t, "lag", e.behind(p), 18)
	equal(t, "rest", len(e.read(p, bob, 100)), 18)
}

// Acks of a dead owner behind a gap are known once all is read; nothing counts as lost meanwhile.
func TestGapsOfAnOwnerThatDiedAreCountedOnceAllIsRead(t *testing.T) {
	e := realEnv(t)
	p := e.Partition("orders", "printer", 0)
	e.halfAcked(p)
	pos := e.own(p, tenure(bob, 1))
	equal(t, "floor", pos.Committed, "1-2")
	rest := e.read(p, bob, 100)
	equal(t, "rest", len(rest), 18)
	got := e.refresh(LeaseRequest{Partition: p, Claim: tenure(bob, 1), Committed: pos.Committed, Read: pos.Read, At: rest[17], Count: pos.Read + 18})
	equal(t, "lost, counted, count", []any{got.Leases[0].Lost, got.Leases[0].Counted, got.Leases[0].Count}, []any{int64(0), true, int64(20)})
	for _, g := range e.raw.XInfoGroups(e.ctx(), p.Log).Val() {
		equal(t, g.Name+": lag, read", []int64{g.Lag, g.EntriesRead}, []int64{0, 20})
	}
}
