package store

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// scriptTime returns the server's time in scripts while do ran, the least of several runs.
func (e *env) scriptTime(do func()) time.Duration {
	e.t.Helper()
	least := time.Duration(math.MaxInt64)
	for range 5 {
		e.must(e.raw.ConfigResetStat(e.ctx()).Err())
		do()
		least = min(least, e.commandTime("evalsha")+e.commandTime("eval"))
	}
	return least
}

// commandTime returns the server's time in a command since its counters were reset.
func (e *env) commandTime(name string) time.Duration {
	e.t.Helper()
	info := try(e.raw.Info(e.ctx(), "commandstats").Result()).must(e.t)
	_, rest, there := strings.Cut(info, "cmdstat_"+name+":")
	if !there {
		return 0
	}
	_, rest, _ = strings.Cut(rest, "usec=")
	text, _, _ := strings.Cut(rest, ",")
	n := try(strconv.Atoi(text)).must(e.t)
	return time.Duration(n) * time.Microsecond
}

// sameTime fails if scripts take longer with large records than with small ones: copying one into
// Lua takes many times as long as all else, and as freeing it.
func sameTime(t *testing.T, scene func(e *env, record string) time.Duration) {
	t.Helper()
	record, e := strings.Repeat("x", 16<<20), realEnv(t)
	small, large := scene(realEnv(t), "x"), scene(e, record)
	e.must(e.raw.Set(e.ctx(), "copied", record, 0).Err())
	copying := e.scriptTime(func() { e.must(e.raw.Eval(e.ctx(), "return #redis.call('GET', KEYS[1])", []string{"copied"}).Err()) })
	t.Logf("scripts took %v with large records, %v with small ones, and copying one %v", large, small, copying)
	if large > 10*small+copying/2 {
		t.Error("that is too long")
	}
}

func TestNoScriptThatTrimsCopiesARecord(t *testing.T) {
	tier.Sequential(t)
	scene := func(overflow string, read int, do func(e *env, p Partition)) func(*env, string) time.Duration {
		return func(e *env, record string) time.Duration {
			e.t.Helper()
			e.bounded(5, overflow, "printer", "mailer")
			p := e.Partition("orders", "printer", 0)
			for i := range 5 {
				e.must(e.raw.Do(e.ctx(), "XADD", p.Log, fmt.Sprint(i+1, "-0"), "data", record).Err())
			}
			e.owner("printer", 4, 4)
			e.owner("mailer", read, read)
			return e.scriptTime(func() { do(e, p) })
		}
	}
	trim := func(e *env, p Partition) {
		try(e.Trim(e.ctx(), []TrimRequest{{Log: p.Log, Processors: []string{"mailer", "printer"}, Size: 1}})).must(t)
	}
	t.Run("trim nothing", func(t *testing.T) { sameTime(t, scene(OverflowReject, 0, trim)) })
	t.Run("trim some", func(t *testing.T) { sameTime(t, scene(OverflowReject, 2, trim)) })
	t.Run("refuse", func(t *testing.T) {
		sameTime(t, scene(OverflowReject, 0, func(e *env, p Partition) { e.send(e.ctx(), 0, 3) }))
	})
	t.Run("drop", func(t *testing.T) {
		sameTime(t, scene(OverflowDropOldest, 0, func(e *env, p Partition) { e.must(e.send(e.ctx(), 0, 1).Err) }))
	})
}

// Positions alone decide for which processors a dropped entry counts as lost.
func TestDropOldestCountsByPosition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		processors := []string{"p0", "p2", "p5", "p9", "never"}
		e.bounded(10, OverflowDropOldest, processors...)
		log := e.Partition("orders", "", 0).Log
		e.fill(log, 10)
		for i, read := range []int{0, 2, 5, 9} {
			e.owner(processors[i], read, read/2)
		}
		e.must(e.send(e.ctx(), 0, 6).Err) // drops 1-1 to 6-1; p2 has acked the first one, p5 two, p9 four
		for i, want := range []string{"6", "4", "1", "", "6"} {
			equal(t, "lost by "+processors[i], e.lost(e.Partition("orders", processors[i], 0)), want)
		}
		equal(t, "length", e.raw.XLen(e.ctx(), log).Val(), 10)
	})
}

