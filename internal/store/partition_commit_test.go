package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// byPosition is the first ownership of an executor that reads by position, and begins at most two entries.
func byPosition(executor string) Claim {
	t := tenure(executor, 1)
	t.Reach = 2
	return t
}

func (e *env) commit(p Partition, t Claim, number int64, committed string, read int64) error {
	e.t.Helper()
	return e.Commit(e.ctx(), []Commit{{Partition: p, Claim: t, Number: number, Committed: committed, Read: read}})[0]
}

// at returns where a partition stands: its group's position, the floor, and the entries read up to it.
func (e *env) at(p Partition) []any {
	e.t.Helper()
	groups := e.groups(p.Log)
	own := try(e.raw.HMGet(e.ctx(), p.Own, "floor", "read").Result()).must(e.t)
	for _, last := range groups {
		return append([]any{len(groups), last}, own...)
	}
	return append([]any{0, ""}, own...)
}

func TestACommitMovesThePosition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 6)
		e.own(p, me)
		commit := func(number int64, committed string, read int64, want error) {
			t.Helper()
			err := e.commit(p, me, number, committed, read)
			if !errors.Is(err, want) || (err == nil) != (want == nil) || errors.Is(err, redisconn.ErrUnknownOutcome) {
				t.Fatalf("commit %d: %v, want %v", number, err, want)
			}
		}
		for range 2 { // the reply was lost
			commit(1, "1-2", 2, nil)
			equal(t, "after the first", e.at(p), []any{1, "1-2", "1-2", "2"})
		}
		commit(3, "1-4", 4, ErrBehind) // the second one is forgotten
		commit(2, "1-3", 3, nil)
		commit(1, "1-2", 2, nil) // late
		equal(t, "after the second", e.at(p), []any{1, "1-3", "1-3", "3"})
		commit(3, "1-4", -1, nil) // how many there were is not known
		equal(t, "after the third", e.at(p), []any{1, "1-4", "1-4", ""})
		commit(4, "1-5", 5, nil)

		e.refresh(LeaseRequest{Partition: p, Claim: me, Committed: "1-1", Read: 1}) // sent before the commits
		equal(t, "after a refresh that knows less", e.at(p), []any{1, "1-5", "1-5", "5"})

		e.own(p, byPosition(bob))
		commit(5, "1-6", 6, ErrFenced)
		equal(t, "after the commit of a former owner", e.at(p)[:3], []any{1, "1-5", "1-5"})
		me = byPosition(bob)
		commit(1, "1-6", 6, nil) // each ownership counts by itself
		equal(t, "after the first of the next owner", e.at(p)[:3], []any{1, "1-6", "1-6"})
		again := byPosition(bob)
		again.Number = 2
		e.own(p, again)
		commit(1, "1-6", 6, ErrFenced) // late: the group has the same name
		me = again
		commit(1, "1-6", 6, nil)
		e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, bob)).Err())
		commit(2, "1-6", 6, ErrFenced)
	})
}

// A server that was behind may know all commits, and have other entries than those that were read, or have forgotten what
// was taken out. Then the position must not pass what it has.
func TestACommitPassesNothingThatTheServerHasAnew(t *testing.T) {
	for _, large := range []bool{false, true} {
		both(t, func(t *testing.T, e *env) {
			p, me, number := e.Partition("orders", "printer", 0), byPosition(alice), int64(0)
			e.series(p.Log, 3)
			e.own(p, me)
			commit := func(committed string, want error, takenOut ...string) {
				t.Helper()
				one := Commit{Partition: p, Claim: me, Number: number + 1, Committed: committed, Read: -1, TakenOut: takenOut, Large: large}
				err := e.Commit(e.ctx(), []Commit{one})[0]
				if !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Fatalf("commit of %s: %v, want %v", committed, err, want)
				}
				if err == nil {
					number++
				}
			}
			commit("1-3", nil)
			e.add(p.Log, "1-4") // by another master
			commit("1-5", ErrBehind)
			e.add(p.Log, "1-6")
			commit("1-5", ErrBehind)
			equal(t, "where it stands", e.at(p)[1], "1-3")
			commit("1-4", nil)
			e.must(e.raw.XDel(e.ctx(), p.Log, "1-6").Err())
			commit("1-6", nil) // nothing is passed: it was dropped while it was processed
			for _, id := range []string{"1-7", "1-8", "1-9"} {
				e.add(p.Log, id)
			}
			e.park(p, alice, "1-8")
			commit("1-8", ErrBehind, "1-7", "1-8")
			commit("1-8", nil, "1-8")
			commit("1-9", ErrBehind, "1-9")
			e.bury(p, alice, "1-9")
			commit("1-9", nil, "1-9")
			for _, left := range e.groups(p.Log) {
				equal(t, "where it ends", left, "1-9")
			}
			equal(t, "pending", e.pending(p, alice), 0)
		})
	}
}

