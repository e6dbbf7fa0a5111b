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
	handles bool  // failures
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
// there, and a cycle. All faults name the job.
func NewGraph(all map[string]*Job) (g *Graph, faults []Fault) {
	g = &Graph{nodes: map[Source]*node{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, t := range all[name].Triggers {
			g.add(Source{name, t.Name, true}, &node{})
		}
		for _, t := range all[name].Tasks {
			n := &node{handles: len(t.OnFailure) > 0}
			for _, text := range slices.Concat(t.After, t.OnFailure) {
				if r, err := ParseRef(name, text); err == nil {
					n.needs = append(n.needs, r)
				}
			}
			g.add(Source{name, t.Name, false}, n)
		}
	}
	for _, s := range g.order {
		n := g.nodes[s]
		for _, r := range n.needs {
			kind := OnSuccess
			if n.handles {
				kind = OnFailure
			} else if r.Ended {
				kind = OnEnd
			}
			if from := g.nodes[r.Source]; from != nil {
				from.targets = append(from.targets, Target{s, kind})
			} else {
				reason := fmt.Sprintf("%s is not there: %s", r.Source, g.there(r.Source))
				faults = append(faults, Fault{Place: s.String(), Reason: reason})
			}
		}
	}
	return g, append(faults, g.cycle()...)
}

func (g *Graph) add(s Source, n *node) {
	g.nodes[s] = n
	g.order = append(g.order, s)
}

// there says what is there instead of a source.
func (g *Graph) there(s Source) string {
	var names []string
	known := false
	for _, other := range g.order {
		known = known || other.Job == s.Job
		if other.Job == s.Job && other.Trigger == s.Trigger {
			names = append(names, other.Name)
		}
	}
	switch {
	case !known:
		return "there is no job " + s.Job
	case len(names) == 0:
		return fmt.Sprintf("job %s has no %s", s.Job, s.kind())
	}
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("the %ss of job %s are %s", s.kind(), s.Job, strings.Join(names, ", "))
}

// cycle returns a fault for a cycle, if there is one.
func (g *Graph) cycle() []Fault {
	left := map[Source]bool{}
	for s := range g.nodes {
		left[s] = true
	}
	for _, s := range g.sorted(left) {
		delete(left, s)
	}
	if len(left) == 0 {
		return nil
	}
	// Each that is left waits for another one that is left.
	needed := func(s Source) Source {
		needs := g.nodes[s].needs
		return needs[slices.IndexFunc(needs, func(r Ref) bool { return left[r.Source] })].Source
	}
	s := g.order[slices.IndexFunc(g.order, func(s Source) bool { return left[s] })]
	for seen := map[Source]bool{}; !seen[s]; s = needed(s) {
		seen[s] = true
	}
	way := []string{s.String()}
	for at := needed(s); at != s; at = needed(at) {
		way = append(way, at.String())
	}
	way = append(way, s.String())
	slices.Reverse(way)
	return []Fault{{Place: s.String(), Reason: "it waits for itself: " + strings.Join(way, " → ")}}
}

// at returns the node of a source, an empty one if it is not there.
func (g *Graph) at(s Source) *node { return cmp.Or(g.nodes[s], &node{}) }

// Targets returns the tasks that a source's end concerns, in the order of their jobs.
func (g *Graph) Targets(s Source) []Target { return g.at(s).targets }

// Needs returns what a task waits for.
func (g *Graph) Needs(task Source) []Ref { return g.at(task).needs }

// Handles reports whether a task handles failures.
func (g *Graph) Handles(task Source) bool { return g.at(task).handles }

// Closure returns tasks and all that hang on them, by their success or their end; handlers of failures are no part of it.
// Each comes behind those that it waits for.
func (g *Graph) Closure(roots ...Source) []Source {
	in := map[Source]bool{}
	for left := slices.Clone(roots); len(left) > 0; {
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
		in[s] = s.Job == job && !s.Trigger
	}
	return g.sorted(in)
}

// sorted returns tasks, each behind those among them that it waits for, by Kahn's algorithm. Those in a cycle, and behind it,
// are left out.
func (g *Graph) sorted(in map[Source]bool) (free []Source) {
	waits := map[Source]int{}
	for _, s := range g.order {
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
	for i := 0; i < len(free); i++ {
		for _, t := range g.nodes[free[i]].targets {
			if waits[t.Task]--; waits[t.Task] == 0 && in[t.Task] {
				free = append(free, t.Task)
			}
		}
	}
	return free
}
