package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/rebalance"
)

// inForce returns the rules without their times.
func (e *env) inForce() string {
	e.t.Helper()
	set, now, err := e.Rules(e.ctx())
	e.must(err)
	var out []string
	for _, r := range set.InForce(now) {
		out = append(out, r.Field()+" "+r.Who+" "+r.Why)
	}
	return strings.Join(out, ", ")
}

func TestRulesAreSetAndRemoved(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		equal(t, "at first", e.inForce(), "")
		began := time.Now().Add(-time.Second)
		first, err := e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.Stream("orders"), Who: "ada", Why: `no "paper"`}, 0)
		e.must(err)
		if first.Was || first.At.Before(began) || !first.Until.IsZero() || first.Generation < began.UnixMilli() {
			t.Errorf("%+v", first)
		}
		second, err := e.SetRule(e.ctx(), rules.Rule{Kind: rules.Block, Scope: rules.Stream("orders"), Who: "root", Why: ""}, time.Hour)
		e.must(err)
		if second.Was || second.Generation < first.Generation || second.Until.Sub(second.At) != time.Hour {
			t.Errorf("%+v after %+v", second, first)
		}
		equal(t, "both", e.inForce(), `block stream:orders root , pause stream:orders ada no "paper"`)
		third, err := e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.Stream("orders"), Who: "bob"}, 0)
		e.must(err)
		equal(t, "replaced", third.Was, true)
		equal(t, "replaced", e.inForce(), "block stream:orders root , pause stream:orders bob ")
		for _, was := range []bool{true, false} {
			gone := try(e.RemoveRule(e.ctx(), rules.Block, rules.Stream("orders"))).must(t)
			equal(t, "removed", gone.Was, was)
		}
		equal(t, "the pause stays", e.inForce(), "pause stream:orders bob ")
	})
}

// Pauses and blocks stand under two keys. A worker of an earlier release reads only the pauses,
// where it finds a copy of each block; the blocks that it sets hold, and can be removed.
func TestPausesAndBlocksStandUnderTwoKeys(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		try(e.SetRule(e.ctx(), rules.Rule{Kind: rules.Block, Scope: rules.App(), Who: "root"}, time.Hour)).must(t)
		equal(t, "a block of its own", e.raw.HExists(e.ctx(), "__block:example", "block app").Val(), true)
		seen, err := rules.Parse(map[string]string{"block app": strings.Replace(e.raw.HGet(e.ctx(), "__rules:example", "block app").Val(), `"copy":true`, `"copy":false`, 1)})
		if err != nil || len(seen.Rules) != 1 || seen.Rules[0].Who != "root" || seen.Rules[0].Until.IsZero() {
			t.Errorf("an earlier release sees %+v, %v", seen.Rules, err)
		}
		equal(t, "told once", e.inForce(), "block app root ")
		gone := try(e.RemoveRule(e.ctx(), rules.Block, rules.App())).must(t)
		equal(t, "was", gone.Was, true)
		equal(t, "no copy", e.raw.HExists(e.ctx(), "__rules:example", "block app").Val(), false)

		e.must(e.raw.HSet(e.ctx(), "__rules:example", "block stream:a", `{"v":1,"who":"root","why":"","at":1,"until":0}`).Err())
		equal(t, "of an earlier release", e.inForce(), "block stream:a root ")
		gone = try(e.RemoveRule(e.ctx(), rules.Block, rules.Stream("a"))).must(t)
		equal(t, "was of an earlier release", gone.Was, true)
		equal(t, "removed", e.inForce(), "")
	})
}

// A rule that has ended is not in force, and the next change removes it.
func TestRulesEndByThemselves(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		_, err := e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.App(), Who: "ada"}, time.Millisecond)
		e.must(err)
		redistest.Eventually(t, "the end", func() bool { return e.inForce() == "" })
		equal(t, "still stored", e.raw.HExists(e.ctx(), "__rules:example", "pause app").Val(), true)
		_, err = e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.Stream("a"), Who: "ada"}, time.Hour)
		e.must(err)
		equal(t, "stored", len(e.raw.HKeys(e.ctx(), "__rules:example").Val()), 2) // the rule and the generation
	})
}

// Workers compare generations, so none may come twice, even after everything was deleted.
func TestTheGenerationOfRulesGrowsForEver(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		last := int64(0)
		for range 5 {
			c := try(e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.App()}, 0)).must(t)
			if c.Generation <= last {
				t.Errorf("generation %d after %d", c.Generation, last)
			}
			last = c.Generation
		}
		e.must(e.raw.HSet(e.ctx(), "__rules:example", "generation", last+1_000_000).Err())
		c := try(e.RemoveRule(e.ctx(), rules.Pause, rules.App())).must(t)
		equal(t, "ahead of the clock", c.Generation, last+1_000_001)
		e.must(e.raw.FlushAll(e.ctx()).Err())
		redistest.Eventually(t, "a later moment", func() bool { return time.Now().UnixMilli() > last+5 })
		c = try(e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.App()}, 0)).must(t)
		if c.Generation <= last {
			t.Errorf("generation %d after %d and a flush", c.Generation, last)
		}
	})
}