// A server that was behind may never have had what was read of another one. What it has next may then get a lower ID, if its
// clock is behind, and the position must not be there before.
func TestACommitStaysWithinWhatThePartitionEverHad(t *testing.T) {
	for _, left := range []string{"1-2", "0-0"} {
		both(t, func(t *testing.T, e *env) {
			p, me := e.Partition("orders", "printer", 0), byPosition(alice)
			e.series(p.Log, 2)
			e.own(p, me)
			e.must(e.commit(p, me, 1, "1-2", 2))
			if left != "1-2" {
				e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 0).Err())
			}
			if err := e.commit(p, me, 2, "1-4", 3); !errors.Is(err, ErrBehind) {
				t.Errorf("commit of what was read of another server: %v, want %v", err, ErrBehind)
			}
			e.add(p.Log, "1-3")
			e.own(p, tenure(bob, 1))
			equal(t, "what the next owner reads", e.read(p, bob, 9), []string{"1-3"})
		})
	}
}

// A server that has forgotten an entry has not removed it: what came there behind it, under a higher ID, is no sign that it was dropped.
func TestACommitKnowsWhatWasDroppedFromWhatWasForgotten(t *testing.T) {
	for _, trimmed := range []bool{false, true} {
		e := realEnv(t)
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 2)
		e.own(p, me)
		e.must(e.commit(p, me, 1, "1-2", 2))
		if trimmed {
			e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 0).Err())
		}
		e.add(p.Log, "1-4") // by another master, which never had 1-3
		if err := e.commit(p, me, 2, "1-3", 3); !errors.Is(err, ErrBehind) {
			t.Errorf("commit of what was forgotten: %v, want %v", err, ErrBehind)
		}
		e.must(e.commit(p, me, 2, "1-4", 3))
		e.add(p.Log, "1-5")
		e.add(p.Log, "1-6")
		e.must(e.raw.XTrimMinID(e.ctx(), p.Log, "1-6").Err()) // dropped while it is processed
		e.must(e.commit(p, me, 3, "1-5", 4))
	}
}

// A position is that of no entry where the owner before, by group, has left some pending. Commits of changes that pass no event keep it.
func TestACommitThatPassesNothing(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), byPosition(bob)
		for _, id := range []string{"1-1", "5-0", "9-0"} {
			e.add(p.Log, id)
		}
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 9)
		e.ack(p, alice, "1-1")
		pos := e.own(p, me)
		equal(t, "position", pos.Committed, "4-18446744073709551615")
		e.must(e.commit(p, me, 1, pos.Committed, pos.Read))
		e.must(e.commit(p, me, 2, "5-0", pos.Read+1))
	})
}

// A refresh stores when the owner was there: what came until its lock ended it may have begun.
func TestARefreshStoresThatTheOwnerWasThere(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for n, refreshed := range []bool{false, true} {
			p, me := e.Partition("orders", "printer", n), byPosition(alice)
			me.Expiry = 10 * time.Second
			e.own(p, me)
			id := fmt.Sprint(e.add(p.Log, "*"))
			e.must(e.raw.HSet(e.ctx(), p.Own, "seen", "1").Err()) // its takeover was long ago
			want := ""
			if refreshed {
				want = id
				e.refresh(LeaseRequest{Partition: p, Claim: me, Committed: "0-0", Read: 0})
			}
			equal(t, fmt.Sprintf("suspect, refreshed: %v", refreshed), e.own(p, byPosition(bob)).Suspect, want)
		}
	})
}

