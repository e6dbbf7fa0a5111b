package rstream

import "testing"

// What is moved out past a pending entry comes again in the next owner's group,
// which begins there: the takeover tells.
func TestTakeoverKnowsWhatWasMovedAside(t *testing.T) {
	park := func(e *env, p Place, t Tenure, ids ...string) {
		for _, id := range ids {
			e.must(e.Park(e.ctx(), p, t, 0, parkings([]Entry{{ID: id}}, RetryState{Attempts: 1})))
		}
	}
	ack := func(e *env, p Place, executor string, ids ...string) {
		e.must(e.Ack(e.ctx(), GroupName(p.Processor, executor), []Ack{{p, ids}})[0])
	}
	for i, tt := range []struct {
		name string
		do   func(e *env, p Place) // by alice, who has read 1-1 to 6-6
		want []string
	}{
		{"nothing", func(*env, Place) {}, nil},
		{"parked", func(e *env, p Place) { park(e, p, tenure(alice, 1), "3-3", "5-5") }, []string{"3-3", "5-5"}},
		{"a dead letter", func(e *env, p Place) {
			e.must(e.Bury(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: Entry{ID: "2-2"}}))
		}, []string{"2-2"}},
		{"parked, then a dead letter", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2")
			e.must(e.Bury(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: Entry{ID: "2-2"}}))
		}, []string{"2-2"}},
		{"parked, then done", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2")
			e.must(e.Settle(e.ctx(), p, tenure(alice, 1), "2-2"))
		}, []string{"2-2"}},
		{"the oldest", func(e *env, p Place) { park(e, p, tenure(alice, 1), "1-1", "2-2") }, nil},
		{"those before were acked since", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2", "4-4")
			ack(e, p, alice, "1-1")
		}, []string{"4-4"}},
		{"all before were acked since", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2", "3-3")
			ack(e, p, alice, "1-1")
		}, nil},
		{"the next owner died before it read", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2")
			e.own(p, tenure(carol, 1))
		}, []string{"2-2"}},
		{"the next owner read a part and moved more", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "3-3", "6-6")
			e.own(p, tenure(carol, 1))
			e.read(p, carol, 4)
			ack(e, p, carol, "3-3")
			park(e, p, tenure(carol, 1), "4-4")
		}, []string{"3-3", "6-6", "4-4"}},
		{"the position was reset", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2")
			_, err := e.Reset(e.ctx(), p, tenure(alice, 1), "0-0")
			e.must(err)
		}, nil},
		{"the partition was deleted", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2")
			e.must(e.raw.Del(e.ctx(), p.Log).Err())
		}, nil},
		{"the group is gone", func(e *env, p Place) {
			park(e, p, tenure(alice, 1), "2-2")
			e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice)).Err())
		}, []string{"2-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				p := e.Place("orders", "printer", i)
				e.begin(p, 6)
				tt.do(e, p)
				first := e.own(p, tenure(bob, 1))
				equal(t, "aside", len(first.Aside), len(tt.want))
				if len(tt.want) > 0 {
					equal(t, "aside", first.Aside, tt.want)
				}
				again, err := e.Takeover(e.ctx(), p, tenure(bob, 1), "", 0)
				e.must(err)
				equal(t, "the same takeover again", again.Aside, first.Aside)
			})
		})
	}
}
