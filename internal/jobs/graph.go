package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Graph is the tasks of all jobs of a scheduler, and what they wait for.
type Graph struct {
	nodes map[Source]*node
	order []Source // as they are written, jobs by name
}

type node struct {
	task    *Task // nil: a trigger
	needs   []Ref // After, or OnFailure
	targets []Target
}

// A Target is a task that a source's end concerns.
type Target struct {
	Task Source
	Kind EdgeKind
}

// An EdgeKind is which ends concern a target.
type EdgeKind int

const (
	OnSuccess EdgeKind = iota + 1
	OnEnd              // success, failure, or skip
	OnFailure          // failure, timeout, or crash, after the last attempt
)

// NewGraph returns the graph of jobs without faults of their own, and what is wrong with it: sources that are not
// there, and cycles. All faults name the job.
func NewGraph(all map[string]*Job) (*Graph, []Fault) {
	g := &Graph{nodes: map[Source]*node{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		j := all[name]
		for i := range j.Triggers {
			g.add(Source{name, j.Triggers[i].Name, true}, &node{})
		}
		for i := range j.Tasks {
			t := &j.Tasks[i]
			n := &node{task: t}
			for _, text := range slices.Concat(t.After, t.OnFailure) {
				if r, err := ParseRef(name, text); err == nil {
					n.needs = append(n.needs, r)
				}
			}
			g.add(Source{name, t.Name, false}, n)
		}
	}
	return g, append(g.connect(all), g.cycles()...)
}

func (g *Graph) add(s Source, n *node) {
	g.nodes[s] = n
	g.order = append(g.order, s)
}

// connect tells sources their targets, and returns those that are not there.
func (g *Graph) connect(all map[string]*Job) (faults []Fault) {
	for _, s := range g.order {
		n := g.nodes[s]
		for _, r := range n.needs {
			from := g.nodes[r.Source]
			if from == nil {
				faults = append(faults, Fault{Place: s.String(), Reason: fmt.Sprintf("%s is not there: %s", r.Source, g.there(all, r.Source))})
				continue
			}
			kind := OnSuccess
			if len(n.task.OnFailure) > 0 {
				kind = OnFailure
			} else if r.Ended {
				kind = OnEnd
			}
			from.targets = append(from.targets, Target{s, kind})
		}
	}
	return faults
}

// there says what is there instead of a source.
func (g *Graph) there(all map[string]*Job, s Source) string {
	if all[s.Job] == nil {
		return "there is no job " + s.Job
	}
	var names []string
	for _, other := range g.order {
		if other.Job == s.Job && other.Trigger == s.Trigger {
			names = append(names, other.Name)
		}
	}
	kind := taskKind
	if s.Trigger {
		kind = triggerKind
	}
	if len(names) == 0 {
		return fmt.Sprintf("job %s has no %s", s.Job, kind)
	}
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("the %ss of job %s are %s", kind, s.Job, strings.Join(names, ", "))
}

// cycles returns a fault for each cycle that a walk finds, at its first task. The walk needs no stack of calls: a job may
// be a chain of thousands.
func (g *Graph) cycles() (faults []Fault) {
	const open, done = 1, 2
	state := map[Source]int{}
	for _, root := range g.order {
		type step struct {
			at   Source
			next int
		}
		walk := []step{}
		enter := func(s Source) {
			state[s] = open
			walk = append(walk, step{at: s})
		}
		if state[root] == 0 {
			enter(root)
		}
		for len(walk) > 0 {
			top := &walk[len(walk)-1]
			n := g.nodes[top.at]
			if top.next == len(n.targets) {
				state[top.at] = done
				walk = walk[:len(walk)-1]
				continue
			}
			to := n.targets[top.next].Task
			top.next++
			switch state[to] {
			case 0:
				enter(to)
			case open:
				from := slices.IndexFunc(walk, func(s step) bool { return s.at == to })
				var names []string
				for _, s := range walk[from:] {
					names = append(names, s.at.String())
				}
				faults = append(faults, Fault{Place: to.String(), Reason: "it waits for itself: " + strings.Join(append(names, to.String()), " → ")})
			}
		}
	}
	return faults
}

// Targets returns the tasks that a source's end concerns, in the order of their jobs.
func (g *Graph) Targets(s Source) []Target {
	if n := g.nodes[s]; n != nil {
		return n.targets
	}
	return nil
}

// Needs returns what a task waits for.
func (g *Graph) Needs(task Source) []Ref {
	if n := g.nodes[task]; n != nil {
		return n.needs
	}
	return nil
}

// Handles reports whether a task handles failures.
func (g *Graph) Handles(task Source) bool {
	n := g.nodes[task]
	return n != nil && n.task != nil && len(n.task.OnFailure) > 0
}

// Closure returns tasks and all that hang on them, by their success or their end; handlers of failures are no part of it.
// Each comes behind those that it waits for.
func (g *Graph) Closure(roots ...Source) []Source {
	in := map[Source]bool{}
	left := slices.Clone(roots)
	for len(left) > 0 {
		s := left[len(left)-1]
		left = left[:len(left)-1]
		if in[s] || g.nodes[s] == nil {
			continue
		}
		in[s] = true
		for _, t := range g.nodes[s].targets {
			if t.Kind != OnFailure {
				left = append(left, t.Task)
			}
		}
	}
	return g.sorted(in)
}

// Tasks returns the tasks of a job, each behind those that it waits for.
func (g *Graph) Tasks(job string) []Source {
	in := map[Source]bool{}
	for s := range g.nodes {
		if s.Job == job && !s.Trigger {
			in[s] = true
		}
	}
	return g.sorted(in)
}

// sorted sorts tasks by how far they are from what they wait for among them, then as they are written.
func (g *Graph) sorted(in map[Source]bool) []Source {
	depth := map[Source]int{}
	at := map[Source]int{}
	var free []Source
	waits := map[Source]int{}
	for i, s := range g.order {
		at[s] = i
		if !in[s] {
			continue
		}
		for _, r := range g.nodes[s].needs {
			if in[r.Source] {
				waits[s]++
			}
		}
		if waits[s] == 0 {
			free = append(free, s)
		}
	}
	for i := 0; i < len(free); i++ { // Kahn's algorithm
		for _, t := range g.nodes[free[i]].targets {
			if !in[t.Task] {
				continue
			}
			depth[t.Task] = max(depth[t.Task], depth[free[i]]+1)
			if waits[t.Task]--; waits[t.Task] == 0 {
				free = append(free, t.Task)
			}
		}
	}
	slices.SortFunc(free, func(a, b Source) int { return cmp.Or(cmp.Compare(depth[a], depth[b]), cmp.Compare(at[a], at[b])) })
	return free
}
