package store

import (
	"errors"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestLock(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		me, other := tenure(alice, 1), tenure(bob, 1)
		e.must(e.Lock(e.ctx(), p, me, 10*time.Second, time.Minute))
		e.must(e.Lock(e.ctx(), p, me, 10*time.Second, time.Minute)) // after a lost reply
		equal(t, "value", e.raw.Get(e.ctx(), p.Lock).Val(), alice+":0000000000000001")
		held := func(what string, of Claim, foreign, least, most time.Duration) {
			t.Helper()
			if err := e.Lock(e.ctx(), p, of, 10*time.Second, foreign); !errors.Is(err, ErrHeld) {
				t.Errorf("%s: got %v, want ErrHeld", what, err)
			}
			if left := e.raw.PTTL(e.ctx(), p.Lock).Val(); left < least || left > most {
				t.Errorf("%s: the lock lives on for %v, want %v to %v", what, left, least, most)
			}
		}
		held("a rightful lock", other, time.Minute, 8*time.Second, 10*time.Second)
		held("the same executor's next ownership", tenure(alice, 2), time.Minute, 8*time.Second, 10*time.Second)
		e.must(e.raw.PExpire(e.ctx(), p.Lock, time.Hour).Err())
		held("a lock of an hour", other, 5*time.Second, 4*time.Second, 5*time.Second)
		e.must(e.raw.Persist(e.ctx(), p.Lock).Err())
		held("an immortal lock", other, 100*time.Millisecond, 0, 100*time.Millisecond)
		redistest.Eventually(t, "the lock expires", func() bool {
			return e.Lock(e.ctx(), p, other, 10*time.Second, time.Minute) == nil
		})
		e.must(e.Unlock(e.ctx(), p, me))
		equal(t, "lock", e.raw.Get(e.ctx(), p.Lock).Val(), other.LockValue())
		e.must(e.Unlock(e.ctx(), p, other))
		e.must(e.Unlock(e.ctx(), p, other))
		equal(t, "locks", e.raw.Exists(e.ctx(), p.Lock).Val(), 0)
	})
}

func TestRefresh(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		const partitions = 6
		var rs []LeaseRequest
		for i := range partitions {
			p := e.Partition("orders", "printer", i)
			e.add(p.Log, "1-1")
			e.add(p.Log, "2-2")
			e.own(p, tenure(alice, uint64(i)))
			e.read(p, alice, 2)
			rs = append(rs, LeaseRequest{Partition: p, Claim: tenure(alice, uint64(i)), Committed: "1-1", Read: int64(i) - 1})
			e.ack(p, alice, "1-1")
			e.must(e.raw.PExpire(e.ctx(), p.Lock, time.Second).Err())
		}
		e.must(e.raw.Set(e.ctx(), rs[1].Partition.Lock, tenure(bob, 1).LockValue(), time.Second).Err())
		e.must(e.raw.Del(e.ctx(), rs[2].Partition.Lock).Err())
		e.must(e.raw.XGroupDestroy(e.ctx(), rs[3].Partition.Log, GroupName("printer", alice)).Err())
		e.must(e.raw.Set(e.ctx(), rs[4].Partition.Log, "x", 0).Err())
		e.must(e.raw.Del(e.ctx(), rs[5].Partition.Own).Err())
		e.must(e.raw.Set(e.ctx(), rs[5].Partition.Own, "x", 0).Err())
		e.must(e.raw.Set(e.ctx(), "memb", "value", 0).Err())

		refreshed, err := e.Refresh(e.ctx(), Heartbeat{Key: "beat", Expiry: 10 * time.Second, Membership: "memb", Info: HeartbeatInfo{Rules: rules.Generations{Pauses: 7}}}, rs)
		e.must(err)
		want := []LeaseResult{{State: Ours, Pending: 1, Lowest: "2-2", Stored: "0-0"}, {State: Lost}, {State: Lost}, {State: GroupGone}, {State: BadType}, {State: BadType}}
		equal(t, "renewed", refreshed.Leases, want)
		equal(t, "membership", string(refreshed.Membership), "value")
		equal(t, "generation of the rules", refreshed.Rules, rules.Generations{})
		equal(t, "the heartbeat tells", ParseHeartbeat(e.raw.Get(e.ctx(), "beat").Val()).Rules, rules.Generations{Pauses: 7})
		states := try(e.Probe(e.ctx(), rs)).must(t)
		equal(t, "probed", states, []State{Ours, Lost, Lost, GroupGone, BadType, Ours})

		for i, extended := range []bool{true, false, false, true, true, true} {
			if left := e.raw.PTTL(e.ctx(), rs[i].Partition.Lock).Val(); (left > 2*time.Second) != extended {
				t.Errorf("lock %d lives on for %v, extended should be %v", i, left, extended)
			}
		}
		equal(t, "checkpoint", e.raw.HMGet(e.ctx(), rs[0].Partition.Own, "floor", "read").Val(), []any{"1-1", ""})
		equal(t, "checkpoint of a lost one", e.raw.HGet(e.ctx(), rs[1].Partition.Own, "floor").Val(), "0-0")
		if left := e.raw.PTTL(e.ctx(), "beat").Val(); left < 8*time.Second {
			t.Errorf("the heartbeat lives for %v", left)
		}
	})
}

