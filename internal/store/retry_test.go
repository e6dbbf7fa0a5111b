package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

// begin appends entries 1-1, 2-2, … and lets alice, ownership 1, read them.
func (e *env) begin(p Partition, n int) []redisconn.Entry {
	e.t.Helper()
	for i := range n {
		e.add(p.Log, fmt.Sprintf("%d-%d", i+1, i+1))
	}
	e.own(p, tenure(alice, 1))
	r := e.NewReader()
	defer r.Close()
	got := try(r.Read(e.ctx(), GroupName(p.Processor, alice), "c", []string{p.Log}, n, 0)).must(e.t)
	return got[0].Entries
}

// snapshot returns all that is stored of a partition, but for the remaining life of its lock.
func (e *env) snapshot(p Partition) string {
	e.t.Helper()
	var pending []string
	for group := range e.groups(p.Log) {
		pending = append(pending, fmt.Sprint(group, e.raw.XPending(e.ctx(), p.Log, group).Val()))
	}
	return fmt.Sprint(e.raw.XRange(e.ctx(), p.Log, "-", "+").Val(), pending, e.raw.Get(e.ctx(), p.Lock).Val(),
		e.raw.HGetAll(e.ctx(), p.Own).Val(), e.raw.HGetAll(e.ctx(), p.Parked).Val(), e.raw.HGetAll(e.ctx(), p.Retry).Val(),
		e.raw.XRange(e.ctx(), p.Dead, "-", "+").Val())
}

func (e *env) pending(p Partition, executor string) int64 {
	e.t.Helper()
	v := try(e.raw.XPending(e.ctx(), p.Log, GroupName(p.Processor, executor)).Result()).must(e.t)
	return v.Count
}

func (e *env) retries(p Partition) []RetryState {
	e.t.Helper()
	states, now, err := e.Retries(e.ctx(), p)
	e.must(err)
	if d := time.Since(now); d < -time.Minute || d > time.Minute {
		e.t.Errorf("the server's clock is %v", now)
	}
	return states
}

func parkings(entries []redisconn.Entry, s RetryState) (ps []Parking) {
	for _, entry := range entries {
		s.ID = entry.ID
		ps = append(ps, Parking{Entry: entry, State: s})
	}
	return ps
}

func TestParkMovesEvents(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entries := e.begin(p, 12)
		entries[1].Values = map[string]any{"b": "\x00\xff:", "a": "", "": "5:x", "日本": "語"}
		s := RetryState{Lane: "kada", Key: "ada", Attempts: 1, First: 1767225600123, Last: 1767225600124, At: 1767225601000, Error: "no \"ink\"\n\xff"}
		for range 2 { // a repetition changes nothing
			e.must(e.Park(e.ctx(), p, me, 0, parkings(entries[1:12], s)))
			equal(t, "pending", e.pending(p, alice), 1)
			states := e.retries(p)
			equal(t, "parked", len(states), 11)
			for i, got := range states {
				want := s
				want.ID, want.Version, want.Error = entries[i+1].ID, 1, "no \"ink\"\n\ufffd"
				equal(t, "state", got, want)
			}
			for _, want := range entries[1:12] {
				got, ok, err := e.Parked(e.ctx(), p, want.ID)
				e.must(err)
				equal(t, "parked event", []any{got, ok}, []any{want, true})
			}
		}
		_, ok, err := e.Parked(e.ctx(), p, "1-1")
		equal(t, "an event that is not parked", []any{ok, err}, []any{false, nil})
		e.must(e.Park(e.ctx(), p, me, 1, nil))
	})
}

func TestParkIsAllOrNothing(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entries := e.begin(p, 5)
		e.must(e.Park(e.ctx(), p, me, 3, parkings(entries[:2], RetryState{})))
		before := e.snapshot(p)
		if err := e.Park(e.ctx(), p, me, 3, parkings(entries[2:4], RetryState{})); !errors.Is(err, ErrFull) || errors.Is(err, redisconn.ErrUnknownOutcome) {
			t.Errorf("got %v, want ErrFull", err)
		}
		equal(t, "after a park that did not fit", e.snapshot(p), before)
		e.must(e.Park(e.ctx(), p, me, 3, parkings(entries[1:3], RetryState{}))) // one of them is parked already
		equal(t, "parked", len(e.retries(p)), 3)
		e.must(e.Park(e.ctx(), p, me, 3, parkings(entries[:3], RetryState{}))) // full, and all of them are parked
		equal(t, "pending", e.pending(p, alice), 2)
	})
}

