package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func addArgs(key string, values ...any) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: key, Values: values}
}

// poked returns the number of operators' changes that a refresh reports to alice.
func (e *env) poked(p Partition) int64 {
	e.t.Helper()
	got := e.refresh(LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "0-0", Read: -1})
	equal(e.t, "state", got.Leases[0].State, Ours)
	return got.Leases[0].OperatorVersion
}

// hints returns the hints in the processor's control stream.
func (e *env) hints(p Partition) (hints []Hint) {
	e.t.Helper()
	entries := try(e.raw.XRange(e.ctx(), e.keys.Control(p.Stream, p.Processor), "-", "+").Result()).must(e.t)
	for _, entry := range entries {
		if h, ok := ParseHint(entry); ok {
			hints = append(hints, h)
		}
	}
	return hints
}

func TestQuarantineLastsUntilItIsEnded(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, skip := range []bool{false, true} {
			p := e.Partition("orders", "printer", i)
			e.begin(p, 2)
			q := Quarantine{Reason: "no ink\n", Event: "1-1", Worker: "w1", At: 1767225600123}
			e.must(e.Quarantine(e.ctx(), p, tenure(alice, 1), q))
			e.must(e.Unlock(e.ctx(), p, tenure(alice, 1)))
			q.Version = 1
			pos := e.own(p, tenure(bob, 1))
			if pos.Quarantine == nil || *pos.Quarantine != q {
				t.Fatalf("takeover returned %v, want %v", pos.Quarantine, q)
			}
			e.own(p, tenure(alice, 1))
			equal(t, "poke", e.poked(p), 0)
			got, ok, err := e.ReleaseQuarantine(e.ctx(), p, skip)
			e.must(err)
			equal(t, "resumed", []any{got, ok}, []any{q, true})
			equal(t, "poke", e.poked(p), 1)
			equal(t, "hints", e.hints(p)[i:], []Hint{{HintPoke, i}})

			_, ok, err = e.ReleaseQuarantine(e.ctx(), p, skip)
			equal(t, "resumed again", []any{ok, err}, []any{false, nil})
			stored := try(e.Quarantined(e.ctx(), p)).must(t)
			pos = e.own(p, tenure(bob, 2))
			equal(t, "poke at the takeover", pos.OperatorVersion, 1)
			if pos.Quarantine != nil || stored != nil || (pos.Skip == "1-1") != skip {
				t.Errorf("left: %v, %v, skip %q", pos.Quarantine, stored, pos.Skip)
			}
		}
	})
}

// After a reset, an event that was to be skipped is processed like all others.
func TestResetForgetsWhatToSkip(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		e.begin(p, 2)
		e.must(e.Quarantine(e.ctx(), p, me, Quarantine{Reason: "no ink", Event: "1-1"}))
		_, _, err := e.ReleaseQuarantine(e.ctx(), p, true)
		e.must(err)
		equal(t, "skip", e.own(p, tenure(bob, 1)).Skip, "1-1")
		try(e.Reset(e.ctx(), p, tenure(bob, 1), "0-0")).must(t)
		equal(t, "skip after a reset", e.own(p, me).Skip, "")

		end := EndName("open", "ada\x00\xff", 7)
		e.must(e.Quarantine(e.ctx(), p, me, Quarantine{Reason: "no ink", Ending: end}))
		_, _, err = e.ReleaseQuarantine(e.ctx(), p, true)
		e.must(err)
		pos := e.own(p, tenure(bob, 1))
		equal(t, "skip of an end", []string{pos.Skip, pos.SkipEnd}, []string{"", end})
	})
}

func TestResumeWithoutAnEvent(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.own(p, tenure(alice, 1))
		e.must(e.Quarantine(e.ctx(), p, tenure(alice, 1), Quarantine{Reason: "no database"}))
		if _, ok, err := e.ReleaseQuarantine(e.ctx(), p, true); ok || !errors.Is(err, ErrNothingToSkip) {
			t.Errorf("got %v, %v", ok, err)
		}
		_, ok, err := e.ReleaseQuarantine(e.ctx(), p, false)
		equal(t, "resumed", []any{ok, err}, []any{true, nil})
	})
}