// Trimming copes with the last possible ID: that entry stays, everything before it goes.
func TestTrimAtTheEndOfTheIDs(t *testing.T) {
	const most = "18446744073709551615"
	for _, tt := range []struct {
		name, last string
		left       int64
	}{
		{"the last ID", most + "-" + most, 1},
		{"the last millisecond", most + "-5", 0},
		{"the last number of a millisecond", "7-" + most, 0},
		{"a number that rounds as a double", "7-9007199254740993", 0},
		{"nines", "999-1999", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := realEnv(t)
			log, group := "log", GroupName("printer", alice)
			e.fill(log, 3)
			e.add(log, tt.last)
			e.must(e.raw.XGroupCreate(e.ctx(), log, group, "0").Err())
			e.deliver(log, group, 4, 4)
			got := try(e.Trim(e.ctx(), []TrimRequest{{Log: log, Processors: []string{"printer"}, Size: 1}})).must(t)
			equal(t, "removed", got[0].Removed, 4-tt.left)
			equal(t, "left", e.raw.XLen(e.ctx(), log).Val(), tt.left)
		})
		for _, policy := range []string{OverflowReject, OverflowDropOldest} {
			if tt.left > 0 && policy == OverflowDropOldest {
				continue // it drops the last one, too
			}
			t.Run(tt.name+", by a send, "+string(policy), func(t *testing.T) {
				e := realEnv(t)
				e.bounded(1, policy, "printer")
				p := e.Partition("orders", "printer", 0)
				e.fill(p.Log, 3)
				e.add(p.Log, tt.last)
				acked := 4
				if policy == OverflowDropOldest {
					acked = 0 // delivered entries do not count as lost
				}
				e.owner("printer", 4, acked)
				got := e.send(e.ctx(), 9, 1)
				if tt.left > 0 { // no ID is left
					equal(t, "refused, and the entries left", []any{got.Err != nil, e.raw.XLen(e.ctx(), p.Log).Val()}, []any{true, int64(1)})
					return
				}
				e.must(got.Err)
				equal(t, "contents", e.contents(p.Log), []string{"9"})
				equal(t, "lost", e.lost(p), "")
			})
		}
	}
}

// However large records are, a view copies none and reports what it can.
func TestNoLookCopiesARecord(t *testing.T) {
	stands := func(given int, acked ...string) func(e *env, p Partition) {
		return func(e *env, p Partition) {
			e.own(p, tenure(alice, 1))
			e.pend(p, alice, given)
			e.ack(p, alice, append(acked, "9-9")...)
		}
	}
	for _, tt := range []struct {
		name   string
		stands func(e *env, p Partition)
		want   string // delivered, floor, oldest, pending, behind
	}{
		{"never ran", func(*env, Partition) {}, "0-0 0-0  0 5"},
		{"nothing was delivered", func(e *env, p Partition) { e.own(p, tenure(alice, 1)) }, "0-0 0-0  0 5"},
		{"some are acked", stands(3, "1-1"), "3-1 2-0 2-1 2 2"},
		{"all that was delivered is acked", stands(3, "1-1", "2-1", "3-1"), "3-1 3-1 3-2 0 2"},
		{"all is acked", stands(5, "1-1", "2-1", "3-1", "4-1", "5-1"), "5-1 5-1  0 0"},
		{"the group is gone", func(e *env, p Partition) {
			e.must(e.raw.HSet(e.ctx(), p.Own, "epoch", 1, "floor", "2-1").Err())
		}, "2-1 2-1 2-2 0 -1"},
		{"one was deleted", func(e *env, p Partition) {
			stands(2)(e, p)
			e.must(e.raw.XDel(e.ctx(), p.Log, "4-1").Err())
		}, "2-1 1-0 1-1 2 -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameTime(t, func(e *env, record string) time.Duration {
				p := e.Partition("orders", "printer", 0)
				for i := range 5 {
					e.must(e.raw.Do(e.ctx(), "XADD", p.Log, fmt.Sprint(i+1, "-1"), "data", record).Err())
				}
				tt.stands(e, p)
				var v View
				var more bool
				took := e.scriptTime(func() {
					if v = e.view(p); v.Behind < 0 {
						_, more, _ = e.CountBehind(e.ctx(), p, v.Delivered, 100)
					}
				})
				if len(record) > 1 {
					equal(t, "view", fmt.Sprint(v.Delivered, " ", v.Floor, " ", v.Oldest, " ", v.Pending, " ", v.Behind), tt.want)
					equal(t, "more than can be counted", more, v.Behind < 0)
				}
				return took
			})
		})
	}
}

