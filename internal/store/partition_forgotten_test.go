package store

import (
	"encoding/json"
	"testing"
	"time"
)

// ends sums up what Redis forgot.
func (f *Forgotten) ends() string {
	if f == nil {
		return ""
	}
	return f.What + " " + f.From + " " + f.To
}

// A forgetting happens after alice, with epoch e1, was given 1-1 to 3-3 and acked 1-1. With take,
// bob takes over. Then Redis is asked what alice knew.
type forgetting struct {
	name     string
	happens  func(e *env, p Partition)
	take     bool
	largest  bool   // bob has seen alice's epoch
	back     string // the committed position that alice found instead of her own
	takeover string // reported by bob's takeover
	asked    string // reported by Forgotten
	view     string // shown by a view afterwards
}

var forgettings = []forgetting{
	{name: "nothing"},
	{name: "nothing, taken over", take: true, largest: true},
	{name: "the group destroyed", take: true, happens: func(e *env, p Partition) {
		e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice))
	}},
	{name: "the partition deleted", take: true, happens: func(e *env, p Partition) { e.raw.Del(e.ctx(), p.Log) },
		takeover: "partition 1-1 1-1", view: "partition 1-1 1-1"},
	{name: "the partition renamed, and begun again", take: true, happens: func(e *env, p Partition) {
		e.checkpoint(p, tenure(alice, 1), "3-3", 3)
		e.raw.Rename(e.ctx(), p.Log, "aside")
		e.add(p.Log, "9-9")
	}, takeover: "partition 3-3 3-3", view: "partition 3-3 3-3"},
	{name: "all flushed", happens: func(e *env, p Partition) { e.raw.FlushAll(e.ctx()) },
		asked: "state 0-0 3-3", view: "state 0-0 3-3"},
	{name: "all flushed, taken over", take: true, happens: func(e *env, p Partition) { e.raw.FlushAll(e.ctx()) },
		asked: "state 0-0 3-3", view: "state 0-0 3-3"},
	{name: "all flushed, taken over by one who knows", take: true, largest: true, happens: func(e *env, p Partition) { e.raw.FlushAll(e.ctx()) },
		takeover: "state 0-0 ", view: "state 0-0 "},
	{name: "an older copy", happens: older, asked: "state 1-1 3-3", view: "state 1-1 3-3"},
	{name: "an older copy, taken over", take: true, happens: older, asked: "state 1-1 3-3", view: "state 1-1 3-3"},
	{name: "an older copy, and alice has stored her floor again", take: true, back: "1-1", happens: func(e *env, p Partition) {
		older(e, p)
		e.checkpoint(p, tenure(alice, 1), "3-3", 3)
	}, asked: "state 1-1 3-3", view: "state 1-1 3-3"},
	{name: "an older copy of which all was trimmed, and more was sent", happens: func(e *env, p Partition) {
		older(e, p)
		e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 0).Err())
		e.add(p.Log, "9-9")
	}, asked: "state 1-1 3-3", view: "state 1-1 3-3"},
	{name: "the ownership deleted", happens: func(e *env, p Partition) { e.raw.Del(e.ctx(), p.Own) },
		asked: "state 0-0 3-3", view: "state 0-0 3-3"},
	{name: "the position set back by hand", happens: setBack},
	{name: "the position set back by hand, taken over", take: true, happens: setBack},
	{name: "all acked trimmed, and the position set back by hand", happens: trimmedAndSetBack},
	{name: "all acked trimmed, and the position set back by hand, taken over", take: true, happens: trimmedAndSetBack},
	{name: "all acked trimmed, and the group destroyed", take: true, happens: func(e *env, p Partition) {
		trimmed(e, p)
		e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice))
	}},
	{name: "all acked deleted, and the position set back by hand, taken over", take: true, happens: func(e *env, p Partition) {
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "2-2", "3-3")
		e.checkpoint(p, tenure(alice, 1), "3-3", 3)
		e.raw.XDel(e.ctx(), p.Log, "1-1", "2-2", "3-3")
		setBack(e, p)
	}},
	{name: "the processor removed", happens: removed},
	{name: "the processor removed, and taken over", take: true, happens: removed},
	{name: "the processor removed, and taken over by one who knows", take: true, largest: true, happens: removed},
	{name: "the position set by an operator", take: true, happens: func(e *env, p Partition) {
		e.own(p, tenure(carol, 5))
		if _, err := e.Reset(e.ctx(), p, tenure(carol, 5), "0-0"); err != nil {
			e.t.Fatal(err)
		}
		e.must(e.Unlock(e.ctx(), p, tenure(carol, 5)))
	}},
}

