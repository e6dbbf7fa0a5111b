package delayqueue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	both(t, func(e *env) {
		e.put(Put{ID: "late", At: at(30)})
		e.put(Put{ID: "b", At: at(20)})
		e.put(Put{ID: "a", At: at(20)})
		e.put(Put{ID: "early", At: at(10)})
		e.put(Put{ID: "never", At: at(far)})
		equal(e.t, "waits", ids(e.list()), "[early a b late never]")
		equal(e.t, "two", ids(e.take(2)), "[early a]")
		equal(e.t, "the others", ids(e.take(10)), "[b late]")
		equal(e.t, "none is due", ids(e.take(10)), "[]")
	})
}

// A queue that gives the IDs keeps entries of one time in the order of the puts.
func TestGivenIDs(t *testing.T) {
	both(t, func(e *env) {
		var want []string
		for n := range 120 {
			s := e.put(Put{At: at(5), Data: text(fmt.Sprint(n))})
			equal(e.t, "length", len(s.ID), 16)
			equal(e.t, "only the first is first", s.First, n == 0)
			want = append(want, s.ID)
		}
		equal(e.t, "order", ids(e.take(1000)), want)
	})
}

func TestModes(t *testing.T) {
	tests := []struct {
		mode   Mode
		before int64 // 0: there is none
		put    int64
		ok     bool
		after  int64
	}{
		{Set, 0, 20, true, 20},
		{Set, 10, 20, true, 20},
		{Set, 20, 10, true, 10},
		{Earliest, 0, 20, true, 20},
		{Earliest, 10, 20, true, 10},
		{Earliest, 20, 10, true, 10},
		{IfAbsent, 0, 20, true, 20},
		{IfAbsent, 10, 20, false, 10},
		{IfPresent, 0, 20, false, 0},
		{IfPresent, 10, 20, true, 20},
	}
	both(t, func(e *env) {
		for n, tt := range tests {
			id, before := fmt.Sprint(n), Stored{}
			if tt.before > 0 {
				before = e.put(Put{ID: id, At: at(tt.before), Data: text("old")})
			}
			s, ok, err := e.Put(e.t.Context(), Put{ID: id, At: at(tt.put), Mode: tt.mode})
			if err != nil || ok != tt.ok {
				e.t.Errorf("%+v: got %v, %v", tt, ok, err)
			}
			if ok && s.Version <= before.Version {
				e.t.Errorf("%+v: version %d after %d", tt, s.Version, before.Version)
			}
			for _, entry := range e.list() {
				if entry.ID != id {
					continue
				}
				equal(e.t, fmt.Sprintf("%+v", tt), entry.At.UnixMilli(), tt.after)
				if tt.before > 0 {
					equal(e.t, "data stays", entry.Data, "old")
				}
				tt.after = 0
			}
			if tt.after != 0 {
				e.t.Errorf("%+v: it is gone", tt)
			}
		}
	})
}

// Whoever waits for the first entry is told of one that is earlier.
func TestFirst(t *testing.T) {
	both(t, func(e *env) {
		for _, tt := range []struct {
			id    string
			at    int64
			first bool
		}{
			{"a", far + 50, true}, {"b", far + 60, false}, {"c", far + 50, false}, {"d", far + 40, true},
			{"b", far + 30, true}, {"b", far + 35, false}, {"A", far + 35, false}, {"a", far + 34, true},
		} {
			s := e.put(Put{ID: tt.id, At: at(tt.at)})
			equal(e.t, fmt.Sprintf("%s at %d", tt.id, tt.at), s.First, tt.first)
		}
	})
}

func TestTakeTellsTheWait(t *testing.T) {
	both(t, func(e *env) {
		wait := func(n int) time.Duration {
			_, d, err := e.Take(e.t.Context(), n)
			if err != nil {
				e.t.Fatal(err)
			}
			return d
		}
		if d := wait(1); d >= 0 {
			e.t.Errorf("an empty queue: %v", d)
		}
		e.put(Put{ID: "b", After: time.Hour})
		if d := wait(1); d <= 59*time.Minute || d > time.Hour+time.Millisecond { // rounded up
			e.t.Errorf("one in an hour: %v", d)
		}
		e.put(Put{ID: "a", At: at(1)})
		e.put(Put{ID: "c", At: at(2)})
		equal(e.t, "one more is due", wait(1), time.Duration(0))
		wait(1)
		// What is put again while it runs is not to be waited for.
		e.put(Put{ID: "a", At: at(3)})
		if d := wait(1); d <= 59*time.Minute {
			e.t.Errorf("only one that runs is due: %v", d)
		}
	})
}