// A park that is repeated late does not bring back what was done meanwhile.
func TestParkThatArrivesLate(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entries := e.begin(p, 3)
		e.ack(p, alice, "3-3")
		e.must(e.Park(e.ctx(), p, me, 0, parkings(entries, RetryState{Attempts: 1})))
		equal(t, "parked", len(e.retries(p)), 2)
		try(e.WriteRetry(e.ctx(), p, me, RetryState{ID: "1-1", Attempts: 2, Running: true})).must(t)
		e.must(e.DoneRetry(e.ctx(), p, me, "2-2"))
		before := e.snapshot(p)
		e.must(e.Park(e.ctx(), p, me, 0, parkings(entries, RetryState{Attempts: 1})))
		equal(t, "after a late park", e.snapshot(p), before)
	})
}

func TestAttemptsAreWrittenInOrder(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		e.must(e.Park(e.ctx(), p, me, 0, parkings(e.begin(p, 1), RetryState{Attempts: 1, At: 5})))
		write := func(s RetryState, want bool) {
			t.Helper()
			s.ID = "1-1"
			ok := try(e.WriteRetry(e.ctx(), p, me, s)).must(t)
			equal(t, "ok", ok, want)
		}
		running := RetryState{Attempts: 2, Running: true, Alone: true, Lane: "k"}
		failed := RetryState{Attempts: 2, Lane: "k", At: 77}
		write(running, true)
		write(failed, true)
		write(running, true) // late
		equal(t, "after a late write", e.retries(p), []RetryState{{ID: "1-1", Version: 1, Attempts: 2, Lane: "k", At: 77}})
		failed.At = 99 // of the same attempt
		write(failed, true)
		equal(t, "after another word on the same attempt", e.retries(p)[0].At, 99)
		write(RetryState{Attempts: 3, Running: true}, true)
		write(failed, true)
		equal(t, "the third", e.retries(p), []RetryState{{ID: "1-1", Version: 1, Attempts: 3, Running: true}})
		for range 2 {
			e.must(e.DoneRetry(e.ctx(), p, me, "1-1"))
		}
		write(RetryState{Attempts: 3}, false)
		equal(t, "settled", len(e.retries(p)), 0)
		equal(t, "keys left", e.raw.Exists(e.ctx(), p.Parked, p.Retry).Val(), 0)
	})
}

func TestRetriesAreInOrderOfTheirIDs(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entries := e.begin(p, 1500)
		e.must(e.Park(e.ctx(), p, me, 0, parkings(entries, RetryState{})))
		var got []string
		for _, s := range e.retries(p) {
			got = append(got, s.ID)
		}
		equal(t, "order", got, ids(entries))
	})
}

func TestStatesThatCannotBeRead(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, text := range []string{"nothing", `{"n":1}`, `{"v":2,"n":1}`} {
			p := e.Partition("orders", "printer", i)
			e.must(e.raw.HSet(e.ctx(), p.Retry, "1-1", text).Err())
			if _, _, err := e.Retries(e.ctx(), p); err == nil || !strings.Contains(err.Error(), "event 1-1") || !strings.Contains(err.Error(), fmt.Sprint("stream orders partition ", i)) {
				t.Errorf("%s: got %v", text, err)
			}
			e.must(e.raw.HSet(e.ctx(), p.Parked, "1-1", "3:ab").Err())
			if _, _, err := e.Parked(e.ctx(), p, "1-1"); err == nil {
				t.Error("read fields that were cut off")
			}
		}
	})
}

func TestErrorsAreCut(t *testing.T) {
	long := strings.Repeat("x", errorBytes-1) + "日本"
	if got := cut(long); len(got) > errorBytes+len("…") || !strings.HasSuffix(got, "x…") {
		t.Errorf("%d bytes, ending with %q", len(got), got[len(got)-8:])
	}
	equal(t, "short", cut("short"), "short")
}