func TestWhatRedisHasForgotten(t *testing.T) {
	for _, tt := range forgettings {
		t.Run(tt.name, func(t *testing.T) { tt.play(t) })
	}
}

func (tt forgetting) play(t *testing.T) {
	e := realEnv(t)
	p := e.Partition("orders", "printer", 0)
	e.add(p.Log, "1-1")
	e.add(p.Log, "2-2")
	had := e.own(p, tenure(alice, 1))
	e.read(p, alice, 1)
	e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "1-1")
	e.checkpoint(p, tenure(alice, 1), "1-1", 1)
	copies := map[string]string{p.Log: e.raw.Dump(e.ctx(), p.Log).Val(), p.Own: e.raw.Dump(e.ctx(), p.Own).Val()}
	e.add(p.Log, "3-3")
	e.read(p, alice, 2)
	if tt.happens != nil {
		for key, value := range copies {
			e.raw.Set(e.ctx(), "copy of "+key, value, 0)
		}
		tt.happens(e, p)
	}
	if tt.take {
		e.raw.Del(e.ctx(), p.Lock)
		e.lock(p, tenure(bob, 1))
		largest := int64(1)
		if tt.largest {
			largest = had.Epoch
		}
		for range 2 {
			pos := try(e.Takeover(e.ctx(), p, tenure(bob, 1), "", largest)).must(t)
			equal(t, "told by the takeover", pos.Forgotten.ends(), tt.takeover)
		}
	}
	known := []Known{{Place: p, Group: GroupName(p.Processor, alice), Epoch: had.Epoch, Given: "3-3", Back: tt.back}}
	for range 2 {
		found := try(e.Forgotten(e.ctx(), known)).must(t)
		if tt.asked == "" || found[0] != nil {
			equal(t, "asked", found[0].ends(), tt.asked)
		}
	}
	views := try(e.Views(e.ctx(), []Partition{p})).must(t)
	equal(t, "seen", views[0].Forgotten.ends(), tt.view)
}

func setBack(e *env, p Partition) {
	e.must(e.raw.XGroupSetID(e.ctx(), p.Log, GroupName(p.Processor, alice), "0").Err())
}

func trimmed(e *env, p Partition) {
	e.ack(p, alice, "2-2", "3-3")
	e.checkpoint(p, tenure(alice, 1), "3-3", 3)
	e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 0).Err())
}

func trimmedAndSetBack(e *env, p Partition) {
	trimmed(e, p)
	setBack(e, p)
}

func removed(e *env, p Partition) {
	e.must(e.raw.Del(e.ctx(), p.Lock).Err())
	e.must(e.Forget(e.ctx(), p, true))
}

func older(e *env, p Partition) {
	for _, key := range []string{p.Log, p.Own} {
		e.must(e.raw.RestoreReplace(e.ctx(), key, 0, e.raw.Get(e.ctx(), "copy of "+key).Val()).Err())
	}
}

func TestWhatRedisHasForgottenIsShownForADay(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.add(p.Log, "1-1")
		e.own(p, tenure(alice, 1))
		e.must(e.raw.Del(e.ctx(), p.Log).Err())
		pos := e.own(p, tenure(bob, 1))
		equal(t, "told", pos.Forgotten.ends(), "partition 0-0 0-0")
		equal(t, "told to the next owner", e.own(p, tenure(carol, 1)).Forgotten.ends(), "")
		shown := func() string {
			views := try(e.Views(e.ctx(), []Partition{p})).must(t)
			return views[0].Forgotten.ends()
		}
		equal(t, "seen", shown(), "partition 0-0 0-0")
		stored := e.raw.HGet(e.ctx(), p.Own, "forgotten").Val()
		f := parseForgotten(stored)
		f.At -= (25 * time.Hour).Milliseconds()
		text := try(json.Marshal(f)).must(t)
		e.must(e.raw.HSet(e.ctx(), p.Own, "forgotten", text).Err())
		equal(t, "seen a day later", shown(), "")
	})
}