// Steps over a record that is too large cannot be counted; the error says so.
func TestNoStepCopiesARecord(t *testing.T) {
	e := realEnv(t)
	p := e.Partition("orders", "printer", 0)
	e.grow(p.Log, 3, 16<<20)
	var err error
	took := e.scriptTime(func() { _, err = e.Step(e.ctx(), p, "0-0", 2) })
	if err == nil || !strings.Contains(err.Error(), "give an ID or a time instead") || took > 20*time.Millisecond {
		t.Errorf("%v, after %v", err, took)
	}
	e.must(e.raw.Del(e.ctx(), p.Log).Err())
	e.grow(p.Log, 30, 100<<10)
	to := try(e.Step(e.ctx(), p, "0-0", 25)).must(t)
	equal(t, "25 large ones on", to, "25-1")
	to = try(e.Step(e.ctx(), p, to, -25)).must(t)
	equal(t, "and back", to, "0-0")
	n, more, err := e.CountBehind(e.ctx(), p, "2-1", 0)
	e.must(err)
	equal(t, "behind", []any{n, more}, []any{int64(28), false})
}

// A view copies no states that hold keys of a megabyte, as an earlier release wrote them.
func TestNoLookCopiesTheStatesOfLargeKeys(t *testing.T) {
	took := func(key int) time.Duration {
		e := realEnv(t)
		p := e.Partition("orders", "printer", 0)
		state := `{"v":1,"lane":"k` + strings.Repeat("k", key) + `","n":1,"first":5,"last":7}`
		for i := range 20 {
			e.must(e.raw.HSet(e.ctx(), p.Retry, fmt.Sprint(i+1, "-1"), state).Err())
		}
		var v View
		took := e.scriptTime(func() { v = e.view(p) })
		failed := int64(20)
		if key > 1000 {
			failed = -1 // too many to count
		}
		equal(t, "parked, failed", []int64{v.Parked, v.Failed}, []int64{20, failed})
		return took
	}
	if small, large := took(100), took(1<<20); large > 10*small+2*time.Millisecond {
		t.Errorf("scripts took %v with large keys, %v with small ones", large, small)
	}
}

// Listing partitions needs their ends; no script reads them where records are large.
func TestNoLogCopiesARecord(t *testing.T) {
	tier.Sequential(t)
	e := realEnv(t)
	log := e.keys.Partition("orders", 1)
	e.grow(log, 3, 16<<20)
	var logs []Log
	took := e.scriptTime(func() { logs = try(e.Logs(e.ctx(), "orders", 3)).must(t) })
	equal(t, "logs", logs, []Log{{End: "0-0"}, {Length: 3, First: "1-1", End: "3-1"}, {End: "0-0"}})
	if took > 20*time.Millisecond {
		t.Errorf("scripts took %v", took)
	}
}
