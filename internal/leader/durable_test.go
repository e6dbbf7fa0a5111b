package leader

import (
	"testing"
	"time"
)

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func minutes(from, to int) (out []time.Time) {
	for n := from; n <= to; n++ {
		out = append(out, midnight.Add(time.Duration(n)*time.Minute))
	}
	return out
}

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		name        string
		catchUp     int
		o           occasion
		first, last int // of the minutes that are due
		runs, from  int // how many run, from which minute on
	}{
		{"once: the latest of the missed ones", CatchUpOnce, begins, 1, 10, 1, 10},
		{"once: on time", CatchUpOnce, wakes, 1, 1, 1, 1},
		{"once: woken late", CatchUpOnce, wakes, 1, 3, 1, 3},
		{"once: what became due while it ran", CatchUpOnce, ran, 1, 3, 0, 0},
		{"none: all were missed", CatchUpNone, begins, 1, 10, 0, 0},
		{"none: on time", CatchUpNone, wakes, 1, 1, 1, 1},
		{"none: while it ran", CatchUpNone, ran, 1, 3, 0, 0},
		{"all: all were missed", CatchUpAll, begins, 1, 10, 10, 1},
		{"all: while it ran", CatchUpAll, ran, 1, 3, 3, 1},
		{"nothing is due", CatchUpOnce, begins, 1, 0, 0, 0},
	} {
		got := plan(tt.catchUp, tt.o, minutes(tt.first, tt.last))
		if len(got) != tt.runs || tt.runs > 0 && !got[0].Equal(minutes(tt.from, tt.from)[0]) {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestPassed(t *testing.T) {
	everyMinute := func(at time.Time) time.Time { return at.Truncate(time.Minute).Add(time.Minute) }
	for _, tt := range []struct {
		name  string
		last  time.Duration // before midnight
		next  func(time.Time) time.Time
		count int
		older bool
	}{
		{"nothing", 30 * time.Second, func(at time.Time) time.Time { return at.Truncate(time.Hour).Add(25 * time.Hour) }, 0, false},
		{"one, now", 30 * time.Second, everyMinute, 1, false},
		{"ten", 10 * time.Minute, everyMinute, 10, false},
		{"as many as run", catchUpMost * time.Minute, everyMinute, catchUpMost, false},
		{"one too many", (catchUpMost + 1) * time.Minute, everyMinute, catchUpMost, true},
		{"a year", 365 * 24 * time.Hour, everyMinute, catchUpMost, true},
		{"no more at all", time.Hour, func(time.Time) time.Time { return time.Time{} }, 0, false},
		{"of ages ago", 250 * 365 * 24 * time.Hour, func(at time.Time) time.Time { return at.Add(24 * time.Hour) }, catchUpMost, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			due, older := passed(tt.next, midnight.Add(-tt.last), midnight)
			if len(due) != tt.count || older != tt.older {
				t.Fatalf("%d due times, older %v; want %d, %v", len(due), older, tt.count, tt.older)
			}
			for i, at := range due {
				if at.After(midnight) || i > 0 && !at.After(due[i-1]) {
					t.Errorf("%v at %d", at, i)
				}
			}
		})
	}
}
