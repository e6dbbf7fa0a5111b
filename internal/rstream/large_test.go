package rstream

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scriptTime is the time that scripts took the server while do ran: the least of several runs.
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

// commandTime is the time that the server spent in a command since its counters were reset.
func (e *env) commandTime(name string) time.Duration {
	e.t.Helper()
	info, err := e.raw.Info(e.ctx(), "commandstats").Result()
	e.must(err)
	_, rest, there := strings.Cut(info, "cmdstat_"+name+":")
	if !there {
		return 0
	}
	_, rest, _ = strings.Cut(rest, "usec=")
	text, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(text)
	e.must(err)
	return time.Duration(n) * time.Microsecond
}

// sameTime runs a scene with small and with large records, and fails where scripts take
// longer for the large ones: to copy one into Lua takes many times as long as all else.
func sameTime(t *testing.T, scene func(e *env, record string) time.Duration) {
	t.Helper()
	small, large := scene(realEnv(t), "x"), scene(realEnv(t), strings.Repeat("x", 16<<20))
	if large > 10*small+2*time.Millisecond {
		t.Errorf("scripts took %v with large records, %v with small ones", large, small)
	}
}

func TestNoScriptThatTrimsCopiesARecord(t *testing.T) {
	scene := func(overflow Overflow, read int, do func(e *env, p Place)) func(*env, string) time.Duration {
		return func(e *env, record string) time.Duration {
			e.t.Helper()
			e.bounded(5, overflow, "printer", "mailer")
			p := e.Place("orders", "printer", 0)
			for i := range 5 {
				e.must(e.raw.Do(e.ctx(), "XADD", p.Log, fmt.Sprint(i+1, "-0"), "data", record).Err())
			}
			e.owner("printer", 4, 4)
			e.owner("mailer", read, read)
			return e.scriptTime(func() { do(e, p) })
		}
	}
	trim := func(e *env, p Place) {
		_, err := e.Trim(e.ctx(), []TrimRequest{{Log: p.Log, Processors: []string{"mailer", "printer"}, Size: 1}})
		e.must(err)
	}
	t.Run("trim nothing", func(t *testing.T) { sameTime(t, scene(OverflowReject, 0, trim)) })
	t.Run("trim some", func(t *testing.T) { sameTime(t, scene(OverflowReject, 2, trim)) })
	t.Run("refuse", func(t *testing.T) {
		sameTime(t, scene(OverflowReject, 0, func(e *env, p Place) { e.send(e.ctx(), 0, 3) }))
	})
	t.Run("drop", func(t *testing.T) {
		sameTime(t, scene(OverflowDropOldest, 0, func(e *env, p Place) { e.must(e.send(e.ctx(), 0, 1).Err) }))
	})
}

// What a dropped entry counts for whom depends on positions alone, however many there are.
func TestDropOldestCountsByPosition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		processors := []string{"p0", "p2", "p5", "p9", "never"}
		e.bounded(10, OverflowDropOldest, processors...)
		log := e.Place("orders", "", 0).Log
		e.fill(log, 10)
		for i, read := range []int{0, 2, 5, 9} {
			e.owner(processors[i], read, read/2)
		}
		e.must(e.send(e.ctx(), 0, 6).Err) // drops 1-1 to 6-1; p2 has acked the first one, p5 two, p9 four
		for i, want := range []string{"6", "4", "1", "", "6"} {
			equal(t, "lost by "+processors[i], e.lost(e.Place("orders", processors[i], 0)), want)
		}
		equal(t, "length", e.raw.XLen(e.ctx(), log).Val(), 10)
	})
}

// The last ID that there can be is no obstacle: its entry stays, what lies before it goes.
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
			got, err := e.Trim(e.ctx(), []TrimRequest{{Log: log, Processors: []string{"printer"}, Size: 1}})
			e.must(err)
			equal(t, "removed", got[0].Removed, 4-tt.left)
			equal(t, "left", e.raw.XLen(e.ctx(), log).Val(), tt.left)
		})
	}
}
