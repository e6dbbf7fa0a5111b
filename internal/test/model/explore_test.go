package model

import (
	"slices"
	"testing"
)

// A walk is a machine on numbers, to test what explores them.
type walk struct {
	to     map[int][]int // by fair steps
	faults map[int][]int
	bad    int
	goals  []int
}

var _ machine[int] = walk{}

func (w walk) start() int       { return 0 }
func (w walk) canon(*int)       {}
func (w walk) goal(s *int) bool { return slices.Contains(w.goals, *s) }
func (w walk) broken(s *int) string {
	if *s == w.bad {
		return "bad"
	}
	return ""
}
func (w walk) steps(s *int, out []step[int]) []step[int] {
	for _, n := range w.to[*s] {
		out = append(out, step[int]{next: n, label: label{"to %d", [4]uint8{uint8(n)}}, fair: true})
	}
	for _, n := range w.faults[*s] {
		out = append(out, step[int]{next: n, label: label{"fault to %d", [4]uint8{uint8(n)}}})
	}
	return out
}

func TestExplore(t *testing.T) {
	for _, tt := range []struct {
		name   string
		w      walk
		states int
		broken string
		trace  []string
	}{
		{"a circle", walk{to: map[int][]int{0: {1}, 1: {2}, 2: {0}}, bad: -1, goals: []int{1}}, 3, "", nil},
		{"the shortest way to a bad state", walk{to: map[int][]int{0: {1, 3}, 1: {2}, 2: {9}, 3: {9}}, bad: 9, goals: []int{0}}, 4, "bad", []string{"to 3", "to 9"}},
		{"a dead end", walk{to: map[int][]int{0: {1, 2}, 1: {0}}, bad: -1, goals: []int{1}}, 3, stall, []string{"to 2"}},
		{"a circle without a goal", walk{to: map[int][]int{0: {1}, 1: {2}, 2: {1}}, bad: -1, goals: []int{0}}, 3, stall, []string{"to 1"}},
		{"a goal that only a fault reaches", walk{to: map[int][]int{0: {0}}, faults: map[int][]int{0: {1}}, bad: -1, goals: []int{1}}, 2, stall, nil},
		{"a fault that is overcome", walk{to: map[int][]int{1: {0}}, faults: map[int][]int{0: {1}}, bad: -1, goals: []int{0}}, 2, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := explore(tt.w, 100)
			if err != nil {
				t.Fatal(err)
			}
			trace := r.Trace
			if r.Broken == stall {
				trace = trace[:len(trace)-1] // the state
			}
			if r.States != tt.states || r.Broken != tt.broken || !slices.Equal(trace, tt.trace) {
				t.Errorf("got %v, want %d states, %q broken by %q", r, tt.states, tt.broken, tt.trace)
			}
		})
	}
}

// A namesake is a walk in which a number and one larger by 100 are the same state, that
// only the smaller one goes on from.
type namesake struct{ walk }

func (namesake) canon(s *int) { *s %= 100 }

// A way that cannot be repeated under its first names is shown to its end.
func TestExploreTellsTheWholeWay(t *testing.T) {
	for _, tt := range []struct {
		name  string
		to    map[int][]int
		trace []string
	}{
		{"names stay", map[int][]int{0: {1}, 1: {2}, 2: {9}}, []string{"to 1", "to 2", "to 9"}},
		{"names change on the way", map[int][]int{0: {101}, 1: {2}, 2: {9}}, []string{"to 101", renamed, "to 2", "to 9"}},
		{"names change at its end", map[int][]int{0: {1}, 1: {102}, 2: {9}}, []string{"to 1", "to 102", renamed, "to 9"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := explore(namesake{walk{to: tt.to, bad: 9}}, 100)
			if err != nil || !slices.Equal(r.Trace, tt.trace) {
				t.Errorf("got %q and %v, want %q", r.Trace, err, tt.trace)
			}
		})
	}
}

// A line of states is longer than a piece of the table, and has more states than its first slots.
func TestExploreManyStates(t *testing.T) {
	const n = 3 << chunkBits
	line := walk{to: map[int][]int{}, bad: -1, goals: []int{n - 1}}
	for i := range n - 1 {
		line.to[i] = []int{i + 1, i / 2}
	}
	r, err := explore(line, n)
	if err != nil || r.States != n || r.Depth != n-1 || r.Broken != "" {
		t.Errorf("got %v and %v, want %d states", r, err, n)
	}
	if _, err := explore(line, n-2); err == nil {
		t.Error("no error where there are more states than allowed")
	}
}

func TestExploreIsDeterministic(t *testing.T) {
	of := entries(2, 1, bounds{breaks: 1, lapses: 1}, 1, 2)
	of.Off = TakeoverOnce
	first, err := of.Explore(1_000_000)
	for range 3 {
		again, err2 := of.Explore(1_000_000)
		if err != nil || err2 != nil || first.String() != again.String() {
			t.Errorf("got %v and %v, then %v and %v", first, err, again, err2)
		}
	}
}

// States that differ in names only are one: three idle executors, of which any
// obtains the lock, are two states.
func TestNamesDoNotCount(t *testing.T) {
	m := entries(1, 0, bounds{}, 1)
	s := m.start()
	seen := map[ownState]bool{}
	steps := m.steps(&s, nil)
	for _, st := range steps {
		m.canon(&st.next)
		seen[st.next] = true
	}
	if len(steps) != executors || len(seen) != 1 {
		t.Errorf("got %d states after %d steps, want 1 after %d", len(seen), len(steps), executors)
	}
}