// written lists what each script of an ownership writes; the event is 1-1.
var written = []struct {
	name  string
	group bool // it needs the ownership's group
	run   func(e *env, p Partition, t Claim, entry redisconn.Entry) error
}{
	{"park", true, func(e *env, p Partition, t Claim, entry redisconn.Entry) error {
		return e.Park(e.ctx(), p, t, 5, parkings([]redisconn.Entry{entry}, RetryState{Attempts: 1}))
	}},
	{"attempt", false, func(e *env, p Partition, t Claim, entry redisconn.Entry) error {
		_, err := e.WriteRetry(e.ctx(), p, t, RetryState{ID: entry.ID, Attempts: 2, Running: true})
		return err
	}},
	{"settle", false, func(e *env, p Partition, t Claim, entry redisconn.Entry) error {
		return e.DoneRetry(e.ctx(), p, t, entry.ID)
	}},
	{"bury", true, func(e *env, p Partition, t Claim, entry redisconn.Entry) error {
		return e.DeadLetter(e.ctx(), p, t, DeadLetter{Entry: entry, Attempts: 3})
	}},
	{"quarantine", false, func(e *env, p Partition, t Claim, entry redisconn.Entry) error {
		return e.Quarantine(e.ctx(), p, t, Quarantine{Reason: "bad", Event: entry.ID, At: 5})
	}},
}

// ready makes entry 1-1 pending, and parks it if parked is set.
func (e *env) ready(p Partition, parked bool) redisconn.Entry {
	e.t.Helper()
	entry := e.begin(p, 2)[0]
	if parked {
		e.must(e.Park(e.ctx(), p, tenure(alice, 1), 0, parkings([]redisconn.Entry{entry}, RetryState{Attempts: 1})))
	}
	return entry
}

func TestWritesOfATenureAreFenced(t *testing.T) {
	ends := []struct {
		name  string
		group bool // only the group is gone
		do    func(e *env, p Partition)
	}{
		{"lock gone", false, func(e *env, p Partition) { e.raw.Del(e.ctx(), p.Lock) }},
		{"lock of another", false, func(e *env, p Partition) { e.own(p, tenure(bob, 1)) }},
		{"later ownership", false, func(e *env, p Partition) { e.own(p, tenure(alice, 2)) }},
		{"group gone", true, func(e *env, p Partition) { e.raw.XGroupDestroy(e.ctx(), p.Log, "printer@"+alice) }},
	}
	both(t, func(t *testing.T, e *env) {
		for i, w := range written {
			for j, end := range ends {
				if end.group && !w.group {
					continue
				}
				for k, parked := range []bool{false, true} {
					t.Run(fmt.Sprint(w.name, " ", end.name, " ", parked), func(t *testing.T) {
						e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}
						p := e.Partition("orders", "printer", i*100+j*10+k)
						entry := e.ready(p, parked)
						end.do(e, p)
						before := e.snapshot(p)
						if err := w.run(e, p, tenure(alice, 1), entry); !errors.Is(err, ErrFenced) {
							t.Errorf("got %v, want ErrFenced", err)
						}
						equal(t, "stored", e.snapshot(p), before)
					})
				}
			}
		}
	})
}

// A request that is lost before or after its execution is repeated, with the same result.
func TestWritesOfATenureAreRepeated(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		proxy := faultproxy.Start(t, e.addr)
		hurt := newEnv(t, proxy.Addr(), e.real)
		for i, w := range written {
			for j, action := range []faultproxy.Action{faultproxy.CloseBefore, faultproxy.CloseAfter} {
				for k, parked := range []bool{false, true} {
					t.Run(fmt.Sprint(w.name, " ", j, " ", parked), func(t *testing.T) {
						e, hurt := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}, &env{Client: hurt.Client, t: t, raw: e.raw}
						want, p := e.Partition("orders", "printer", i*100+j*10+k), e.Partition("returns", "printer", i*100+j*10+k)
						entry := e.ready(want, parked)
						e.must(w.run(hurt, want, tenure(alice, 1), entry)) // loads the script
						entry = e.ready(p, parked)
						rule := proxy.On("EVALSHA", 1).Do(action)
						e.must(w.run(hurt, p, tenure(alice, 1), entry))
						rule.Wait(t)
						equal(t, "stored", e.left(p), e.left(want))
						e.must(w.run(hurt, p, tenure(alice, 1), entry))
						equal(t, "stored after another repetition", e.left(p), e.left(want))
					})
				}
			}
		}
	})
}

// left returns what a write left behind, without what differs between partitions.
func (e *env) left(p Partition) string {
	e.t.Helper()
	var dead []any
	for _, entry := range e.raw.XRange(e.ctx(), p.Dead, "-", "+").Val() {
		delete(entry.Values, deadPartition)
		dead = append(dead, entry.Values)
	}
	return fmt.Sprint(e.pending(p, alice), e.raw.HGetAll(e.ctx(), p.Parked).Val(), e.raw.HGetAll(e.ctx(), p.Retry).Val(),
		dead, e.raw.HGet(e.ctx(), p.Own, "quarantine").Val())
}