// A failover may keep an ownership's lock and forget its takeover. The group of that name then
// belongs to the executor's ownership before, whose pending entries were never given to this one.
func TestRefreshAfterAForgottenTakeover(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.add(p.Log, "1-1")
		e.add(p.Log, "2-2")
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 2)
		e.must(e.Unlock(e.ctx(), p, tenure(alice, 1)))
		e.lock(p, tenure(alice, 2))
		refresh := func(floor string) State {
			t.Helper()
			got := e.refresh(LeaseRequest{Partition: p, Claim: tenure(alice, 2), Committed: floor, Read: -1})
			return got.Leases[0].State
		}
		equal(t, "state", refresh("2-2"), GroupGone)
		equal(t, "floor", e.raw.HGet(e.ctx(), p.Own, "floor").Val(), "0-0")
		e.must(e.raw.HDel(e.ctx(), p.Own, "tenure").Err()) // by hand: nothing is known
		equal(t, "state without a known ownership", refresh("2-2"), Ours)
		equal(t, "floor without a known ownership", e.raw.HGet(e.ctx(), p.Own, "floor").Val(), "0-0")
	})
}

func TestRefreshOfNothingBeats(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		got, err := e.Refresh(e.ctx(), Heartbeat{Key: "beat", Expiry: time.Second, Membership: "memb"}, nil)
		if len(got.Leases) != 0 || got.Membership != nil || err != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		equal(t, "heartbeat", e.raw.Exists(e.ctx(), "beat").Val(), 1)
		redistest.Eventually(t, "the heartbeat expires", func() bool { return e.raw.Exists(e.ctx(), "beat").Val() == 0 })
	})
}

// An unchanged membership is not sent again.
func TestRefreshKnowsTheMembershipItHasSeen(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		pulse := Heartbeat{Key: "beat", Expiry: time.Minute, Membership: "memb"}
		for _, stored := range []string{"first", "second"} {
			e.must(e.raw.Set(e.ctx(), "memb", stored, 0).Err())
			read := try(e.Refresh(e.ctx(), pulse, nil)).must(t)
			equal(t, "another one", string(read.Membership), stored)
			pulse.Seen = read.Membership
			again := try(e.Refresh(e.ctx(), pulse, nil)).must(t)
			if len(again.Membership) == 0 || &again.Membership[0] != &pulse.Seen[0] {
				t.Errorf("%q came again: got %q", stored, again.Membership)
			}
		}
		e.must(e.raw.Del(e.ctx(), "memb").Err())
		gone := try(e.Refresh(e.ctx(), pulse, nil)).must(t)
		equal(t, "none", gone.Membership == nil, true)
	})
}

func TestRefreshOfManyPartitions(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		rs := make([]LeaseRequest, leasesPerScript+3)
		for i := range rs {
			rs[i] = LeaseRequest{Partition: e.Partition("orders", "printer", i), Claim: tenure(alice, 1), Committed: "0-0"}
		}
		last := rs[len(rs)-1]
		e.own(last.Partition, last.Claim)
		refreshed := e.refresh(rs...)
		got := refreshed.Leases
		equal(t, "results", len(got), len(rs))
		equal(t, "first and last", []State{got[0].State, got[len(got)-1].State}, []State{Lost, Ours})
	})
}

func TestStrays(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.own(p, tenure(alice, 1))
		e.fill(p.Log, 5)
		e.read(p, alice, 5)
		got := try(e.PendingBelow(e.ctx(), p, GroupName("printer", alice), "3-1", 10)).must(t)
		equal(t, "strays", got, []string{"1-1", "2-1", "3-1"})
		got = try(e.PendingBelow(e.ctx(), p, GroupName("printer", alice), "(3-1", 10)).must(t)
		equal(t, "forgotten acks before the third", got, []string{"1-1", "2-1"})
		got = try(e.PendingBelow(e.ctx(), p, GroupName("printer", alice), "9-1", 2)).must(t)
		equal(t, "at most two", got, []string{"1-1", "2-1"})
		if _, err := e.PendingBelow(e.ctx(), p, GroupName("printer", bob), "9-1", 2); !errors.Is(err, ErrFenced) {
			t.Errorf("no group: %v", err)
		}
	})
}

