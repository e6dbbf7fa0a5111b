package store

import (
	"errors"
	"fmt"
	"testing"
)

func TestResetMovesThePosition(t *testing.T) {
	tests := []struct{ to, want string }{
		{"0-0", "0-0"},
		{"1-3", "1-3"},
		{"$", "1-6"},
		{"9-9", "1-6"}, // never behind the last entry
		{"1-18446744073709551615", "1-6"},
	}
	for _, tt := range tests {
		t.Run(tt.to, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				p := e.Partition("orders", "printer", 0)
				var all []string
				for i := range 6 {
					all = append(all, e.add(p.Log, fmt.Sprint("1-", i+1)))
				}
				e.own(p, tenure(alice, 1))
				e.read(p, alice, 4) // pending, which no longer matters
				e.own(p, tenure(bob, 1))
				for range 2 { // a repetition changes nothing
					floor := try(e.Reset(e.ctx(), p, tenure(bob, 1), tt.to)).must(t)
					equal(t, "floor", floor, tt.want)
				}
				e.must(e.Unlock(e.ctx(), p, tenure(bob, 1)))
				v := e.view(p)
				equal(t, "left behind", []any{v.Owner, v.Group, v.Floor, v.Pending}, []any{"", "printer@" + bob, tt.want, 0})
				e.behind(p) // checks the server's lag, if it has one

				pos := e.own(p, tenure(carol, 1))
				equal(t, "the next takeover", []any{pos.Committed, pos.Found}, []any{tt.want, FoundGroup})
				var want []string
				for _, id := range all {
					if tt.want == "0-0" || id > tt.want {
						want = append(want, id)
					}
				}
				equal(t, "read on", e.read(p, carol, 10), want)
			})
		})
	}
}

// If the group is destroyed before the next takeover, the checkpoint has the same position.
func TestResetLeavesACheckpoint(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, to := range []string{"0-0", "1-3", "$"} {
			p := e.Partition("orders", "printer", i)
			e.series(p.Log, 6)
			e.own(p, tenure(alice, 1))
			floor := try(e.Reset(e.ctx(), p, tenure(alice, 1), to)).must(t)
			e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, "printer@"+alice).Err())
			pos := e.own(p, tenure(bob, 1))
			equal(t, to, []any{pos.Committed, pos.Found}, []any{floor, FoundCheckpoint})
		}
	})
}

func TestResetOfATrimmedPartition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.series(p.Log, 10)
		e.must(e.raw.XTrimMinID(e.ctx(), p.Log, "1-5").Err())
		e.own(p, tenure(alice, 1))
		try(e.Reset(e.ctx(), p, tenure(alice, 1), "0-0")).must(t)
		equal(t, "behind", e.behind(p), 6)
		if e.real {
			infos := e.raw.XInfoGroups(e.ctx(), p.Log).Val()
			equal(t, "lag", infos[0].Lag, 6)
		}
	})
}

func TestResetOfAnEmptyPartition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.own(p, tenure(alice, 1))
		floor := try(e.Reset(e.ctx(), p, tenure(alice, 1), "$")).must(t)
		equal(t, "floor", floor, "0-0")
		e.add(p.Log, "1-1")
		e.own(p, tenure(bob, 1))
		equal(t, "read", e.read(p, bob, 10), []string{"1-1"})
	})
}

func TestResetIsFenced(t *testing.T) {
	tests := []struct {
		name string
		do   func(e *env, p Partition)
	}{
		{"lock gone", func(e *env, p Partition) { e.raw.Del(e.ctx(), p.Lock) }},
		{"lock of another", func(e *env, p Partition) { e.own(p, tenure(bob, 1)) }},
		{"later ownership", func(e *env, p Partition) { e.own(p, tenure(alice, 2)) }},
		{"locked, not taken over", func(e *env, p Partition) { e.raw.Del(e.ctx(), p.Own) }},
		{"group gone", func(e *env, p Partition) { e.raw.XGroupDestroy(e.ctx(), p.Log, "printer@"+alice) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				p := e.Partition("orders", "printer", 0)
				e.add(p.Log, "1-1")
				e.own(p, tenure(alice, 1))
				tt.do(e, p)
				before := e.groups(p.Log)
				if _, err := e.Reset(e.ctx(), p, tenure(alice, 1), "$"); !errors.Is(err, ErrFenced) {
					t.Errorf("got %v, want ErrFenced", err)
				}
				equal(t, "groups", e.groups(p.Log), before)
			})
		})
	}
}

// With rows those parked events go that come again. Those that do not, since they lie before the new position or were removed
// from the stream, wait as before.
func TestResetWithoutRowsForgetsWhatComesAgain(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		entries := e.begin(p, 6)
		e.must(e.Park(e.ctx(), p, me, 0, parkings(entries, RetryState{Attempts: 1, At: 9e12})))
		e.must(e.raw.XDel(e.ctx(), p.Log, "4-4").Err())
		e.must(e.raw.Del(e.ctx(), p.Lock).Err())
		e.own(p, tenure(bob, 1))
		try(e.Reset(e.ctx(), p, tenure(bob, 1), "2-2")).must(t)
		equal(t, "parked, with rows", len(e.retries(p)), 6)
		for range 2 {
			try(e.Reset(e.ctx(), p, tenure(bob, 1), "2-2", e.Table("orders", "totals", 0))).must(t)
			var left []string
			for _, s := range e.retries(p) {
				left = append(left, s.ID)
			}
			equal(t, "parked", left, []string{"1-1", "2-2", "4-4"})
			equal(t, "with their payload", e.raw.HLen(e.ctx(), p.Parked).Val(), 3)
		}
	})
}