func TestAChangeOfRulesIsAnnounced(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		try(e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.App()}, 0)).must(t)
		messages := e.raw.XRange(e.ctx(), "__ctrl:example", "-", "+").Val()
		equal(t, "messages", len(messages), 1)
		equal(t, "kind", ControlKind(redisconn.Entry{ID: messages[0].ID, Values: messages[0].Values}), KindRules)
		equal(t, "another version", ControlKind(redisconn.Entry{Values: map[string]any{"v": "2", "kind": "rules"}}), "")
	})
}

// If one of the keys is wrong, nothing is written.
func TestRulesInAWrongKeyAreAnError(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(e.raw.Set(e.ctx(), "__ctrl:example", "x", 0).Err())
		_, err := e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.App()}, 0)
		if !errors.Is(err, redisconn.ErrWrongType) || !strings.Contains(err.Error(), "__rules:example") {
			t.Errorf("control stream: %v", err)
		}
		equal(t, "nothing stored", e.raw.Exists(e.ctx(), "__rules:example").Val(), 0)
		e.must(e.raw.Set(e.ctx(), "__rules:example", "x", 0).Err())
		if _, _, err := e.Rules(e.ctx()); !errors.Is(err, redisconn.ErrWrongType) {
			t.Errorf("rules: %v", err)
		}
		got := e.refresh()
		equal(t, "leases do not depend on it", got.Rules, rules.Generations{Pauses: -1})
		e.must(e.raw.Del(e.ctx(), "__rules:example").Err())
		e.must(e.raw.HSet(e.ctx(), "__rules:example", "pause app", `{"v":2}`).Err())
		if _, _, err := e.Rules(e.ctx()); !errors.Is(err, rules.ErrInvalid) || redisconn.Unavailable(err) {
			t.Errorf("another version: %v", err)
		}
	})
}

// Operators need a pause most when the memory is full.
func TestRulesCanBeSetWhenTheMemoryIsFull(t *testing.T) {
	e := realEnv(t)
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
	if err := e.raw.Set(e.ctx(), "x", "y", 0).Err(); err == nil {
		t.Fatal("the memory is not full")
	}
	try(e.SetRule(e.ctx(), rules.Rule{Kind: rules.Pause, Scope: rules.App(), Who: "ada"}, 0)).must(t)
	equal(t, "in force", e.inForce(), "pause app ada ")
	e.must(e.Unlock(e.ctx(), e.Partition("s", "p", 0), tenure(alice, 1)))
	_, err := e.Refresh(e.ctx(), Heartbeat{Key: "beat", Expiry: time.Minute, Membership: "memb", Info: HeartbeatInfo{Rules: rules.Generations{Pauses: 9, Blocks: 8}}}, nil)
	e.must(err)
	equal(t, "the heartbeat tells", ParseHeartbeat(e.raw.Get(e.ctx(), "beat").Val()).Rules, rules.Generations{Pauses: 9, Blocks: 8})
}

func TestHeartbeatsTell(t *testing.T) {
	since := time.UnixMilli(1767225600123).UTC()
	b := ParseHeartbeat(HeartbeatInfo{Rules: rules.Generations{Pauses: 12, Blocks: 3}, Running: map[int]time.Time{3: since}}.Encode())
	if b.Rules != (rules.Generations{Pauses: 12, Blocks: 3}) || len(b.Running) != 1 || !b.Running[3].Equal(since) {
		t.Errorf("%+v", b)
	}
	if b := ParseHeartbeat(`{"v":1,"rules":5}`); b.Rules != (rules.Generations{Pauses: 5, Blocks: -1}) {
		t.Errorf("a heartbeat of an earlier release gives %+v", b)
	}
	for _, other := range []string{"", "1", "x", `{"v":2,"rules":5}`} {
		if b := ParseHeartbeat(other); b.Rules != (rules.Generations{}) || len(b.Running) != 0 {
			t.Errorf("%q gives %+v", other, b)
		}
	}
}

