package store

import (
	"fmt"
	"testing"
	"time"
)

// view returns the view of a partition.
func (e *env) view(p Partition) View {
	e.t.Helper()
	vs := try(e.Views(e.ctx(), []Partition{p})).must(e.t)
	e.must(vs[0].Err)
	if vs[0].Now.Before(time.UnixMilli(1_700_000_000_000)) {
		e.t.Errorf("the server's clock is %v", vs[0].Now)
	}
	vs[0].Now = time.Time{}
	return vs[0]
}

// behind returns the number of undelivered entries, counted if the server does not know it.
func (e *env) behind(p Partition) int64 {
	e.t.Helper()
	v := e.view(p)
	counted, _, err := e.CountBehind(e.ctx(), p, v.Delivered, 0)
	e.must(err)
	if v.Behind >= 0 && v.Behind != counted {
		e.t.Errorf("the server says %d behind, there are %d", v.Behind, counted)
	}
	return counted
}

func TestViewOfAnOwnership(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "my-proc", 3)
		equal(t, "nothing there", e.view(p), View{Floor: "0-0", Delivered: "0-0", End: "0-0"})
		e.series(p.Log, 6)
		equal(t, "never ran", e.behind(p), 6)
		pos := e.own(p, tenure(alice, 7))
		e.read(p, alice, 4)
		e.ack(p, alice, "1-1", "1-2")
		v := e.view(p)
		if v.LockLeft <= 0 || v.LockLeft > 10*time.Second {
			t.Errorf("lock left %v", v.LockLeft)
		}
		if v.Added != 6 && v.Added != -1 { // unknown to the embedded server
			t.Errorf("%d were added", v.Added)
		}
		v.LockLeft, v.Behind, v.Added = 0, 0, 0
		equal(t, "view", v, View{
			Owner: alice, Tenure: "0000000000000007", Epoch: pos.Epoch, Group: "my-proc@" + alice,
			Delivered: "1-4", Floor: "1-2", Pending: 2, Length: 6, End: "1-6", Oldest: "1-3",
		})
		equal(t, "behind", e.behind(p), 2)
	})
}

// What is pending is unknown from the first owner that reads by position to the next that does not.
func TestViewOfReadsByPosition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.series(p.Log, 6)
		me := byPosition(alice)
		e.own(p, me)
		want := func(what string, pending int64) {
			t.Helper()
			v := e.view(p)
			equal(t, what, []any{v.Pending, e.behind(p), v.Oldest}, []any{pending, 6, "1-1"})
		}
		want("by position", -1)
		e.must(e.Unlock(e.ctx(), p, me))
		want("released", -1)
		e.own(p, tenure(bob, 1))
		want("by group", 0)
	})
}

func TestViewCountsRight(t *testing.T) {
	tests := []struct {
		name string
		do   func(e *env, p Partition)
		want int64
	}{
		{"nothing read", func(e *env, p Partition) {}, 10},
		{"some read", func(e *env, p Partition) { e.read(p, alice, 4) }, 6},
		{"all read", func(e *env, p Partition) { e.read(p, alice, 10) }, 0},
		{"unread ones deleted", func(e *env, p Partition) { e.read(p, alice, 4); e.raw.XDel(e.ctx(), p.Log, "1-8", "1-10") }, 4},
		{"read ones deleted", func(e *env, p Partition) { e.read(p, alice, 4); e.raw.XDel(e.ctx(), p.Log, "1-2") }, 6},
		{"unread ones trimmed", func(e *env, p Partition) { e.read(p, alice, 4); e.raw.XTrimMinID(e.ctx(), p.Log, "1-8") }, 3},
		{"all trimmed", func(e *env, p Partition) { e.read(p, alice, 4); e.raw.XTrimMinID(e.ctx(), p.Log, "2-0") }, 0},
		{"group gone", func(e *env, p Partition) {
			e.read(p, alice, 4)
			e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice))
		}, 10}, // from the checkpoint, which has not moved yet
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				p := e.Partition("orders", "printer", 0)
				e.series(p.Log, 10)
				e.own(p, tenure(alice, 1))
				tt.do(e, p)
				equal(t, "behind", e.behind(p), tt.want)
			})
		})
	}
}

func TestViewTellsTheOldestUnacked(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		for i := range 6 {
			e.add(p.Log, fmt.Sprint(i+1, "-0"))
		}
		equal(t, "never ran", e.view(p).Oldest, "1-0")
		e.own(p, tenure(alice, 1))
		equal(t, "nothing read", e.view(p).Oldest, "1-0")
		ack := func(ids ...string) {
			e.must(e.Ack(e.ctx(), GroupName(p.Processor, alice), []Ack{{Place: p, IDs: ids}})[0])
		}
		e.read(p, alice, 4)
		ack("1-0", "3-0")
		equal(t, "acked with a gap", e.view(p).Oldest, "2-0")
		ack("2-0", "4-0")
		equal(t, "all that was read is acked", e.view(p).Oldest, "5-0")
		e.raw.XDel(e.ctx(), p.Log, "5-0")
		equal(t, "and the next one deleted", e.view(p).Oldest, "6-0")
		e.read(p, alice, 4)
		ack("6-0")
		equal(t, "all is acked", e.view(p).Oldest, "")
	})
}

