package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// sendIDs appends records with these IDs to partition 0 of orders.
func (e *env) sendIDs(ctx context.Context, ids ...string) Appended {
	a := Append{Stream: "orders", Log: e.Partition("orders", "", 0).Log}
	for n, id := range ids {
		a.Add([]string{"n", fmt.Sprint(n, id)}, id, nil)
	}
	return e.Append(ctx, []Append{a})[0]
}

func (e *env) window(size int64, window time.Duration) {
	e.t.Helper()
	_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 2, MaxLen: size, DedupWindow: window.Milliseconds()})
	e.must(err)
}

func TestAnIDIsAppendedOnce(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.window(100, time.Hour)
		first := e.sendIDs(e.ctx(), "", "a", "b", "", "a")
		e.must(first.Err)
		equal(t, "duplicates", first.Duplicate, []bool{false, false, false, false, true})
		equal(t, "the second a", first.IDs[4], first.IDs[1])
		again := e.sendIDs(e.ctx(), "b", "c")
		e.must(again.Err)
		equal(t, "duplicates", again.Duplicate, []bool{true, false})
		equal(t, "b", again.IDs[0], first.IDs[2])
		equal(t, "contents", e.contents("__strm:example.orders.0"), []string{"0", "1a", "2b", "3", "1c"})
		left := e.raw.PTTL(e.ctx(), "__id:example.orders.0:a").Val()
		if left <= 0 || left > time.Hour {
			t.Errorf("a is remembered for %v", left)
		}
		e.must(e.raw.Del(e.ctx(), "__id:example.orders.0:a").Err()) // the window is over
		equal(t, "after the window", e.sendIDs(e.ctx(), "a").Duplicate, []bool(nil))
	})
}

// A duplicate needs no room.
func TestADuplicateIsNoneTooMany(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.window(3, time.Hour)
		e.must(e.sendIDs(e.ctx(), "a", "b").Err)
		e.must(e.sendIDs(e.ctx(), "a", "b", "c", "c").Err)
		got := e.sendIDs(e.ctx(), "c")
		e.must(got.Err)
		equal(t, "duplicate", got.Duplicate, []bool{true})
		if got = e.sendIDs(e.ctx(), "c", "d"); !errors.Is(got.Err, ErrStreamFull) || len(got.IDs) != 0 {
			t.Errorf("got %+v", got)
		}
		if n := e.raw.Exists(e.ctx(), "__id:example.orders.0:d").Val(); n != 0 {
			t.Error("the ID of a refused record is remembered")
		}
	})
}

// A sender that got no answer sends again; the record is appended once.
func TestARepeatedCallWithIDsIsInOnce(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.window(100, time.Hour)
		deaf, c := e.deaf()
		defer c.Close()
		cut := &env{Client: c, t: t}
		cut.must(cut.sendIDs(e.ctx(), "x").Err)
		*deaf = true
		if got := cut.sendIDs(e.ctx(), "a", "b"); !got.Unknown {
			t.Fatalf("got %+v", got)
		}
		*deaf = false
		e.must(e.sendIDs(e.ctx(), "a", "b").Err)
		equal(t, "contents", e.contents("__strm:example.orders.0"), []string{"0x", "0a", "1b"})
	})
}

func TestAWideRecordHasNoID(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.window(100, time.Hour)
		a := Append{Stream: "orders", Log: e.Partition("orders", "", 0).Log}
		a.Add(make([]string, fieldsPerCall+2), "a", nil)
		if got := e.Append(e.ctx(), []Append{a})[0]; got.Err == nil || !strings.Contains(got.Err.Error(), "cannot have an ID") {
			t.Errorf("got %+v", got)
		}
	})
}

// A duplicate needs no room: nothing is dropped for it, and no record sent with it is refused.
func TestDuplicatesWantNoRoom(t *testing.T) {
	for _, tt := range []struct {
		policy string
		acked  int
		want   []string
	}{
		{OverflowDropOldest, 0, []string{"1b", "2c", "3d", "4e", "4f"}},
		{OverflowReject, 1, []string{"1b", "2c", "3d", "4e", "4f"}},
		{OverflowBlock, 1, []string{"1b", "2c", "3d", "4e", "4f"}},
	} {
		t.Run(string(tt.policy), func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				_, err := e.EnsureMeta(e.ctx(), "orders", Meta{
					Partitions: 1, MaxLen: 5, Overflow: tt.policy, DedupWindow: time.Hour.Milliseconds(), Processors: []string{"printer"},
				})
				e.must(err)
				e.must(e.sendIDs(e.ctx(), "a", "b", "c", "d", "e").Err)
				p := e.owner("printer", tt.acked, tt.acked)
				ctx, cancel := context.WithTimeout(e.ctx(), 5*time.Second)
				defer cancel()
				e.must(e.sendIDs(ctx, "b", "c", "d", "e", "f").Err)
				equal(t, "contents", e.contents(p.Log), tt.want)
				if tt.policy == OverflowDropOldest {
					equal(t, "lost", e.lost(p), "1")
				}
			})
		})
	}
}

// Metadata from before there were IDs has no window.
func TestAnIDIsRememberedWithoutAWindow(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		try(e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 4, MaxLen: 10})).must(t)
		for _, want := range [][]bool{nil, {true}} {
			got := e.sendIDs(e.ctx(), "a")
			e.must(got.Err)
			equal(t, "duplicate", got.Duplicate, want)
			r := later(0, 1, future)[0]
			r.ID = "b"
			got = e.delay(r)
			e.must(got.Err)
			equal(t, "delayed duplicate", got.Duplicate, want)
		}
	})
}