// Executors that are alive or hold a lock are asked whether rules are in full effect.
func TestHoldouts(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		who := func() string {
			t.Helper()
			hs, err := e.NotPausedYet(e.ctx(), "orders", "printer", []int{0, 1}, time.Now(), func(g rules.Generations) bool { return g.Pauses == 100 }, nil)
			e.must(err)
			var out []string
			for _, h := range hs {
				out = append(out, h.String())
			}
			return strings.Join(out, ", ")
		}
		beat := func(executor string, generation int64) {
			t.Helper()
			_, err := e.Refresh(e.ctx(), Heartbeat{Key: e.keys.Beat("orders", "printer", executor), Expiry: time.Minute, Membership: "memb", Info: HeartbeatInfo{Rules: rules.Generations{Pauses: generation}}}, nil)
			e.must(err)
		}
		equal(t, "nobody", who(), "")
		g := rebalance.Group{}.Join(alice, rebalance.Executor{Worker: "w1", Expiry: time.Second}, 2, "").
			Join(bob, rebalance.Executor{Worker: "w2", Expiry: time.Second}, 2, "")
		try(e.Group("orders", "printer").Swap(e.ctx(), nil, g.Encode())).must(t)
		const silent = " (no heartbeat; its lease may last)"
		equal(t, "members without locks and heartbeats", who(), "orders/printer on w1"+silent+", orders/printer on w2"+silent)
		beat(alice, 99)
		beat(bob, 100)
		equal(t, "a member that is behind", who(), "orders/printer on w1")
		e.lock(e.Partition("orders", "printer", 1), tenure(alice, 1))
		e.lock(e.Partition("orders", "printer", 0), tenure(bob, 1))
		equal(t, "with a lock", who(), "orders/printer on w1 (partitions 1)")
		e.must(e.raw.Del(e.ctx(), e.keys.Beat("orders", "printer", alice)).Err())
		equal(t, "without a heartbeat", who(), "orders/printer on w1 (partitions 1)")
		e.must(e.Unlock(e.ctx(), e.Partition("orders", "printer", 1), tenure(alice, 1)))
		equal(t, "its lock is gone", who(), "orders/printer on w1"+silent)
		try(e.Group("orders", "printer").Swap(e.ctx(), g.Encode(), g.Leave("", alice).Encode())).must(t)
		equal(t, "it is no member any more", who(), "")
		e.lock(e.Partition("orders", "printer", 1), tenure(carol, 1))
		equal(t, "a lock of no member", who(), "orders/printer on "+carol+" (partitions 1)")
		beat(carol, 101)
		equal(t, "that tells of a generation that a failover forgot", who(), "orders/printer on "+carol+" (partitions 1)")
		beat(carol, 100)
		equal(t, "that has come as far", who(), "")
	})
}

// The clock is set forward, and another worker takes over at once: the lease of the owner before holds.
func TestTheOwnerBeforeIsWaitedFor(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		waits := func(what string, later time.Duration, want ...string) {
			t.Helper()
			now := try(e.raw.Time(e.ctx()).Result()).must(t).Add(later)
			var got []string
			for _, h := range try(e.NotPausedYet(e.ctx(), "orders", "printer", []int{0}, now, func(g rules.Generations) bool { return g.Pauses == 100 }, nil)).must(t) {
				got = append(got, fmt.Sprint(h.Executor, " ", h.Silent, " ", h.Expiry))
			}
			equal(t, what, strings.Join(got, ", "), strings.Join(want, ", "))
		}
		tell := func(executor string) {
			t.Helper()
			try(e.Refresh(e.ctx(), Heartbeat{Key: e.keys.Beat("orders", "printer", executor), Expiry: time.Minute, Membership: "memb", Info: HeartbeatInfo{Rules: rules.Generations{Pauses: 100}}}, nil)).must(t)
		}
		e.own(p, Claim{Executor: alice, Number: 1, Expiry: 30 * time.Second})
		e.own(p, tenure(bob, 1))
		tell(bob)
		waits("right after the takeover", 0, alice+" true 30s")
		waits("when its lease has ended", 30*time.Second)
		e.must(e.Unlock(e.ctx(), p, tenure(bob, 1)))
		e.own(p, tenure(carol, 1))
		tell(carol)
		waits("an owner that released came between", 0, alice+" true 30s")
		tell(alice)
		waits("it has come as far", 0)
	})
}

// A user that can read the rules but not write them can run workers, and neither pause nor resume.
func TestRulesAreGuardedByRights(t *testing.T) {
	e := realEnv(t)
	try(e.SetRule(e.ctx(), rules.Rule{Kind: rules.Block, Scope: rules.App(), Who: "root"}, 0)).must(t)
	e.must(e.raw.Do(e.ctx(), "ACL", "SETUSER", "shop", "on", ">secret", "+@all", "-@dangerous", "~__*", "resetkeys",
		"~__strm:*", "~__own:*", "~__lock:*", "~__memb:*", "~__beat:*", "~__leader:*", "~__meta:*", "~__ctrl:*", "%R~__rules:*", "%R~__block:*").Err())
	c := try(Open(redisconn.Options{URL: "redis://shop:secret@" + e.addr, Keys: e.keys})).must(t)
	defer c.Close()
	set, _, err := c.Rules(e.ctx())
	if err != nil || len(set.Rules) != 1 {
		t.Errorf("to read: %+v, %v", set, err)
	}
	if got, err := c.Refresh(e.ctx(), Heartbeat{Key: "__beat:x", Expiry: time.Second, Membership: "__memb:x"}, nil); err != nil || got.Rules != set.Generations || got.Rules.Blocks == 0 {
		t.Errorf("to refresh: %+v, %v", got, err)
	}
	for what, err := range map[string]error{
		"block":   second(c.SetRule(e.ctx(), rules.Rule{Kind: rules.Block, Scope: rules.App()}, 0)),
		"unblock": second(c.RemoveRule(e.ctx(), rules.Block, rules.App())),
	} {
		if err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("to %s: %v", what, err)
		}
	}
	equal(t, "still in force", e.inForce(), "block app root ")
}

func second[T any](_ T, err error) error { return err }