func TestViewCountsWhatWaits(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		state := func(s string) string { return `{"v":1,"lane":"k","key":"\"first\":","n":1` + s + `}` }
		e.must(e.raw.HSet(e.ctx(), p.Retry, "1-0", state(`,"first":5,"last":7`), "2-0", state(""), "3-0", state(`,"first":6`)).Err())
		e.must(e.raw.Do(e.ctx(), "ZADD", p.Due, 5, "a", 6, "b").Err())
		v := e.view(p)
		equal(t, "parked", v.Parked, 3)
		equal(t, "of them failed", v.Failed, 2)
		equal(t, "delayed", v.Delayed, 2)
		for i := range statesLooked {
			e.must(e.raw.HSet(e.ctx(), p.Retry, fmt.Sprint("9-", i), state("")).Err())
		}
		v = e.view(p)
		equal(t, "parked, many", v.Parked, 3+statesLooked)
		equal(t, "of them failed, uncounted", v.Failed, -1)
	})
}

func TestCountBehindStopsAtItsLimit(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		var records [][]string
		for range 3 * countPage {
			records = append(records, []string{"data", "x"})
		}
		e.must(e.Append(e.ctx(), []Append{{Log: p.Log, Records: records}})[0].Err)
		for limit, want := range map[int64]bool{1: true, countPage: true, 3*countPage - 1: true, 3 * countPage: false} {
			n, more, err := e.CountBehind(e.ctx(), p, "0-0", limit)
			e.must(err)
			equal(t, fmt.Sprint("limit ", limit), []any{n, more}, []any{limit, want})
		}
	})
}

func TestCountBehindManyPages(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		var records [][]string
		for range 3 * countPage {
			records = append(records, []string{"data", "x"})
		}
		got := e.Append(e.ctx(), []Append{{Log: p.Log, Records: records}})[0]
		e.must(got.Err)
		for skip, want := range map[int]int64{0: 3*countPage - 1, countPage - 1: 2 * countPage, 3*countPage - 1: 0} {
			n, _, err := e.CountBehind(e.ctx(), p, got.IDs[skip], 0)
			e.must(err)
			equal(t, fmt.Sprint("behind entry ", skip), n, want)
		}
	})
}

func TestViewsOfManyPartitionsAndWrongTypes(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		var ps []Partition
		for i := range 2*partitionsPerTrip + 3 {
			ps = append(ps, e.Partition("orders", "printer", i))
		}
		e.add(ps[partitionsPerTrip].Log, "5-5")
		e.must(e.raw.Set(e.ctx(), ps[7].Log, "x", 0).Err())
		vs := try(e.Views(e.ctx(), ps)).must(t)
		equal(t, "views", len(vs), len(ps))
		equal(t, "end", vs[partitionsPerTrip].End, "5-5")
		for i, v := range vs {
			if (v.Err != nil) != (i == 7) {
				t.Errorf("partition %d: %v", i, v.Err)
			}
		}
	})
}

func TestViewPassesForeignGroupsOver(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "a-b", 0)
		e.add(p.Log, "1-1")
		for _, name := range []string{"a-b", "aXb@" + alice, "a-b@short", "a-b@x@" + alice[:14], "c@" + alice} {
			e.must(e.raw.XGroupCreate(e.ctx(), p.Log, name, "$").Err())
		}
		equal(t, "group", e.view(p).Group, "")
		e.must(e.raw.XGroupCreate(e.ctx(), p.Log, "a-b@"+bob, "1-1").Err())
		e.must(e.raw.XGroupCreate(e.ctx(), p.Log, "a-b@"+carol, "0-0").Err())
		equal(t, "group furthest behind", e.view(p).Group, "a-b@"+carol)
		e.lock(p, tenure(bob, 1))
		equal(t, "group of the owner", e.view(p).Group, "a-b@"+bob)
	})
}

func TestViewChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.add(p.Log, "1-1")
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 1)
		before := e.groups(p.Log)
		e.must(e.raw.Persist(e.ctx(), p.Lock).Err())
		e.view(p)
		equal(t, "groups", e.groups(p.Log), before)
		equal(t, "lock's life", e.raw.PTTL(e.ctx(), p.Lock).Val(), time.Duration(-1))
	})
}