// An entry is not due before its time, also in parts of a millisecond.
func TestNeverEarly(t *testing.T) {
	both(t, func(e *env) {
		due := time.Now().Add(30*time.Millisecond + 400*time.Microsecond)
		e.put(Put{ID: "a", At: due})
		if got := e.list()[0].At; got.Before(due) || got.Sub(due) >= time.Millisecond {
			e.t.Errorf("stored %v for %v", got, due)
		}
		deadline := time.Now().Add(30 * time.Second)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for len(e.take(1)) == 0 {
			if time.Now().After(deadline) {
				e.t.Fatal("never due")
			}
			<-tick.C
		}
		if now := time.Now(); now.Before(due) { // both servers have the clock of this machine
			e.t.Errorf("taken at %v, due at %v", now, due)
		}
	})
}

func TestDone(t *testing.T) {
	both(t, func(e *env) {
		e.put(Put{ID: "a", At: at(1), Data: text("payload")})
		got := e.take(1)[0]
		equal(e.t, "taken", fmt.Sprintf("%s %d %d %s", got.ID, got.Attempts, got.At.UnixMilli(), got.Data), "a 1 1 payload")
		equal(e.t, "not twice at once", ids(e.take(1)), "[]")
		equal(e.t, "done", e.done(got, End{}), Done)
		equal(e.t, "again", e.done(got, End{}), Gone)
		equal(e.t, "what stays", e.left(), "[seq]")
	})
}

func TestAttempts(t *testing.T) {
	both(t, func(e *env) {
		e.put(Put{ID: "a", At: at(1), Data: text("x")})
		for n := 1; n <= 3; n++ {
			got := e.take(1)[0]
			equal(e.t, "attempts", got.Attempts, n)
			equal(e.t, "failed", e.done(got, End{Failed: true, Again: true, At: at(1)}), Later)
		}
		got := e.take(1)[0]
		equal(e.t, "periodic", e.done(got, End{Again: true, At: at(2)}), Later)
		got = e.take(1)[0]
		equal(e.t, "a success starts the count anew", got.Attempts, 1)
		equal(e.t, "data", got.Data, "x")
		equal(e.t, "given up", e.done(got, End{Failed: true}), Done)
		equal(e.t, "what stays", e.left(), "[seq]")
	})
}

// What is put while it runs is not lost, and not run twice at once.
func TestPutWhileItRuns(t *testing.T) {
	both(t, func(e *env) {
		e.put(Put{ID: "a", At: at(1), Data: text("old")})
		got := e.take(1)[0]
		_, ok, err := e.Put(e.t.Context(), Put{ID: "a", At: at(2), Mode: IfAbsent})
		if ok || err != nil {
			e.t.Errorf("put if absent: %v, %v", ok, err)
		}
		e.put(Put{ID: "a", At: at(3), Data: text("new")})
		equal(e.t, "it runs still", ids(e.take(1)), "[]")
		equal(e.t, "done", e.done(got, End{}), Again)
		got = e.take(1)[0]
		equal(e.t, "the new one", fmt.Sprintf("%d %s", got.At.UnixMilli(), got.Data), "3 new")

		e.put(Put{ID: "a", At: at(far)})
		equal(e.t, "due at the earlier time", e.done(got, End{Again: true, At: at(4)}), Again)
		equal(e.t, "at", e.list()[0].At.UnixMilli(), 4)
	})
}

