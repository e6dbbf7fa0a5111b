package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func (e *env) letters(p Partition) []DeadLetter {
	e.t.Helper()
	letters := try(e.DeadLetters(e.ctx(), p, "", 1000)).must(e.t)
	return letters
}

func TestBury(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, parked := range []bool{false, true} {
			t.Run(fmt.Sprint("parked ", parked), func(t *testing.T) {
				e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}
				p := e.Partition("orders", "printer", i)
				entry := e.ready(p, parked)
				entry.Values["__key"], entry.Values["raw"] = "ada", "\x00\xff"
				first := time.UnixMilli(1767225600123).UTC()
				want := DeadLetter{
					Entry: entry, Partition: i, Key: "ada", Attempts: 3, First: first, Last: first.Add(time.Second),
					Error: strings.Repeat("no ink\n", 3), Reason: "failed", Epoch: 17,
				}
				for range 2 {
					e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), want))
					letters := e.letters(p)
					if len(letters) != 1 {
						t.Fatalf("%d dead letters: %v", len(letters), letters)
					}
					want.ID = letters[0].ID
					equal(t, "dead letter", letters[0], want)
					equal(t, "pending", e.pending(p, alice), 1)
					equal(t, "parked", e.raw.Exists(e.ctx(), p.Parked, p.Retry).Val(), 0)
				}
			})
		}
	})
}

// An event that was acked was processed, so it becomes no dead letter.
func TestBuryOfWhatIsDone(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entry := e.ready(p, true)
		e.must(e.DoneRetry(e.ctx(), p, me, entry.ID))
		e.must(e.DeadLetter(e.ctx(), p, me, DeadLetter{Entry: entry}))
		equal(t, "dead letters", len(e.letters(p)), 0)
	})
}

func TestBuryWithoutAFailure(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: e.ready(p, false), Reason: "decode"}))
		got := e.letters(p)[0]
		if !got.First.IsZero() || !got.Last.IsZero() || got.Attempts != 0 || got.Reason != "decode" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestBuryOfAnEventWithVeryManyFields(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		entry := e.ready(p, false)
		for i := range fieldsPerCall {
			entry.Values[fmt.Sprint("f", i)] = fmt.Sprint("v", i)
		}
		e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: entry}))
		equal(t, "fields", fmt.Sprint(e.letters(p)[0].Entry.Values), fmt.Sprint(entry.Values))
	})
}

func TestDeadLettersPageByPage(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		entries := e.begin(p, 5)
		for _, entry := range entries {
			e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: entry}))
		}
		e.must(e.raw.XAdd(e.ctx(), addArgs(p.Dead, "by", "hand")).Err())
		var got []string
		for after := ""; ; {
			page := try(e.DeadLetters(e.ctx(), p, after, 2)).must(t)
			if len(page) == 0 {
				break
			}
			for _, d := range page {
				got, after = append(got, d.Entry.ID), d.ID
			}
		}
		equal(t, "events", got, append(ids(entries), ""))
	})
}
