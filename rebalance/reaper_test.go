package rebalance

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// crowd returns the machine of one of many members, m00, m01 and so on, that follows their
// membership.
func crowd(t *testing.T, self string, many int) *machine {
	t.Helper()
	g := Group{}
	for n := range many {
		g = g.Join(fmt.Sprintf("m%02d", n), Executor{Worker: "w", Expiry: 10 * time.Second}, many, "p")
	}
	m := newMachine(self, "membership-key", 10*time.Second, func(d time.Duration) time.Duration { return d })
	now := time.Now()
	m.start(now, 0)
	m.joined(now, g.Encode(), nil)
	m.checking = nil
	return m
}

func asked(actions []action, v verb) []string {
	for _, a := range actions {
		if a.verb == v {
			return a.executors
		}
	}
	return nil
}

// Each member is watched by the three before it. A member that finds a dead one checks all, and
// then removes all dead ones.
func TestMembersLookAtTheNextThree(t *testing.T) {
	watchers := map[string]int{}
	for n := range 20 {
		self := fmt.Sprintf("m%02d", n)
		m := crowd(t, self, 20)
		next := asked(m.observed(time.Now(), m.seen), doAlive)
		if len(next) != watched || slices.Contains(next, self) {
			t.Fatalf("%s looks at %v", self, next)
		}
		for _, id := range next {
			watchers[id]++
		}
	}
	for id, n := range watchers {
		if n != watched {
			t.Errorf("%s is looked at by %d", id, n)
		}
	}
	if len(watchers) != 20 {
		t.Errorf("only %d are looked at", len(watchers))
	}

	m := crowd(t, "m18", 20)
	now := time.Now()
	if next := asked(m.observed(now, m.seen), doAlive); !slices.Equal(next, []string{"m19", "m00", "m01"}) {
		t.Fatalf("m18 looks at %v", next)
	}
	life := map[string]time.Duration{"m19": 9 * time.Second, "m01": 9 * time.Second}
	all := asked(m.alive(now, life, nil), doAlive)
	if len(all) != 19 {
		t.Fatalf("after one was found dead it looks at %v", all)
	}
	for _, id := range all {
		if id != "m00" && id != "m07" {
			life[id] = 9 * time.Second
		}
	}
	if dead := asked(m.alive(now, life, nil), doReap); !slices.Equal(dead, []string{"m00", "m07"}) {
		t.Errorf("it removes %v", dead)
	}
}

func TestWaitingForATurnIsNoWarning(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int // tries until the warning
	}{{fmt.Errorf("admin lock: %w", ErrBusy), busyTries + 1}, {errors.New("connection reset"), 1}} {
		m := newMachine("me", "membership-key", time.Second, func(d time.Duration) time.Duration { return d })
		now := time.Now()
		m.start(now, 0)
		tries := 0
		for warned := false; !warned && tries < 2*busyTries; {
			tries++
			warned = slices.ContainsFunc(m.joined(now, nil, tt.err), func(a action) bool { return a.verb == doWarn })
			now = now.Add(time.Minute)
			m.tick(now)
		}
		if tries != tt.want {
			t.Errorf("%v is warned of at try %d, want %d", tt.err, tries, tt.want)
		}
	}
}