// A commit that is late behind a clean release takes nothing back.
func TestALateCommitTakesNothingBack(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 6)
		e.own(p, me)
		e.must(e.commit(p, me, 1, "1-4", 4))
		try(e.Release(e.ctx(), LeaseRequest{Partition: p, Claim: me, Committed: "1-4", Read: 4})).must(t)
		e.must(e.commit(p, me, 1, "1-2", 2))
		pos := e.own(p, tenure(bob, 1))
		equal(t, "the next one, by group", []any{pos.Committed, pos.Crashed, pos.Delivered, pos.Suspect}, []any{"1-4", false, "1-4", ""})
		equal(t, "what it reads", e.read(p, bob, 9), []string{"1-5", "1-6"})
	})
}

// Each case begins after alice, who begins two entries at most, has taken 1-1 to 1-6 over by position.
var ended = []struct {
	name      string
	do        func(e *env, p Partition, me Claim)
	committed string
	given     string
	crashed   bool
	suspect   string
	aside     string
}{
	{"died", func(*env, Partition, Claim) {}, "0-0", "1-2", true, "1-1", ""},
	{"died behind a commit", func(e *env, p Partition, me Claim) { e.must(e.commit(p, me, 1, "1-3", 3)) }, "1-3", "1-5", true, "1-4", ""},
	{"died idle", func(e *env, p Partition, me Claim) { e.must(e.commit(p, me, 1, "1-6", 6)) }, "1-6", "1-6", true, "", ""},
	{"took more at once", func(e *env, p Partition, me Claim) {
		e.must(e.commit(p, me, 1, "1-1", 1))
		for _, me.Reach = range []int64{4, 2} { // the second one was sent before
			e.refresh(LeaseRequest{Partition: p, Claim: me, Committed: "1-1", Read: 1})
		}
	}, "1-1", "1-5", true, "1-2", ""},
	{"parked one and died", func(e *env, p Partition, me Claim) { e.park(p, alice, "1-1") }, "0-0", "1-2", true, "1-2", "1-1"},
	{"made a dead letter of the second and died", func(e *env, p Partition, me Claim) {
		e.bury(p, alice, "1-2")
		e.bury(p, alice, "1-2")
		equal(e.t, "dead letters", e.raw.XLen(e.ctx(), p.Dead).Val(), 1)
	}, "0-0", "1-2", true, "1-1", "1-2"},
	{"parked one, passed it and died", func(e *env, p Partition, me Claim) {
		e.park(p, alice, "1-1")
		e.must(e.commit(p, me, 1, "1-1", 1))
		e.park(p, alice, "1-1") // late: it may be done by now
	}, "1-1", "1-3", true, "1-2", ""},
	{"released", func(e *env, p Partition, me Claim) {
		e.must(e.commit(p, me, 1, "1-2", 2))
		e.must(e.Unlock(e.ctx(), p, me))
	}, "1-2", "1-2", false, "", ""},
	{"released behind an event that failed", func(e *env, p Partition, me Claim) {
		e.must(e.commit(p, me, 1, "1-2", 2))
		try(e.Release(e.ctx(), LeaseRequest{Partition: p, Claim: me, Committed: "1-2", Read: 2, Begun: "1-4"})).must(e.t)
	}, "1-2", "1-4", false, "", ""},
	{"released what the server does not know", func(e *env, p Partition, me Claim) {
		e.must(e.raw.Del(e.ctx(), p.Own).Err())
		try(e.Release(e.ctx(), LeaseRequest{Partition: p, Claim: me, Read: -1, Begun: "1-3"})).must(e.t)
	}, "0-0", "1-3", false, "", ""},
	{"the next one died before it read", func(e *env, p Partition, me Claim) { e.own(p, byPosition(carol)) }, "0-0", "1-2", true, "1-1", ""},
	{"all that came later cannot have begun", func(e *env, p Partition, me Claim) {
		e.must(e.commit(p, me, 1, "1-6", 6))
		e.must(e.raw.HSet(e.ctx(), p.Own, "seen", time.Now().Add(-time.Hour).UnixMilli()).Err())
		e.add(p.Log, fmt.Sprint(time.Now().Add(-time.Minute).UnixMilli(), "-1"))
	}, "1-6", "1-6", true, "", ""},
}