func TestRecover(t *testing.T) {
	both(t, func(e *env) {
		for n, id := range []string{"a", "b", "c"} {
			e.put(Put{ID: id, At: at(int64(n + 1))})
		}
		lost := e.take(2)
		e.put(Put{ID: "b", At: at(9)})
		for range 2 { // the second changes nothing
			if _, err := e.Recover(e.t.Context()); err != nil {
				e.t.Fatal(err)
			}
		}
		equal(e.t, "the one who lost them", e.done(lost[0], End{}), Gone)
		got := e.take(10)
		equal(e.t, "in their order", ids(got), "[a b c]")
		equal(e.t, "attempts", fmt.Sprint(got[0].Attempts, got[1].Attempts, got[2].Attempts), "2 2 1")
		equal(e.t, "at the earlier time", got[1].At.UnixMilli(), 2)
	})
}

func TestRemove(t *testing.T) {
	both(t, func(e *env) {
		remove := func(id string) string {
			waited, ran, err := e.Remove(e.t.Context(), id)
			if err != nil {
				e.t.Fatal(err)
			}
			return fmt.Sprint(waited, ran)
		}
		e.put(Put{ID: "a", At: at(1), Data: text("x")})
		equal(e.t, "waits", remove("a"), "true false")
		equal(e.t, "again", remove("a"), "false false")
		e.put(Put{ID: "a", At: at(1), Data: text("x")})
		got := e.take(1)[0]
		e.put(Put{ID: "a", At: at(1)})
		equal(e.t, "runs", remove("a"), "false true")
		equal(e.t, "its taker", e.done(got, End{Again: true, At: at(5)}), Gone)
		equal(e.t, "what stays", e.left(), "[seq]")
	})
}

func TestFence(t *testing.T) {
	both(t, func(e *env) {
		ctx := e.t.Context()
		e.put(Put{ID: "a", At: at(1)})
		ours, theirs := e.Fenced("lock", "we"), e.Fenced("lock", "they")
		check := func(q Queue, want error) {
			e.t.Helper()
			_, err1 := q.Recover(ctx)
			_, _, err2 := q.Take(ctx, 0)
			_, err3 := q.Done(ctx, Entry{ID: "b"}, End{})
			for _, err := range []error{err1, err2, err3} {
				if !errors.Is(err, want) {
					e.t.Errorf("got %v, want %v", err, want)
				}
			}
		}
		check(ours, ErrFenced)
		e.raw.Set(ctx, "lock", "we", 0)
		check(ours, nil)
		check(theirs, ErrFenced)
		if _, _, err := theirs.Take(ctx, 1); !errors.Is(err, ErrFenced) || len(e.list()) != 1 {
			e.t.Errorf("taken by one without the lock: %v", err)
		}
	})
}

// A key that holds something else is found before anything is written.
func TestWrongTypes(t *testing.T) {
	both(t, func(e *env) {
		ctx := e.t.Context()
		e.put(Put{ID: "a", At: at(1), Data: text("x")})
		e.put(Put{ID: "b", At: at(1), Data: text("x")})
		got := e.take(1)[0]
		for _, key := range testKeys.Names() {
			saved := e.raw.Rename(ctx, key, "saved").Err() == nil
			e.raw.RPush(ctx, key, "a list")
			before := fmt.Sprint(e.raw.ZRange(ctx, "due", 0, -1).Val(), e.raw.ZRange(ctx, "run", 0, -1).Val(), e.raw.HLen(ctx, "data").Val())
			_, _, err1 := e.Put(ctx, Put{ID: "c", At: at(1), Data: text("x")})
			_, _, err2 := e.Take(ctx, 1)
			_, err3 := e.Done(ctx, got, End{})
			_, err4 := e.Recover(ctx)
			_, _, err5 := e.Remove(ctx, "b")
			for n, err := range []error{err1, err2, err3, err4, err5} {
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
					e.t.Errorf("%s, call %d: %v", key, n, err)
				}
			}
			after := fmt.Sprint(e.raw.ZRange(ctx, "due", 0, -1).Val(), e.raw.ZRange(ctx, "run", 0, -1).Val(), e.raw.HLen(ctx, "data").Val())
			equal(e.t, key, after, before)
			e.raw.Del(ctx, key)
			if saved {
				e.raw.Rename(ctx, "saved", key)
			}
		}
		equal(e.t, "all as before", e.done(got, End{}), Done)
	})
}
