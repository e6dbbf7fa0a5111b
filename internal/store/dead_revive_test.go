package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

func TestRevive(t *testing.T) {
	layouts(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		id := e.dead(p)
		log, poke := e.raw.XLen(e.ctx(), p.Log).Val(), e.raw.HGet(e.ctx(), p.Own, "poke").Val()
		for i, want := range []bool{true, false} {
			ok := try(e.Revive(e.ctx(), p, id, 1)).must(t)
			equal(t, fmt.Sprint("call ", i), ok, want)
		}
		states, _, err := e.Retries(e.ctx(), p)
		e.must(err)
		if len(states) != 1 || states[0].Counted() != 0 || states[0].Running || states[0].At != 0 || states[0].Lane != KeyLane("ada") || !states[0].HasKey("ada") || !states[0].Revived {
			t.Fatalf("parked %+v", states)
		}
		entry, there, err := e.Parked(e.ctx(), p, states[0].ID)
		e.must(err)
		equal(t, "parked", []any{there, len(entry.Values)}, []any{true, 1})
		equal(t, "dead letters", len(e.letters(p)), 0)
		equal(t, "entries", e.raw.XLen(e.ctx(), p.Log).Val(), log)
		if now := e.raw.HGet(e.ctx(), p.Own, "poke").Val(); now == poke {
			t.Errorf("poke is still %q: its owner would not notice", now)
		}
	})
}

// An event that the position is to pass again is not parked as well: by position it would count twice.
func TestWhatComesAgainIsNotRevived(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), byPosition(alice)
		e.series(p.Log, 3)
		e.own(p, me)
		for _, id := range []string{"1-2", "1-3"} {
			e.must(e.DeadLetter(e.ctx(), p, me, DeadLetter{Entry: redisconn.Entry{ID: id, Values: map[string]any{"data": "x"}}}))
		}
		letters := e.letters(p)
		equal(t, "revived", try(e.Revive(e.ctx(), p, letters[0].ID, 0)).must(t), true)
		try(e.Reset(e.ctx(), p, me, "0-0")).must(t)
		for range 2 { // before and behind the next takeover
			if _, err := e.Revive(e.ctx(), p, letters[1].ID, 0); err == nil || !strings.Contains(err.Error(), "comes again") {
				t.Errorf("of an event that comes again: %v", err)
			}
			e.own(p, byPosition(bob))
		}
		equal(t, "dead letters", len(e.letters(p)), 1)
	})
}

// Writes from before the revival that arrive late change nothing.
func TestWhatComesLateChangesNoRevivedEvent(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entry := e.ready(p, true)
		last := RetryState{ID: entry.ID, Lane: "k", Attempts: 3, Running: true}
		letter := DeadLetter{Entry: entry, Attempts: 3, Begun: 3}
		try(e.WriteRetry(e.ctx(), p, me, last)).must(t)
		e.must(e.DeadLetter(e.ctx(), p, me, letter))
		try(e.Revive(e.ctx(), p, e.letters(p)[0].ID, 0)).must(t)
		last.Running, last.At = false, 1<<40
		try(e.WriteRetry(e.ctx(), p, me, last)).must(t)
		e.must(e.DeadLetter(e.ctx(), p, me, letter))
		states, _, err := e.Retries(e.ctx(), p)
		e.must(err)
		if len(states) != 1 || states[0].Counted() != 0 || states[0].At != 0 {
			t.Errorf("parked %+v", states)
		}
		equal(t, "dead letters", len(e.letters(p)), 0)
	})
}

func TestReviveRefuses(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		id := e.dead(p)
		e.raw.HSet(e.ctx(), p.Parked, "7-0", "x")
		e.raw.HSet(e.ctx(), p.Retry, "7-0", `{"v":1,"lane":"k","n":1}`)
		_, err := e.Revive(e.ctx(), p, id, 1)
		if !errors.Is(err, ErrFull) {
			t.Errorf("full: %v", err)
		}
		entry := e.letters(p)[0].Entry.ID
		e.raw.HSet(e.ctx(), p.Retry, entry, `{"v":1,"lane":"k","n":1}`)
		if _, err = e.Revive(e.ctx(), p, id, 0); err == nil {
			t.Error("replaced a parked event of the same ID")
		}
		e.raw.HDel(e.ctx(), p.Retry, entry)
		bare := e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: p.Dead, Values: []any{"__dead.id", "5-0"}}).Val()
		if _, err = e.Revive(e.ctx(), p, bare, 0); !errors.Is(err, ErrNoEvent) {
			t.Errorf("without an event: %v", err)
		}
		e.raw.Del(e.ctx(), p.Own)
		e.raw.Set(e.ctx(), p.Own, "x", 0)
		if _, err = e.Revive(e.ctx(), p, id, 0); !errors.Is(err, redisconn.ErrWrongType) {
			t.Errorf("wrong type: %v", err)
		}
		equal(t, "dead letters", len(e.letters(p)), 2)
		equal(t, "parked", e.raw.HLen(e.ctx(), p.Parked).Val(), 1)
	})
}

// Whichever request is lost, the event is a dead letter or parked, and a repetition completes it.
func TestReviveWhoseReplyIsLost(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		id := e.dead(p)
		for _, action := range []faultproxy.Action{faultproxy.CloseBefore, faultproxy.CloseAfter} {
			proxy, through := e.behindProxy()
			for _, command := range []string{"EVAL", "EVALSHA"} {
				proxy.On(command, 1).Do(action)
			}
			ok := try(through.Revive(e.ctx(), p, id, 0)).must(t)
			equal(t, "revived", ok, true)
			states, _, err := e.Retries(e.ctx(), p)
			e.must(err)
			equal(t, "parked, dead", []int{len(states), len(e.letters(p))}, []int{1, 0})
			e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: redisconn.Entry{ID: states[0].ID, Values: map[string]any{"data": "x"}}, Key: "ada"}))
			id = e.letters(p)[0].ID
		}
	})
}