// A key of a wrong type is noticed before anything is written.
func TestWritesOfATenureBesideAWrongType(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, w := range written {
			for j := range 4 {
				p := e.Partition("orders", "printer", 10*i+j)
				entry := e.ready(p, false)
				key := []string{p.Parked, p.Retry, p.Dead, p.Own}[j]
				e.must(e.raw.Del(e.ctx(), key).Err())
				e.must(e.raw.Set(e.ctx(), key, "x", 0).Err())
				before := e.snapshot(p)
				if err := w.run(e, p, tenure(alice, 1), entry); err != nil {
					if !errors.Is(err, redisconn.ErrWrongType) {
						t.Errorf("%s: got %v, want ErrWrongType", w.name, err)
					}
					equal(t, w.name, e.snapshot(p), before)
				}
			}
		}
	})
}

// On a full server, writes that make room in the end succeed; a replay, which needs more, does not.
func TestAsideOnAServerWhoseMemoryIsFull(t *testing.T) {
	e := realEnv(t)
	letter := e.Partition("orders", "printer", 99)
	dead := e.dead(letter)
	replay := func() error {
		_, _, err := e.Replay(e.ctx(), Replay{From: letter, ID: dead, Stream: "orders", Partition: 99})
		return err
	}
	for i, w := range written {
		for j, parked := range []bool{false, true} {
			p := e.Partition("orders", "printer", 10*i+j)
			entry := e.ready(p, parked)
			e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
			if err := w.run(e, p, tenure(alice, 1), entry); err != nil {
				t.Errorf("%s, parked %v: %v", w.name, parked, err)
			}
			if err := replay(); !redisconn.ReplyHas(err, "OOM") {
				t.Errorf("replay: %v", err)
			}
			e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "0").Err())
		}
	}
	p := e.Partition("orders", "printer", 98)
	entries := e.begin(p, 2)
	e.must(e.Park(e.ctx(), p, tenure(alice, 1), 0, parkings(entries, RetryState{Attempts: 1, At: 9e12})))
	e.must(e.Quarantine(e.ctx(), p, tenure(alice, 1), Quarantine{Reason: "no ink"}))
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
	due := try(e.RetryNow(e.ctx(), p, ids(entries))).must(t)
	equal(t, "due", due, ids(entries))
	try(e.DropParked(e.ctx(), p, ids(entries))).must(t)
	_, ok, err := e.ReleaseQuarantine(e.ctx(), p, false)
	equal(t, "resumed", []any{ok, err}, []any{true, nil})
	e.must(e.DropDead(e.ctx(), letter, []string{dead}))
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "0").Err())
}

func TestAnAttemptBeginsInOneRoundTrip(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.add(p.Log, "1-1")
		owner := tenure(alice, 1)
		e.own(p, owner)
		e.read(p, alice, 1)
		one := redisconn.Entry{ID: "1-1", Values: map[string]any{"data": "\x00\xff", "b": ""}}
		s := RetryState{ID: "1-1", Lane: "ka", Attempts: 1}
		e.must(e.Park(e.ctx(), p, owner, 0, []Parking{{Entry: one, State: s}}))
		s.Attempts, s.Running = 2, true
		for range 2 { // a repetition changes nothing
			got, ok, err := e.BeginRetry(e.ctx(), p, owner, s)
			e.must(err)
			equal(t, "event", []any{got.ID, got.Values, ok}, []any{one.ID, one.Values, true})
			states, _, err := e.Retries(e.ctx(), p)
			e.must(err)
			equal(t, "attempts", []any{len(states), states[0].Attempts, states[0].Running}, []any{1, 2, true})
		}
		if _, _, err := e.BeginRetry(e.ctx(), p, tenure(bob, 1), s); !errors.Is(err, ErrFenced) {
			t.Errorf("another ownership: %v", err)
		}
		e.must(e.Client.DoneRetry(e.ctx(), p, owner, "1-1"))
		if _, ok, err := e.BeginRetry(e.ctx(), p, owner, s); ok || err != nil {
			t.Errorf("no longer parked: %v, %v", ok, err)
		}
	})
}
