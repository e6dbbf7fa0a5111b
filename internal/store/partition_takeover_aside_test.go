package store

import (
	"testing"

	"github.com/runnel-go/runnel/internal/redisconn"
)

func (e *env) park(p Partition, executor string, ids ...string) {
	e.t.Helper()
	for _, id := range ids {
		e.must(e.Park(e.ctx(), p, tenure(executor, 1), 0, parkings([]redisconn.Entry{{ID: id}}, RetryState{Attempts: 1})))
	}
}

func (e *env) ack(p Partition, executor string, ids ...string) {
	e.t.Helper()
	e.must(e.Ack(e.ctx(), GroupName(p.Processor, executor), []Ack{{Place: p, IDs: ids}})[0])
}

func (e *env) bury(p Partition, executor, id string) {
	e.t.Helper()
	e.must(e.DeadLetter(e.ctx(), p, tenure(executor, 1), DeadLetter{Entry: redisconn.Entry{ID: id}}))
}

// Each case begins after alice has read 1-1 to 6-6.
var asides = []struct {
	name string
	do   func(e *env, p Partition)
	want []string
}{
	{"nothing", func(*env, Partition) {}, nil},
	{"parked", func(e *env, p Partition) { e.park(p, alice, "3-3", "5-5") }, []string{"3-3", "5-5"}},
	{"a dead letter", func(e *env, p Partition) { e.bury(p, alice, "2-2") }, []string{"2-2"}},
	{"parked, then a dead letter", func(e *env, p Partition) {
		e.park(p, alice, "2-2")
		e.bury(p, alice, "2-2")
	}, []string{"2-2"}},
	{"parked, then done", func(e *env, p Partition) {
		e.park(p, alice, "2-2")
		e.must(e.DoneRetry(e.ctx(), p, tenure(alice, 1), "2-2"))
	}, []string{"2-2"}},
	{"the oldest", func(e *env, p Partition) { e.park(p, alice, "1-1", "2-2") }, nil},
	{"one before was acked since", func(e *env, p Partition) {
		e.park(p, alice, "2-2", "4-4")
		e.ack(p, alice, "1-1")
	}, []string{"4-4"}},
	{"all before were acked since", func(e *env, p Partition) {
		e.park(p, alice, "2-2", "3-3")
		e.ack(p, alice, "1-1")
	}, nil},
	{"the next owner died before it read", func(e *env, p Partition) {
		e.park(p, alice, "2-2")
		e.own(p, tenure(carol, 1))
	}, []string{"2-2"}},
	{"the next owner read a part and moved more", func(e *env, p Partition) {
		e.park(p, alice, "3-3", "6-6")
		e.own(p, tenure(carol, 1))
		e.read(p, carol, 4)
		e.ack(p, carol, "3-3")
		e.park(p, carol, "4-4")
	}, []string{"3-3", "6-6", "4-4"}},
	{"the position was reset", func(e *env, p Partition) {
		e.park(p, alice, "2-2")
		try(e.Reset(e.ctx(), p, tenure(alice, 1), "0-0")).must(e.t)
	}, []string{"2-2"}},
	{"the position was reset behind it", func(e *env, p Partition) {
		e.park(p, alice, "2-2")
		try(e.Reset(e.ctx(), p, tenure(alice, 1), "2-2")).must(e.t)
	}, nil},
	{"a dead letter comes again behind a reset", func(e *env, p Partition) {
		e.bury(p, alice, "2-2")
		try(e.Reset(e.ctx(), p, tenure(alice, 1), "0-0")).must(e.t)
	}, nil},
	{"the partition was deleted", func(e *env, p Partition) {
		e.park(p, alice, "2-2")
		e.must(e.raw.Del(e.ctx(), p.Log).Err())
	}, nil},
	{"the oldest, and the group is gone", func(e *env, p Partition) {
		e.park(p, alice, "1-1", "2-2", "3-3")
		e.must(e.DoneRetry(e.ctx(), p, tenure(alice, 1), "3-3")) // it comes again, as all that was acked
		e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice)).Err())
	}, []string{"1-1", "2-2"}},
	{"the group is gone", func(e *env, p Partition) {
		e.park(p, alice, "2-2")
		e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice)).Err())
	}, []string{"2-2"}},
}

// Events set aside behind a pending entry come again to the next owner; the takeover names them.
func TestTakeoverKnowsWhatWasMovedAside(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, tt := range asides {
			t.Run(tt.name, func(t *testing.T) {
				e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}
				p := e.Partition("orders", "printer", i)
				e.begin(p, 6)
				tt.do(e, p)
				first := e.own(p, tenure(bob, 1))
				if len(first.SetAside)+len(tt.want) > 0 {
					equal(t, "aside", first.SetAside, tt.want)
				}
				again := try(e.Takeover(e.ctx(), p, tenure(bob, 1), "", 0)).must(t)
				equal(t, "the same takeover again", again.SetAside, first.SetAside)
			})
		}
	})
}
