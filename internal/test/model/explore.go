package model

import (
	"fmt"
	"strings"
)

// A machine is what explore explores.
type machine[S comparable] interface {
	start() S
	// steps appends everything that may happen next in a state.
	steps(s *S, out []step[S]) []step[S]
	// canon makes states equal that differ in names only.
	canon(s *S)
	// broken returns the promise that a state breaks, "" if none.
	broken(s *S) string
	// goal reports whether a state must always be reachable again.
	goal(s *S) bool
}

// A step is one thing that may happen.
type step[S comparable] struct {
	next   S
	label  label
	fair   bool   // it happens some time by itself: a part of the protocol, no fault
	breaks string // the promise that it breaks, "" if it breaks none
}

// A collector collects the steps after one state.
type collector[S comparable] struct {
	s   *S
	out []step[S]
}

// step adds a fair step: do changes the state and returns a broken promise, or "".
func (c *collector[S]) step(format string, args [4]uint8, do func(n *S) string) {
	c.add(true, format, args, do)
}

// then adds a fair step that breaks no promise.
func (c *collector[S]) then(format string, args [4]uint8, do func(n *S)) {
	c.add(true, format, args, func(n *S) string { do(n); return "" })
}

func (c *collector[S]) add(fair bool, format string, args [4]uint8, do func(n *S) string) {
	c.out = append(c.out, step[S]{next: *c.s, label: label{format, args}, fair: fair})
	last := &c.out[len(c.out)-1]
	last.breaks = do(&last.next)
}

// A label describes a step. Its text is made only when it is shown.
type label struct {
	format string
	args   [4]uint8
}

func (l label) String() string {
	args := make([]any, strings.Count(l.format, "%"))
	for i := range args {
		args[i] = l.args[i]
	}
	return fmt.Sprintf(l.format, args...)
}

// stall is the promise that a state breaks from which the goal is out of reach.
const stall = "no stall"

// Result is what an exploration found.
type Result struct {
	States int // that can be reached, up to names
	Steps  int // between them
	Depth  int // the number of steps to the last of them
	Goals  int // how many of them are goals

	Broken string   // the promise that is broken, "" for none
	Trace  []string // the fewest steps that break it; then nothing else was explored
}

// String returns the result, with the steps to it.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d states, %d steps, depth %d", r.States, r.Steps, r.Depth)
	if r.Broken != "" {
		fmt.Fprintf(&b, "; broken: %s", r.Broken)
		for i, line := range r.Trace {
			fmt.Fprintf(&b, "\n  %2d %s", i+1, line)
		}
	}
	return b.String()
}

// An explorer visits every state, those with the fewest steps before them first.
type explorer[S comparable] struct {
	m       machine[S]
	states  *table[S]
	parents chunks[uint32]
	fair    chunks[uint32] // the states after each by a fair step
	ends    chunks[uint32] // where those of each state end in fair
	out     []step[S]
	result  Result
}

// explore visits every state that can be reached, and stops at the first promise
// that is broken. More states than limit are an error: the bounds are too large.
func explore[S comparable](m machine[S], limit int) (Result, error) {
	e := &explorer[S]{m: m, states: newTable[S]()}
	first := m.start()
	m.canon(&first)
	e.states.add(&first)
	e.parents.add(0)
	for i, level := 0, 1; i < e.states.n; i++ {
		if i == level {
			e.result.Depth++
			level = e.states.n
		}
		if e.visit(i) {
			e.result.States = e.states.n
			return e.result, nil
		}
		if e.states.n > limit {
			return e.result, fmt.Errorf("more than %d states: the bounds are too large", limit)
		}
	}
	e.result.States = e.states.n
	e.live()
	return e.result, nil
}

// visit adds the states after one, and reports whether a promise is broken.
func (e *explorer[S]) visit(i int) (broken bool) {
	s := *e.states.at(i)
	e.out = e.m.steps(&s, e.out[:0])
	for k := range e.out {
		st := &e.out[k]
		e.result.Steps++
		if st.breaks == "" {
			st.breaks = e.m.broken(&st.next)
		}
		if st.breaks != "" {
			e.result.Broken = st.breaks
			e.result.Trace = e.trace(i, st.breaks)
			return true
		}
		e.m.canon(&st.next)
		j, fresh := e.states.add(&st.next)
		if fresh {
			e.parents.add(uint32(i))
		}
		if st.fair && i != j {
			e.fair.add(uint32(j))
		}
	}
	e.ends.add(uint32(e.fair.n))
	return false
}

// live finds the first state from which no fair steps lead to a goal. Most steps
// lead to states of higher numbers, so a few rounds from the end suffice.
func (e *explorer[S]) live() {
	can := make([]bool, e.states.n)
	for i := range can {
		if can[i] = e.m.goal(e.states.at(i)); can[i] {
			e.result.Goals++
		}
	}
	for changed := true; changed; {
		changed = false
		for i := len(can) - 1; i >= 0; i-- {
			if !can[i] && e.leads(i, can) {
				can[i], changed = true, true
			}
		}
	}
	for i := range can {
		if !can[i] {
			e.result.Broken = stall
			e.result.Trace = append(e.trace(i, ""), fmt.Sprintf("and from here the goal is out of reach: %+v", *e.states.at(i)))
			return
		}
	}
}

func (e *explorer[S]) leads(i int, can []bool) bool {
	from := 0
	if i > 0 {
		from = int(*e.ends.at(i - 1))
	}
	for k := from; k < int(*e.ends.at(i)); k++ {
		if can[*e.fair.at(k)] {
			return true
		}
	}
	return false
}

// renamed stands in a trace where executors have other names from here on.
const renamed = "(names change here)"

// trace returns the steps to a state, and then the one that breaks a promise, if any. States are
// stored up to names only, so trace repeats the way with names. Executors that differ in nothing
// else keep their order, so the way may reach the same state under other names; then trace
// continues with those.
func (e *explorer[S]) trace(to int, breaks string) (lines []string) {
	var way []int
	for i := to; i > 0; i = int(*e.parents.at(i)) {
		way = append(way, i)
	}
	s, at := e.m.start(), 0
	follow := func(is func(*step[S]) bool) {
		st, ok := e.find(&s, is)
		if !ok {
			lines = append(lines, renamed)
			st, _ = e.find(e.states.at(at), is)
		}
		lines, s = append(lines, st.label.String()), st.next
	}
	for ; len(way) > 0; way = way[:len(way)-1] {
		next := way[len(way)-1]
		follow(func(st *step[S]) bool {
			known := st.next
			e.m.canon(&known)
			return known == *e.states.at(next)
		})
		at = next
	}
	if breaks != "" {
		follow(func(st *step[S]) bool {
			return st.breaks == breaks || st.breaks == "" && e.m.broken(&st.next) == breaks
		})
	}
	return lines
}

// find returns the first of the steps after a state that is the one.
func (e *explorer[S]) find(s *S, is func(*step[S]) bool) (step[S], bool) {
	steps := e.m.steps(s, nil)
	for i := range steps {
		if is(&steps[i]) {
			return steps[i], true
		}
	}
	return step[S]{}, false
}