func TestAck(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, q, gone := e.Partition("orders", "printer", 0), e.Partition("orders", "printer", 1), e.Partition("orders", "printer", 2)
		for _, p := range []Partition{p, q, gone} {
			e.own(p, tenure(alice, 1))
			e.add(p.Log, "1-1")
			e.add(p.Log, "2-2")
			e.read(p, alice, 2)
		}
		e.must(e.raw.XGroupDestroy(e.ctx(), gone.Log, GroupName("printer", alice)).Err())
		acks := []Ack{{Place: p, IDs: []string{"1-1", "2-2"}}, {Place: gone, IDs: []string{"1-1"}}, {Place: q, IDs: []string{"1-1"}}}
		for range 2 { // the second time as after a lost reply
			errs := e.Ack(e.ctx(), GroupName("printer", alice), acks)
			if errs[0] != nil || errs[2] != nil || !errors.Is(errs[1], ErrFenced) {
				t.Errorf("got %v", errs)
			}
		}
		pending := e.raw.XPending(e.ctx(), q.Log, GroupName("printer", alice)).Val()
		equal(t, "pending", pending.Count, 1)
		equal(t, "nothing to ack", len(e.Ack(e.ctx(), "g", nil)), 0)
	})
}

func TestAckWithoutAServer(t *testing.T) {
	e := realEnv(t)
	p := e.Partition("orders", "printer", 0)
	e.must(e.Close())
	errs := e.Ack(e.ctx(), "g", []Ack{{Place: p, IDs: []string{"1-1"}}})
	if errs[0] == nil || errors.Is(errs[0], ErrFenced) {
		t.Errorf("got %v", errs[0])
	}
}

// Workers may have different expiries: a waiting one must not cut the lock below its owner's.
func TestALockIsNeverCutBelowItsOwnersExpiry(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		owner := Claim{Executor: alice, Number: 1, Expiry: time.Minute}
		e.must(e.Lock(e.ctx(), p, owner, owner.Expiry, 10*time.Second))
		try(e.Takeover(e.ctx(), p, owner, "", 0)).must(t)
		life := func(what string, least, most time.Duration) {
			t.Helper()
			if err := e.Lock(e.ctx(), p, tenure(bob, 1), 10*time.Second, 10*time.Second); !errors.Is(err, ErrHeld) {
				t.Fatalf("%s: lock: %v", what, err)
			}
			if got := e.raw.PTTL(e.ctx(), p.Lock).Val(); got <= least || got > most {
				t.Errorf("%s: the lock lives for another %v, want more than %v and at most %v", what, got, least, most)
			}
		}
		life("an owner with a longer expiry", 30*time.Second, time.Minute)
		// A step of the server's clock leaves a dead owner's lock for an hour.
		e.must(e.raw.PExpire(e.ctx(), p.Lock, time.Hour).Err())
		life("a dead owner's", 30*time.Second, time.Minute)
		e.must(e.raw.Del(e.ctx(), p.Own).Err())
		e.must(e.raw.PExpire(e.ctx(), p.Lock, time.Hour).Err())
		life("an unknown owner's", time.Second, 10*time.Second)
	})
}

// Only from the takeover on does the hash tell waiting workers what expiry the owner counts on:
//
//  1. the next owner, with a longer expiry, obtains the lock;
//  2. a waiting worker cuts it to the expiry of the owner before;
//  3. the takeover comes. The lease is counted from before the first step.
func TestATakeoverRestoresALockThatWasCutBeforeIt(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		before := Claim{Executor: carol, Number: 1, Expiry: 10 * time.Second}
		e.own(p, before)
		e.must(e.Unlock(e.ctx(), p, before))
		owner := Claim{Executor: alice, Number: 1, Expiry: time.Minute}
		e.must(e.Lock(e.ctx(), p, owner, owner.Expiry, 0))
		if err := e.Lock(e.ctx(), p, tenure(bob, 1), 10*time.Second, 10*time.Second); !errors.Is(err, ErrHeld) {
			t.Fatalf("lock: %v", err)
		}
		try(e.Takeover(e.ctx(), p, owner, "", 0)).must(t)
		if got := e.raw.PTTL(e.ctx(), p.Lock).Val(); got <= 30*time.Second || got > time.Minute {
			t.Errorf("the lock lives for another %v, its owner counts on %v", got, owner.Expiry)
		}
	})
}
