package model

import (
	"testing"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// A need is a promise that breaks when a rule is switched off.
type need struct {
	rule   Rule
	of     explored
	breaks string
	dear   bool
}

func entries(count, most int, max map[fault]uint8, log ...uint8) Ownership {
	return Ownership{Log: log, Count: count, Faults: most, Max: max}
}

func (o Ownership) but(change func(*Ownership)) Ownership {
	change(&o)
	return o
}

const (
	again     = "nothing is handled again after a clean release"
	ascend    = "entries ascend within a tenure"
	follower  = "who was followed by another owner begins nothing"
	inOrder   = "an entry begins when all before it are handled"
	lossless  = "nothing is passed over that was not handled"
	staleAck  = "no ack of an earlier owner is accepted"
	tenureAck = "no ack of an earlier tenure is accepted"
	removal   = "nobody is removed whose heartbeat was always there"
	notOlder  = "no membership is followed that is older than one followed before"
)

var needs = []need{
	{FenceTakeover, entries(2, 1, map[fault]uint8{lapses: 1}, 1, 2), follower, false},
	{FenceTenure, entries(2, 2, map[fault]uint8{breaks: 1, releases: 1}, 1, 2), follower, false},
	{TakeoverOnce, entries(2, 1, map[fault]uint8{breaks: 1}, 1, 2), again, false},
	{OldGroupsGo, entries(2, 1, map[fault]uint8{lapses: 1}, 1, 2), staleAck, false},
	{OwnGroupAnew, entries(2, 1, map[fault]uint8{releases: 1}, 1, 2, 3), inOrder, false},
	{OldestPending, entries(2, 1, map[fault]uint8{crashes: 1}, 1, 2), lossless, false},
	{EpochStored, entries(1, 0, nil, 1).but(func(o *Ownership) { o.Epochs = true }), "epochs rise", false},
	{EpochClock, entries(1, 1, map[fault]uint8{fails: 1}, 1).but(func(o *Ownership) { o.Epochs = true }), "epochs rise", false},
	{EpochSeen, entries(1, 2, map[fault]uint8{fails: 1, releases: 1}, 1).but(func(o *Ownership) { o.Epochs, o.ClockBehind = true, true }), "an executor's epochs rise", false},
	{LeaseBeforeDelivery, entries(2, 1, map[fault]uint8{lapses: 1}, 1, 2), follower, false},
	{LeaseMargin, entries(2, 1, map[fault]uint8{lapses: 1}, 1, 2), follower, false},
	{LeaseFromRequest, entries(2, 2, map[fault]uint8{lapses: 1, slowness: 1}, 1, 2), follower, false},
	{RefreshTakesNothing, entries(2, 1, map[fault]uint8{lapses: 1}, 1, 2), "a lost lock is never held again", false},
	{RefreshStoresFloor, entries(2, 1, map[fault]uint8{destroys: 1}, 1, 2), "nothing up to a stored floor is handled again", false},
	{RefreshComparesTenure, entries(2, 2, map[fault]uint8{fails: 1, releases: 1}, 1, 2), follower, true},
	{FloorWithTakeover, entries(2, 1, map[fault]uint8{fails: 1}).but(func(o *Ownership) { o.Later = []uint8{2, 1, 3} }), lossless, false},
	{StraysAreAcked, entries(2, 1, map[fault]uint8{fails: 1}, 1), stall, false},
	{OtherStraysAreATakeover, entries(2, 1, map[fault]uint8{fails: 1}, 1).but(func(o *Ownership) { o.Later = []uint8{3, 2} }), lossless, false},
	{GoingBackIsATakeover, entries(2, 1, map[fault]uint8{fails: 1}, 1), ascend, false},
	{GroupAnew, entries(2, 1, map[fault]uint8{destroys: 1}, 1), stall, false},
	{KillBeforeHistory, entries(1, 1, map[fault]uint8{breaks: 1}, 1, 2), inOrder, false},
	{HistoryBeforeNew, entries(1, 1, map[fault]uint8{breaks: 1}, 1, 2), inOrder, false},
	{RefusedComesAgain, entries(2, 0, nil, 1, 2, 3).but(func(o *Ownership) { o.Refuses = true }), inOrder, false},
	{ReleaseAwaitsRead, entries(2, 1, map[fault]uint8{releases: 1}, 1, 2), again, false},
	{ReleaseAwaitsFunction, entries(2, 1, map[fault]uint8{releases: 1}, 1, 2), again, false},
	{ReleaseFlushes, entries(2, 1, map[fault]uint8{releases: 1}, 1, 2), tenureAck, false},
	{ReleaseComparesTenure, entries(2, 2, map[fault]uint8{breaks: 1, releases: 1}, 1, 2), follower, false},
	{ShortIsAQuestion, entries(2, 1, map[fault]uint8{breaks: 1}, 1), "no owner gives up while lock and group are its own", false},
	{AcksAgain, entries(2, 2, map[fault]uint8{breaks: 1, releases: 1}, 1), tenureAck, false},
	{NewIDAfterLoss, entries(1, 2, map[fault]uint8{breaks: 1, lapses: 1}, 1, 2), inOrder, false},

	{SwapComparesAll, Membership{}, removal, false},
	{SwapComparesContent, Membership{Settled: true, Faults: 2, Max: map[fault]uint8{fails: 1, lapses: 1}}, removal, true},
	{BeatBeforeJoin, Membership{}, removal, false},
	{ReapsTheDead, Membership{Settled: true, Faults: 1, Max: map[fault]uint8{crashes: 1}}, stall, false},
	{ReapLooksAgain, Membership{Settled: true, Faults: 1, Max: map[fault]uint8{lapses: 1}}, "nobody is removed whose heartbeat is there when the removal is computed", false},
	{BeatReadsMembership, Membership{}, stall, false},
	{BeatIsAHint, Membership{Faults: 1, Max: map[fault]uint8{slowness: 1}}, "nobody takes itself for absent who was never removed", false},
	{LoadOvertaken, Membership{Settled: true, Faults: 3, Max: map[fault]uint8{crashes: 1, releases: 1, slowness: 1}}, notOlder, false},
	{ReapOvertaken, Membership{Settled: true, Faults: 2, Max: map[fault]uint8{crashes: 1, releases: 1}}, notOlder, false},
	{StoredIsTruth, Membership{Settled: true, Faults: 2, Max: map[fault]uint8{fails: 1, releases: 1}}, stall, false},
	{AbsentRejoins, Membership{Settled: true, Faults: 1, Max: map[fault]uint8{lapses: 1}}, stall, false},
	{LocksDecide, Membership{}, "a partition has one owner whose lease holds", false},
}

// The test of the model: whichever rule is left out, something that was promised
// breaks within small bounds, and within the same bounds nothing breaks with it.
func TestEachRuleIsNeeded(t *testing.T) {
	tier.Slow(t)
	var tested Rule
	for _, n := range needs {
		tested |= n.rule
		if n.dear && raced {
			continue
		}
		t.Run(n.rule.String(), func(t *testing.T) {
			without, err := off(n.of, n.rule).Explore(2_000_000)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("without it: %v", without)
			if without.Broken != n.breaks {
				t.Errorf("got %q broken, want %q", without.Broken, n.breaks)
			}
			if raced {
				return
			}
			with, err := n.of.Explore(2_000_000)
			if err != nil || with.Broken != "" {
				t.Errorf("with it: %v, %v", with, err)
			}
			t.Logf("with it: %v", with)
		})
	}
	if tested != ruleEnd-1 {
		t.Errorf("rules %b are not tested", (ruleEnd-1)&^tested)
	}
	for r := Rule(1); r < ruleEnd; r <<= 1 {
		if r.String() == "" {
			t.Errorf("rule %b says nothing", r)
		}
	}
}

func off(of explored, r Rule) explored {
	switch of := of.(type) {
	case Ownership:
		of.Off = r
		return of
	case Membership:
		of.Off = r
		return of
	}
	panic("another machine")
}

// What is known to break where IDs go back: Redis gives entries IDs by its clock, so one
// that is appended after a failover may have a smaller ID than some that are lost, or the
// same, if the new master's clock is behind by more than the failover took, or two servers
// took themselves for the master for a moment.
func TestIDsThatGoBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		of     Ownership
		breaks string
	}{
		{"the ID of a lost entry is given again", Ownership{Log: []uint8{1}, Later: []uint8{2, 2}, Faults: 1, Max: map[fault]uint8{fails: 1}}, lossless},
		{"the group is destroyed by hand as well", Ownership{Log: []uint8{1}, Later: []uint8{3, 2, 4}, Faults: 2, Max: map[fault]uint8{fails: 1, destroys: 1}}, lossless},
		{"the read that brings it is lost", Ownership{Later: []uint8{2, 1, 3}, Faults: 2, Max: map[fault]uint8{fails: 1, breaks: 1}}, inOrder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.of.Count = 2
			r, err := tt.of.Explore(1_000_000)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
			if r.Broken != tt.breaks {
				t.Errorf("got %q broken, want %q: docs/protocol.md and docs/faults.md say otherwise", r.Broken, tt.breaks)
			}
		})
	}
}
