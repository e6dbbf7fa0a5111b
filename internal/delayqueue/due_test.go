package delayqueue

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestOrder(t *testing.T) {
	both(t, func(e *env) {
		for _, one := range []struct {
			id  string
			due int64
		}{{"late", 30}, {"b", 20}, {"a", 20}, {"early", 10}, {"never", far}} {
			e.put(one.id, one.due, "data of "+one.id)
		}
		list := e.list()
		equal(e.t, "waits", ids(list), "[early a b late never]")
		equal(e.t, "an entry", fmt.Sprint(list[4].ID, list[4].At.UnixMilli(), list[4].Data), fmt.Sprint("never", far, "data of never"))
		page, err := e.List(e.t.Context(), 1, 2)
		equal(e.t, "a page", fmt.Sprint(ids(page), err), "[a b] <nil>")
		two, _ := e.due(2)
		equal(e.t, "the first that are due", two, "[early a]")
		all, _ := e.due(10)
		equal(e.t, "all that are due", all, "[early a b late]")
	})
}

// A queue that assigns the IDs keeps entries of one time in the order of the puts.
func TestGivenIDs(t *testing.T) {
	both(t, func(e *env) {
		var want []string
		var last int64
		for n := range 120 {
			id, version := e.put("", 5, fmt.Sprint(n))
			equal(e.t, "length", len(id), 16)
			if version <= last {
				e.t.Errorf("version %d after %d", version, last)
			}
			want, last = append(want, id), version
		}
		equal(e.t, "order", ids(e.list()), want)
	})
}

func TestReschedule(t *testing.T) {
	both(t, func(e *env) {
		e.put("a", far+50, "payload")
		e.put("b", far+60, "payload")
		e.put("c", far+50, "payload")
		for _, tt := range []struct {
			id           string
			due          int64 // 0: now
			there, first bool
		}{
			{"x", far, false, false}, {"b", far + 55, true, false}, {"c", far + 50, true, false},
			{"c", far + 40, true, true}, {"c", far + 40, true, false}, {"b", far + 40, true, false}, {"b", 0, true, true},
		} {
			at := time.Time{}
			if tt.due > 0 {
				at = time.UnixMilli(tt.due)
			}
			there, first, err := e.Reschedule(e.t.Context(), tt.id, at)
			if there != tt.there || first != tt.first || err != nil {
				e.t.Errorf("%+v: got %v, %v, %v", tt, there, first, err)
			}
			for _, entry := range e.list() {
				if entry.ID == tt.id && tt.due > 0 && entry.At.UnixMilli() != tt.due {
					e.t.Errorf("%+v: due at %d", tt, entry.At.UnixMilli())
				}
				equal(e.t, "data stays", entry.Data, "payload")
			}
		}
		equal(e.t, "what waits", ids(e.list()), "[b c a]")
		now, _ := e.due(9)
		equal(e.t, "what is due now", now, "[b]")
	})
}

func TestWait(t *testing.T) {
	both(t, func(e *env) {
		if _, ms := e.due(1); ms != -1 {
			e.t.Errorf("an empty queue: %d", ms)
		}
		reply, err := inScript.Run(e.t.Context(), e.raw, nil, time.Hour.Milliseconds()).StringSlice()
		if err != nil {
			e.t.Fatal(err)
		}
		hour, _ := strconv.ParseInt(reply[0], 10, 64)
		now, _ := strconv.ParseInt(reply[1], 10, 64)
		if in := hour - now; in < 3_590_000 || in > 3_600_001 { // rounded up; time passes between the calls
			e.t.Errorf("in an hour is in %d ms", in)
		}
		e.put("b", hour, "")
		if _, ms := e.due(1); ms <= 3_540_000 || ms > 3_600_001 {
			e.t.Errorf("one in an hour: %d ms", ms)
		}
		e.put("a", 1, "")
		if _, ms := e.due(1); ms != 0 {
			e.t.Errorf("one is due: %d ms", ms)
		}
	})
}

// An entry is not due before its time, not even by a part of a millisecond.
func TestNeverEarly(t *testing.T) {
	both(t, func(e *env) {
		due := time.Now().Add(30*time.Millisecond + 400*time.Microsecond)
		e.put("a", far, "")
		if _, _, err := e.Reschedule(e.t.Context(), "a", due); err != nil {
			e.t.Fatal(err)
		}
		if got := e.list()[0].At; got.Before(due) || got.Sub(due) >= time.Millisecond {
			e.t.Errorf("stored %v for %v", got, due)
		}
		redistest.Eventually(e.t, "it is due", func() bool { found, _ := e.due(1); return found != "[]" })
		if now := time.Now(); now.Before(due) { // both servers have the clock of this machine
			e.t.Errorf("found at %v, due at %v", now, due)
		}
	})
}

func TestRemove(t *testing.T) {
	both(t, func(e *env) {
		e.put("a", 1, "x")
		for _, want := range []bool{true, false} {
			waited, err := e.Remove(e.t.Context(), "a")
			if waited != want || err != nil {
				e.t.Errorf("got %v, %v, want %v", waited, err, want)
			}
		}
		equal(e.t, "what stays", e.raw.Keys(e.t.Context(), "*").Val(), "[seq]")
	})
}

// A key that holds something else is found before anything is written.
func TestWrongTypes(t *testing.T) {
	both(t, func(e *env) {
		ctx := e.t.Context()
		e.put("b", 1, "x")
		for _, key := range testKeys.Names() {
			e.raw.Rename(ctx, key, "saved")
			e.raw.RPush(ctx, key, "a list")
			before := fmt.Sprint(e.raw.ZRange(ctx, "due", 0, -1).Val(), e.raw.HLen(ctx, "data").Val(), e.raw.Get(ctx, "seq").Val())
			_, _, err1 := e.Reschedule(ctx, "b", time.Time{})
			_, err2 := e.Remove(ctx, "b")
			_, err3 := e.List(ctx, 0, 1)
			err4 := putScript.Run(ctx, e.raw, testKeys.Names(), "c", 1, "x").Err()
			for n, err := range []error{err1, err2, err3, err4} {
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
					e.t.Errorf("%s, call %d: %v", key, n, err)
				}
			}
			after := fmt.Sprint(e.raw.ZRange(ctx, "due", 0, -1).Val(), e.raw.HLen(ctx, "data").Val(), e.raw.Get(ctx, "seq").Val())
			equal(e.t, key, after, before)
			e.raw.Rename(ctx, "saved", key)
		}
		equal(e.t, "all as before", ids(e.list()), "[b]")
	})
}