// A late request ends no later quarantine.
func TestResumeThatArrivesLate(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		e.own(p, me)
		e.must(e.Quarantine(e.ctx(), p, me, Quarantine{Reason: "first", Event: "1-1", At: 1}))
		seen := e.raw.HGet(e.ctx(), p.Own, "quarantine").Val()
		run := func(skip string, want int64) {
			t.Helper()
			n := try(resumeScript.Run(e.ctx(), e.NoRetry, []string{p.Own}, seen, skip).Int64()).must(t)
			equal(t, "reply", n, want)
		}
		run("1-1", 1)
		run("1-1", 1)                   // repeated
		run("", 1)                      // another worker's request for the same quarantine
		run("7-7", 0)                   // a request to skip something else
		equal(t, "poke", e.poked(p), 1) // only once
		e.must(e.Quarantine(e.ctx(), p, me, Quarantine{Reason: "second", Event: "1-1", At: 2}))
		run("1-1", 0)
		q := try(e.Quarantined(e.ctx(), p)).must(t)
		equal(t, "quarantine", q.Reason, "second")
	})
}

func TestQuarantineOfAnotherVersion(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.must(e.raw.HSet(e.ctx(), p.Own, "quarantine", `{"v":2}`).Err())
		e.lock(p, tenure(alice, 1))
		_, err := e.Takeover(e.ctx(), p, tenure(alice, 1), "", 0)
		_, _, err2 := e.ReleaseQuarantine(e.ctx(), p, false)
		_, err3 := e.Quarantined(e.ctx(), p)
		for _, err := range []error{err, err2, err3} {
			if err == nil || !strings.Contains(err.Error(), "stream orders partition 0") || !strings.Contains(err.Error(), "version 2") {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestOperatorsRetryAndDrop(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entries := e.begin(p, 6)
		for i, s := range []RetryState{{Attempts: 1, At: 9e12}, {Attempts: 2, Running: true, At: 9e12}, {Lane: "kx"}, {Attempts: 1, At: 9e12}, {Attempts: 1, At: 9e12}} {
			e.must(e.Park(e.ctx(), p, me, 0, parkings(entries[i:i+1], s)))
		}
		due := try(e.RetryNow(e.ctx(), p, []string{"1-1", "2-2", "3-3", "4-4", "9-9"})).must(t)
		equal(t, "due", due, []string{"1-1", "4-4"})
		var at []int64
		for _, s := range e.retries(p) {
			at = append(at, s.At)
		}
		equal(t, "at", at, []int64{1, 9e12, 0, 1, 9e12})
		equal(t, "poke", e.poked(p), 1)
		for _, want := range [][]string{{"1-1", "2-2"}, nil} {
			dropped := try(e.DropParked(e.ctx(), p, []string{"1-1", "2-2", "9-9"})).must(t)
			equal(t, "dropped", dropped, want)
			equal(t, "left", len(e.retries(p)), 3)
			equal(t, "left", e.raw.HLen(e.ctx(), p.Parked).Val(), 3)
		}
		equal(t, "hints", e.hints(p), []Hint{{HintPoke, 0}, {HintPoke, 0}, {HintPoke, 0}})
		ok, err := e.WriteRetry(e.ctx(), p, me, RetryState{ID: "2-2", Attempts: 2})
		equal(t, "write of a dropped event", []any{ok, err}, []any{false, nil})
		e.must(e.DeadLetter(e.ctx(), p, me, DeadLetter{Entry: entries[1]}))
		equal(t, "dead letters", len(e.letters(p)), 0)
	})
}

// A state that the owner has written meanwhile stays.
func TestAmendComparesTheState(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		e.must(e.Park(e.ctx(), p, me, 0, parkings(e.begin(p, 1), RetryState{Attempts: 1, At: 9e12})))
		old := e.raw.HGet(e.ctx(), p.Retry, "1-1").Val()
		try(e.WriteRetry(e.ctx(), p, me, RetryState{ID: "1-1", Attempts: 2, Running: true})).must(t)
		changed := try(e.amend(e.ctx(), p, []any{"1-1", old, "new", "2-2", old, "new"})).must(t)
		equal(t, "changed", changed, []int64{0, 0})
		equal(t, "states", e.retries(p), []RetryState{{ID: "1-1", Version: 1, Attempts: 2, Running: true}})
	})
}

func TestHints(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(e.Hint(e.ctx(), "orders", "printer", Hint{HintPoke, 3}))
		key := e.keys.Control("orders", "printer")
		e.must(e.raw.XAdd(e.ctx(), addArgs(key, "v", "1", "kind", "join", "partition", "1")).Err())
		e.must(e.raw.XAdd(e.ctx(), addArgs(key, "v", "2", "kind", "poke", "partition", "1")).Err())
		e.must(e.raw.XAdd(e.ctx(), addArgs(key, "v", "1", "kind", "poke", "partition", "x")).Err())
		equal(t, "hints", e.hints(e.Partition("orders", "printer", 0)), []Hint{{HintPoke, 3}})
	})
}
