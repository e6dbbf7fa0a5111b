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
}

func entries(count, most int, max bounds, log ...uint8) Ownership {
	return Ownership{Log: log, Count: count, Faults: most, Max: max}
}

// failing has entries with which functions may fail.
func failing(fail set, most int, max bounds, log ...uint8) Ownership {
	return entries(2, most, max, log...).but(func(o *Ownership) { o.Fail = fail })
}

func (o Ownership) but(change func(*Ownership)) Ownership {
	change(&o)
	return o
}

func positionally(o *Ownership) { o.ByPosition = true }

const (
	again     = "nothing is handled again after a clean release"
	ascend    = "entries ascend within a tenure"
	follower  = "who was followed by another owner begins nothing"
	inOrder   = "an entry begins when all before it are handled"
	settled   = "what was parked and is done is not handled again"
	twice     = "nothing is handled twice in a tenure"
	lossless  = "nothing is passed over that was not handled"
	staleAck  = "no ack of an earlier owner is accepted"
	tenureAck = "no ack of an earlier tenure is accepted"
	removal   = "no member is removed whose heartbeat was always there"
	notOlder  = "no membership is followed that is older than one followed before"
)

var needs = []need{
	{FenceTakeover, entries(2, 1, bounds{lapses: 1}, 1, 2), follower},
	{FenceTenure, entries(2, 2, bounds{breaks: 1, releases: 1}, 1, 2), follower},
	{TakeoverOnce, entries(2, 1, bounds{breaks: 1}, 1, 2), again},
	{OldGroupsGo, entries(2, 1, bounds{lapses: 1}, 1, 2), staleAck},
	{OwnGroupAnew, entries(2, 1, bounds{releases: 1}, 1, 2, 3), inOrder},
	{OldestPending, entries(2, 1, bounds{crashes: 1}, 1, 2), lossless},
	{EpochStored, entries(1, 0, bounds{}, 1).but(func(o *Ownership) { o.Epochs = true }), "epochs rise"},
	{EpochClock, entries(1, 1, bounds{fails: 1}, 1).but(func(o *Ownership) { o.Epochs = true }), "epochs rise"},
	{EpochSeen, entries(1, 2, bounds{fails: 1, releases: 1}, 1).but(func(o *Ownership) { o.Epochs, o.ClockBehind = true, true }), "an executor's epochs rise"},
	{LeaseBeforeDelivery, entries(2, 1, bounds{lapses: 1}, 1, 2), follower},
	{LeaseMargin, entries(2, 1, bounds{lapses: 1}, 1, 2), follower},
	{LeaseFromRequest, entries(2, 2, bounds{lapses: 1, slowness: 1}, 1, 2), follower},
	{RefreshTakesNothing, entries(2, 1, bounds{lapses: 1}, 1, 2), "a lost lock is never held again"},
	{RefreshStoresFloor, entries(2, 1, bounds{destroys: 1}, 1, 2), "nothing up to a stored floor is handled again"},
	{RefreshComparesTenure, entries(2, 2, bounds{fails: 1, releases: 1}, 1, 2), follower},
	{FloorWithTakeover, entries(2, 1, bounds{fails: 1}).but(func(o *Ownership) { o.Later = []uint8{2, 1, 3} }), lossless},
	{StraysAreAcked, entries(2, 1, bounds{fails: 1}, 1), stall},
	{OtherStraysAreATakeover, entries(2, 1, bounds{fails: 1}, 1).but(func(o *Ownership) { o.Later = []uint8{3, 2} }), lossless},
	{GoingBackIsATakeover, entries(2, 1, bounds{fails: 1}, 1), ascend},
	{GroupAnew, entries(2, 1, bounds{destroys: 1}, 1), stall},
	{KillBeforeHistory, entries(1, 1, bounds{breaks: 1}, 1, 2), inOrder},
	{HistoryBeforeNew, entries(1, 1, bounds{breaks: 1}, 1, 2), inOrder},
	{RefusedComesAgain, entries(2, 0, bounds{}, 1, 2, 3).but(func(o *Ownership) { o.Refuses = true }), inOrder},
	{ReleaseAwaitsRead, entries(2, 1, bounds{releases: 1}, 1, 2), again},
	{ReleaseAwaitsFunction, entries(2, 1, bounds{releases: 1}, 1, 2), again},
	{ReleaseFlushes, entries(2, 1, bounds{releases: 1}, 1, 2), tenureAck},
	{ReleaseComparesTenure, entries(2, 2, bounds{breaks: 1, releases: 1}, 1, 2), follower},
	{ShortIsAQuestion, entries(2, 1, bounds{breaks: 1}, 1), "no owner gives up while lock and group are its own"},
	{AcksAgain, entries(2, 2, bounds{breaks: 1, releases: 1}, 1), tenureAck},
	{NewIDAfterLoss, entries(1, 2, bounds{breaks: 1, lapses: 1}, 1, 2), inOrder},

	{MoveComparesTenure, failing(0b01, 2, bounds{breaks: 1, lapses: 1}, 1), settled},
	{ParksPending, failing(0b01, 1, bounds{breaks: 1}, 1), stall},
	{TakenOutAside, failing(0b10, 1, bounds{crashes: 1}, 1, 2), twice},
	{ParkedAreAside, failing(0b01, 1, bounds{destroys: 1}, 1, 2), twice},
	{ForgottenReadsAreRead, failing(0b11, 1, bounds{fails: 1}, 1).but(func(o *Ownership) { o.Later = []uint8{2} }), lossless},
	{ReadsParkedAgain, failing(0b01, 1, bounds{fails: 1}, 1), stall},
	{CommitFindsTakenOut, failing(0b01, 1, bounds{fails: 1}, 1, 2).but(positionally), lossless},

	{BeginsAtPosition, entries(2, 1, bounds{releases: 1}, 1, 2).but(positionally), again},
	{CommitsFromOne, entries(1, 2, bounds{releases: 2}, 1, 2).but(positionally), again},
	{CommitComparesTenure, entries(2, 2, bounds{breaks: 1, releases: 1}, 1, 2).but(positionally), tenureAck},
	{CommitOnce, entries(1, 2, bounds{breaks: 1, releases: 1}, 1, 2).but(positionally), again},
	{CommitAsItWas, entries(1, 2, bounds{breaks: 1, releases: 1}, 1, 2).but(positionally), again},
	{CommitLooks, entries(1, 1, bounds{fails: 1}, 1).but(positionally).but(func(o *Ownership) { o.Later = []uint8{3, 2, 4} }), lossless},
	{CommitStaysWithin, entries(1, 1, bounds{fails: 1}, 1).but(positionally).but(func(o *Ownership) { o.Later = []uint8{3, 2} }), lossless},
	{Continues, entries(1, 1, bounds{fails: 1}, 1).but(positionally).but(func(o *Ownership) { o.Later = []uint8{3, 2, 4} }), inOrder},
	{RefreshLeavesPosition, entries(1, 2, bounds{fails: 1, slowness: 1}).but(positionally).but(func(o *Ownership) { o.Later = []uint8{2, 1, 3} }), lossless},
	{LostCommitIsATakeover, entries(1, 1, bounds{fails: 1}, 1).but(positionally), stall},

	{SwapComparesAll, Membership{}, removal},
	{SwapComparesContent, Membership{Settled: true, Faults: 2, Max: bounds{fails: 1, lapses: 1}}, removal},
	{BeatBeforeJoin, Membership{}, removal},
	{ReapsTheDead, Membership{Settled: true, Faults: 1, Max: bounds{crashes: 1}}, stall},
	{ReapLooksAgain, Membership{Settled: true, Faults: 1, Max: bounds{lapses: 1}}, "no member is removed whose heartbeat is there when the removal is computed"},
	{BeatReadsMembership, Membership{}, stall},
	{BeatIsAHint, Membership{Faults: 1, Max: bounds{slowness: 1}}, "no member that was never removed takes itself for absent"},
	{LoadOvertaken, Membership{Settled: true, Faults: 3, Max: bounds{crashes: 1, releases: 1, slowness: 1}}, notOlder},
	{ReapOvertaken, Membership{Settled: true, Faults: 2, Max: bounds{crashes: 1, releases: 1}}, notOlder},
	{StoredIsTruth, Membership{Settled: true, Faults: 2, Max: bounds{fails: 1, releases: 1}}, stall},
	{AbsentRejoins, Membership{Settled: true, Faults: 1, Max: bounds{lapses: 1}}, stall},
	{LocksDecide, Membership{}, "a partition has one owner whose lease holds"},
}

