package model

import (
	"os"
	"testing"
	"time"
)

// anyFaults are all faults but those of Redis, and more.
func anyFaults(more bounds) bounds {
	all := bounds{breaks: 3, lapses: 3, crashes: 2, releases: 3, surprise: 2, slowness: 2}
	for f, n := range more {
		all[f] = max(all[f], n)
	}
	return all
}

// A bound is a configuration to explore in which no promise may be broken.
type bound struct {
	name   string
	of     explored
	states int // fewer would be another model than this one
}

type explored interface {
	Explore(limit int) (Result, error)
}

// small bounds are explored by every run of the tests.
var small = []bound{
	{"no fault", Ownership{Log: []uint8{1, 2, 3}, Count: 2}, 140},
	{"two entries, any fault", Ownership{Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{}), LateLocks: true}, 9000},
	{"one entry, any two faults", Ownership{Log: []uint8{1}, Count: 2, Faults: 2, Max: anyFaults(bounds{}), LateLocks: true}, 100_000},
	{"three entries, a part of a read is refused", Ownership{Log: []uint8{1, 2, 3}, Count: 2, Faults: 1, Refuses: true, Max: bounds{breaks: 1, releases: 1}}, 2400},
	{"connections cannot be killed", Ownership{Log: []uint8{1}, Count: 2, Faults: 2, CannotKill: true, Max: bounds{breaks: 2, lapses: 1}}, 25_000},
	{"connections cannot be killed, failover", Ownership{Log: []uint8{1}, Count: 2, Faults: 2, CannotKill: true, Max: bounds{breaks: 1, fails: 1}}, 82_000},
	{"groups are destroyed", Ownership{Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{destroys: 1})}, 15_000},
	{"FLUSHALL", Ownership{Log: []uint8{1}, Later: []uint8{2}, Count: 2, Faults: 1, Max: anyFaults(bounds{flushes: 1})}, 20_000},
	{"failover", Ownership{Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 99_000},
	{"failover that forgets entries", Ownership{Log: []uint8{1}, Later: []uint8{2}, Count: 2, Faults: 1, Max: bounds{fails: 1}}, 55_000},
	{"failover and handover", Ownership{Log: []uint8{1, 2}, Count: 2, Faults: 2, Max: bounds{fails: 1, releases: 1}}, 240_000},
	{"failover, IDs go back", Ownership{Log: []uint8{1}, Later: []uint8{3, 2}, Count: 2, Faults: 1, Max: bounds{fails: 1}}, 104_000},
	{"failover that forgets all, IDs go back", Ownership{Later: []uint8{2, 1, 3}, Count: 2, Faults: 1, Max: bounds{fails: 1}}, 19_000},
	{"epochs", Ownership{Log: []uint8{1}, Count: 1, Faults: 2, Epochs: true, Max: bounds{fails: 1, releases: 1}}, 41_000},
	{"epochs, the clock is set back", Ownership{Log: []uint8{1}, Count: 1, Faults: 2, Epochs: true, ClockBehind: true, Max: bounds{fails: 1, releases: 1}}, 46_800},
	{"by position, no fault", Ownership{ByPosition: true, Log: []uint8{1, 2, 3}, Count: 2}, 160},
	{"by position, two entries, any fault", Ownership{ByPosition: true, Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{}), LateLocks: true}, 7900},
	{"by position, one entry, any two faults", Ownership{ByPosition: true, Log: []uint8{1}, Count: 2, Faults: 2, Max: anyFaults(bounds{}), LateLocks: true}, 66_000},
	{"by position, three entries, a part of a read is refused", Ownership{ByPosition: true, Log: []uint8{1, 2, 3}, Count: 2, Faults: 1, Refuses: true, Max: bounds{breaks: 1, releases: 1}}, 1450},
	{"by position, groups are destroyed", Ownership{ByPosition: true, Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{destroys: 1})}, 9600},
	{"by position, FLUSHALL", Ownership{ByPosition: true, Log: []uint8{1}, Later: []uint8{2}, Count: 2, Faults: 1, Max: anyFaults(bounds{flushes: 1})}, 17_500},
	{"by position, failover", Ownership{ByPosition: true, Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 39_000},
	{"by position, failover that forgets entries", Ownership{ByPosition: true, Log: []uint8{1}, Later: []uint8{2}, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 94_000},
	{"by position, failover and handover", Ownership{ByPosition: true, Log: []uint8{1, 2}, Count: 2, Faults: 2, Max: bounds{fails: 1, releases: 1}}, 43_000},
	{"by position, failover, IDs go back", Ownership{ByPosition: true, Log: []uint8{1}, Later: []uint8{3, 2}, Count: 2, Faults: 2, Max: bounds{fails: 1, breaks: 1}}, 94_000},
	{"by position, failover that forgets all, IDs go back", Ownership{ByPosition: true, Later: []uint8{2, 1, 3}, Count: 2, Faults: 2, Max: bounds{fails: 1, breaks: 1}}, 17_800},
	{"both ways, two entries, any fault", Ownership{Mixed: true, Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{}), LateLocks: true}, 25_700},
	{"both ways, groups are destroyed", Ownership{Mixed: true, Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{destroys: 1})}, 37_500},
	{"both ways, failover", Ownership{Mixed: true, Log: []uint8{1, 2}, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 221_000},
	{"both ways, failover and handover", Ownership{Mixed: true, Log: []uint8{1}, Count: 2, Faults: 2, Max: bounds{fails: 1, releases: 1}}, 58_200},
	{"both ways, failover that forgets all, IDs go back", Ownership{Mixed: true, Later: []uint8{2, 1, 3}, Count: 2, Faults: 1, Max: bounds{fails: 1}}, 39_300},
	{"an event fails, any fault", Ownership{Log: []uint8{1, 2}, Fail: 0b10, Count: 2, Faults: 1, Max: anyFaults(bounds{})}, 64_000},
	{"an event fails, groups are destroyed", Ownership{Log: []uint8{1, 2}, Fail: 0b01, Count: 2, Faults: 1, Max: anyFaults(bounds{destroys: 1})}, 102_000},
	{"an event fails, failover", Ownership{Log: []uint8{1}, Fail: 0b01, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 56_000},
	{"by position, an event fails, any fault", Ownership{ByPosition: true, Log: []uint8{1, 2}, Fail: 0b10, Count: 2, Faults: 1, Max: anyFaults(bounds{})}, 77_000},
	{"by position, an event fails, groups are destroyed", Ownership{ByPosition: true, Log: []uint8{1, 2}, Fail: 0b01, Count: 2, Faults: 1, Max: anyFaults(bounds{destroys: 1})}, 138_000},
	{"by position, an event fails, failover", Ownership{ByPosition: true, Log: []uint8{1}, Fail: 0b01, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 87_000},
	{"both ways, an event fails, any fault", Ownership{Mixed: true, Log: []uint8{1, 2}, Fail: 0b10, Count: 2, Faults: 1, Max: anyFaults(bounds{})}, 213_000},
	{"both ways, an event fails, failover", Ownership{Mixed: true, Log: []uint8{1}, Fail: 0b01, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 200_000},
	{"three join", Membership{}, 2000},
	{"three join, one dies or is paused", Membership{Faults: 1, Max: bounds{crashes: 1, lapses: 1}}, 750_000},
	{"three members, any fault", Membership{Settled: true, Faults: 1, Max: anyFaults(bounds{fails: 1, destroys: 1})}, 27_000},
	{"three members, any two of some faults", Membership{Settled: true, Faults: 2, Max: bounds{breaks: 1, crashes: 1, releases: 1}}, 8500},
}

// large bounds take minutes and gigabytes: make model.
var large = []bound{
	{"two entries, any two faults", Ownership{Log: []uint8{1, 2}, Count: 2, Faults: 2, Max: anyFaults(bounds{}), LateLocks: true}, 960_000},
	{"three entries, two of some faults", Ownership{Log: []uint8{1, 2, 3}, Count: 2, Faults: 2, Max: bounds{breaks: 1, lapses: 1, releases: 1}}, 880_000},
	{"one entry, any three faults", Ownership{Log: []uint8{1}, Count: 2, Faults: 3, Max: anyFaults(bounds{}), LateLocks: true}, 2_700_000},
	{"two entries, three of some faults", Ownership{Log: []uint8{1, 2}, Count: 2, Faults: 3, Max: bounds{breaks: 1, lapses: 1, releases: 1, crashes: 1}}, 1_100_000},
	{"groups are destroyed, another fault", Ownership{Log: []uint8{1, 2}, Count: 2, Faults: 2, Max: anyFaults(bounds{destroys: 1})}, 1_800_000},
	{"FLUSHALL and another fault", Ownership{Log: []uint8{1}, Later: []uint8{2}, Count: 2, Faults: 2, Max: anyFaults(bounds{flushes: 1})}, 2_350_000},
	{"failover and another fault", Ownership{Log: []uint8{1}, Count: 2, Faults: 2, Max: anyFaults(bounds{fails: 1})}, 2_400_000},
	{"three entries, failover", Ownership{Log: []uint8{1, 2, 3}, Count: 2, Faults: 1, Max: bounds{fails: 1}}, 320_000},
	{"two failovers", Ownership{Log: []uint8{1}, Count: 2, Faults: 2, Max: bounds{fails: 2}}, 288_000},
	{"failover that forgets entries, any fault", Ownership{Log: []uint8{1, 2}, Later: []uint8{3}, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 1_650_000},
	{"failover, IDs go back, another fault", Ownership{Log: []uint8{1}, Later: []uint8{3, 2}, Count: 2, Faults: 2, Max: bounds{fails: 1, breaks: 1, slowness: 1, releases: 1}}, 2_400_000},
	{"two failovers, IDs go back", Ownership{Later: []uint8{3, 2, 1}, Count: 2, Faults: 2, Max: bounds{fails: 2}}, 1_430_000},
	{"epochs, failover and another fault", Ownership{Log: []uint8{1}, Count: 1, Faults: 2, Epochs: true, Max: bounds{fails: 1, releases: 1, lapses: 1}}, 1_200_000},
	{"by position, two entries, any two faults", Ownership{ByPosition: true, Log: []uint8{1, 2}, Count: 2, Faults: 2, Max: anyFaults(bounds{}), LateLocks: true}, 629_000},
	{"by position, three entries, two of some faults", Ownership{ByPosition: true, Log: []uint8{1, 2, 3}, Count: 2, Faults: 2, Max: bounds{breaks: 1, lapses: 1, releases: 1}}, 463_000},
	{"by position, one entry, any three faults", Ownership{ByPosition: true, Log: []uint8{1}, Count: 2, Faults: 3, Max: anyFaults(bounds{}), LateLocks: true}, 1_300_000},
	{"by position, groups are destroyed, another fault", Ownership{ByPosition: true, Log: []uint8{1, 2}, Count: 2, Faults: 2, Max: anyFaults(bounds{destroys: 1})}, 863_000},
	{"by position, FLUSHALL and another fault", Ownership{ByPosition: true, Log: []uint8{1}, Later: []uint8{2}, Count: 2, Faults: 2, Max: anyFaults(bounds{flushes: 1})}, 1_650_000},
	{"by position, failover and another fault", Ownership{ByPosition: true, Log: []uint8{1}, Count: 2, Faults: 2, Max: anyFaults(bounds{fails: 1})}, 652_000},
	{"by position, failover, IDs go back, another fault", Ownership{ByPosition: true, Log: []uint8{1}, Later: []uint8{3, 2, 4}, Count: 2, Faults: 2, Max: bounds{fails: 1, breaks: 1, slowness: 1, releases: 1}}, 838_000},
	{"by position, IDs go back, groups are destroyed", Ownership{ByPosition: true, Later: []uint8{2, 1, 3}, Count: 2, Faults: 2, Max: bounds{fails: 1, destroys: 1}}, 131_000},
	{"by position, two failovers, IDs go back", Ownership{ByPosition: true, Later: []uint8{3, 2, 1}, Count: 2, Faults: 2, Max: bounds{fails: 2}}, 93_800},
	{"both ways, one entry, any two faults", Ownership{Mixed: true, Log: []uint8{1}, Count: 2, Faults: 2, Max: anyFaults(bounds{}), LateLocks: true}, 267_000},
	{"both ways, failover and another fault", Ownership{Mixed: true, Log: []uint8{1}, Count: 2, Faults: 2, Max: anyFaults(bounds{fails: 1})}, 4_890_000},
	{"an event fails, any two faults", Ownership{Log: []uint8{1}, Fail: 0b01, Count: 2, Faults: 2, Max: anyFaults(bounds{destroys: 1}), LateLocks: true}, 760_000},
	{"two events fail, failover", Ownership{Log: []uint8{1, 2}, Fail: 0b11, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 2_500_000},
	{"two events fail, failover that forgets entries", Ownership{Log: []uint8{1}, Later: []uint8{2}, Fail: 0b11, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 4_500_000},
	{"two events fail, FLUSHALL", Ownership{Log: []uint8{1}, Later: []uint8{2}, Fail: 0b11, Count: 2, Faults: 1, Max: anyFaults(bounds{flushes: 1})}, 264_000},
	{"an event fails, failover and another fault", Ownership{Log: []uint8{1}, Fail: 0b01, Count: 2, Faults: 2, Max: bounds{fails: 1, releases: 1, breaks: 1, crashes: 1, slowness: 1}}, 900_000},
	{"by position, an event fails, any two faults", Ownership{ByPosition: true, Log: []uint8{1}, Fail: 0b01, Count: 2, Faults: 2, Max: anyFaults(bounds{destroys: 1}), LateLocks: true}, 2_600_000},
	{"by position, two events fail, failover", Ownership{ByPosition: true, Log: []uint8{1, 2}, Fail: 0b11, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 4_500_000},
	{"by position, two events fail, failover that forgets entries", Ownership{ByPosition: true, Log: []uint8{1}, Later: []uint8{2}, Fail: 0b11, Count: 2, Faults: 1, Max: anyFaults(bounds{fails: 1})}, 7_900_000},
	{"both ways, two events fail, groups are destroyed", Ownership{Mixed: true, Log: []uint8{1, 2}, Fail: 0b11, Count: 2, Faults: 1, Max: anyFaults(bounds{destroys: 1})}, 1_470_000},
	{"three join, any fault", Membership{Faults: 1, Max: anyFaults(bounds{})}, 830_000},
	{"three members, any two faults", Membership{Settled: true, Faults: 2, Max: anyFaults(bounds{})}, 3_000_000},
	{"three members, failover and another fault", Membership{Settled: true, Faults: 2, Max: bounds{fails: 1, lapses: 1}}, 1_150_000},
}

// Within the bounds every promise holds in every state that can be reached, and from
// each of them the goal can be reached again.
func TestProtocol(t *testing.T) {
	bounds, limit := small, 2_000_000
	if os.Getenv("RUNNEL_MODEL") == "large" {
		bounds, limit = large, 20_000_000
	}
	states, steps := 0, 0
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			began := time.Now()
			r, err := b.of.Explore(limit)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v, %d goals, %v", r, r.Goals, time.Since(began).Round(10*time.Millisecond))
			if r.Broken != "" {
				t.Error("a promise is broken")
			} else if r.States < b.states || r.Goals == 0 {
				t.Errorf("got %d states with %d goals, want at least %d and 1: was the model made smaller?", r.States, r.Goals, b.states)
			}
			states, steps = states+r.States, steps+r.Steps
		})
	}
	t.Logf("%d states, %d steps", states, steps)
}