func TestTakeoverKnowsWhatAnOwnerByPositionMayHaveBegun(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, tt := range ended {
			for _, next := range []Claim{tenure(bob, 1), byPosition(bob)} {
				t.Run(fmt.Sprintf("%s, then reach %d", tt.name, next.Reach), func(t *testing.T) {
					e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}
					p := e.Partition("orders", "printer", 2*i+int(next.Reach/2))
					me := byPosition(alice)
					me.Expiry = 10 * time.Second
					e.series(p.Log, 6)
					e.own(p, me)
					tt.do(e, p, me)
					pos := e.own(p, next)
					equal(t, "takeover", []any{pos.Committed, pos.Delivered, pos.Crashed, pos.Suspect, strings.Join(pos.SetAside, " ")},
						[]any{tt.committed, tt.given, tt.crashed, tt.suspect, tt.aside})
				})
			}
		}
	})
}

// By position an entry counts as lost once all behind it was read, though the position is not there yet.
func TestLossesAreCountedByPosition(t *testing.T) {
	e := realEnv(t)
	p, me := e.Partition("orders", "printer", 0), byPosition(alice)
	e.series(p.Log, 6)
	e.own(p, me)
	e.must(e.raw.XDel(e.ctx(), p.Log, "1-2", "1-5").Err())
	renewed := func(at string, count int64) LeaseResult {
		t.Helper()
		return e.refresh(LeaseRequest{Partition: p, Claim: me, Committed: "0-0", Read: 0, At: at, Count: count}).Leases[0]
	}
	if r := renewed("1-3", 2); r.Counted || r.Lost != 0 {
		t.Fatalf("%+v, want nothing counted: more is on its way", r)
	}
	// What a read under way brings may have been removed since.
	r := renewed("1-6", 4)
	equal(t, "lost, counted, suspected", []any{r.Lost, r.Counted, r.Suspect}, []any{0, false, true})
	e.must(e.CountLost(e.ctx(), 10*time.Second, []LeaseRequest{{Partition: p, Claim: me, Committed: "0-0", Read: 0, At: "1-6", Count: 4}}))
	r = renewed("1-6", 4)
	equal(t, "lost, counted, up to there", []any{r.Lost, r.Counted, r.Count}, []any{2, true, 4})
	r = renewed("1-6", 4)
	equal(t, "once more", []any{r.Lost, r.Suspect, r.Count}, []any{2, false, 4})
	e.must(e.commit(p, me, 1, "1-6", 4))
	equal(t, "the position", e.at(p), []any{1, "1-6", "1-6", "6"})
	groups := try(e.raw.XInfoGroups(e.ctx(), p.Log).Result()).must(t)
	equal(t, "lag", groups[0].Lag, 0)
}

// On a full server a position moves on, since what it passes may then be trimmed.
func TestACommitPassesAFullServer(t *testing.T) {
	e := realEnv(t)
	p, me := e.Partition("orders", "printer", 0), byPosition(alice)
	e.series(p.Log, 3)
	e.own(p, me)
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
	e.must(e.commit(p, me, 1, "1-1", 1))
	e.must(e.raw.XDel(e.ctx(), p.Log, "1-2").Err())
	e.must(e.commit(p, me, 2, "1-2", 2))
	if err := e.Park(e.ctx(), p, me, 0, parkings([]redisconn.Entry{{ID: "1-3"}}, RetryState{Attempts: 1})); err != nil {
		t.Error("park: ", err)
	}
	equal(t, "parked", len(e.retries(p)), 1)
}

// What was parked and is done is not parked again by a request that is late.
func TestALateParkParksNothingThatThePositionHasPassed(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 3)
		e.own(p, me)
		e.park(p, alice, "1-1")
		e.must(e.commit(p, me, 1, "1-1", 1))
		e.park(p, alice, "1-2") // what is set aside begins behind the position
		e.must(e.DoneRetry(e.ctx(), p, me, "1-1"))
		e.park(p, alice, "1-1")
		equal(t, "parked", len(e.retries(p)), 1)
	})
}