// Without any one rule a promise breaks within small bounds; within the same bounds nothing breaks
// with it.
func TestEachRuleIsNeeded(t *testing.T) {
	tier.Slow(t)
	var tested Rule
	for _, n := range needs {
		tested |= n.rule
		t.Run(n.rule.String(), func(t *testing.T) {
			t.Parallel()
			without, err := off(n.of, n.rule).Explore(2_000_000)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("without it: %v", without)
			if without.Broken != n.breaks {
				t.Errorf("got %q broken, want %q", without.Broken, n.breaks)
			}
			with, err := n.of.Explore(2_000_000)
			if err != nil || with.Broken != "" {
				t.Errorf("with it: %v, %v", with, err)
			}
			t.Logf("with it: %v", with)
		})
	}
	for bit, text := range ruleTexts {
		if tested>>bit&1 == 0 {
			t.Errorf("not tested: %s", text)
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
		{"the ID of a lost entry is given again", Ownership{Log: []uint8{1}, Later: []uint8{2, 2}, Faults: 1, Max: bounds{fails: 1}}, lossless},
		{"the group is destroyed by hand as well", Ownership{Log: []uint8{1}, Later: []uint8{3, 2, 4}, Faults: 2, Max: bounds{fails: 1, destroys: 1}}, lossless},
		{"the read that brings it is lost", Ownership{Later: []uint8{2, 1, 3}, Faults: 2, Max: bounds{fails: 1, breaks: 1}}, inOrder},
		{"by position, the ID of a lost entry is given again", Ownership{ByPosition: true, Log: []uint8{1}, Later: []uint8{2, 2}, Faults: 1, Max: bounds{fails: 1}}, lossless},
		{"by position, the group is destroyed by hand as well, and a release stores its position", Ownership{ByPosition: true, Later: []uint8{2, 1, 3}, Faults: 3, Max: bounds{fails: 1, destroys: 1, releases: 1}}, lossless},
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
