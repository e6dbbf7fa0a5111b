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
	order []Source // each behind those that it waits for
}

type node struct {
	handles bool     // failures
	needs   []Ref    // After, or OnFailure
	targets []Source // tasks that wait for it
}

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
		for _, r := range g.nodes[s].needs {
			if from := g.nodes[r.Source]; from != nil {
				from.targets = append(from.targets, s)
			} else {
				reason := fmt.Sprintf("%s is not there: %s", r.Source, g.there(r.Source))
				faults = append(faults, Fault{Place: s.String(), Reason: reason})
			}
		}
	}
	return g, append(faults, g.sort()...)
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

// sort puts each source behind those that it waits for, by Kahn's algorithm, and returns a fault for a cycle if there is one.
// What is in it, and behind it, has no place in the order.
func (g *Graph) sort() []Fault {
	waits := map[Source]int{}
	for _, n := range g.nodes {
		for _, t := range n.targets {
			waits[t]++
		}
	}
	written, waiting := g.order, func(s Source) bool { return waits[s] > 0 }
	g.order = slices.DeleteFunc(slices.Clone(written), waiting)
	for i := 0; i < len(g.order); i++ {
		for _, t := range g.nodes[g.order[i]].targets {
			if waits[t]--; !waiting(t) {
				g.order = append(g.order, t)
			}
		}
	}
	at := slices.IndexFunc(written, waiting)
	if at < 0 {
		return nil
	}
	// Each that is left waits for another one that is left.
	needed := func(s Source) Source {
		needs := g.nodes[s].needs
		return needs[slices.IndexFunc(needs, func(r Ref) bool { return waiting(r.Source) })].Source
	}
	s := written[at]
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

// Targets returns the tasks that wait for a source, or handle its failures, in the order of their jobs.
func (g *Graph) Targets(s Source) []Source { return g.at(s).targets }

// Needs returns what a task waits for.
func (g *Graph) Needs(task Source) []Ref { return g.at(task).needs }

// Handles reports whether a task handles failures.
func (g *Graph) Handles(task Source) bool { return g.at(task).handles }

// Closure returns tasks and all that hang on them, by their success or their end; handlers of failures are no part of it.
// Each comes behind those that it waits for.
func (g *Graph) Closure(roots ...Source) (all []Source) {
	in := map[Source]bool{}
	for _, s := range roots {
		in[s] = true
	}
	for _, s := range g.order {
		n := g.nodes[s]
		hangs := func(r Ref) bool { return !n.handles && in[r.Source] }
		if in[s] = in[s] || slices.ContainsFunc(n.needs, hangs); in[s] {
			all = append(all, s)
		}
	}
	return all
}

// Tasks returns the tasks of a job, each behind those that it waits for.
func (g *Graph) Tasks(job string) []Source {
	return slices.DeleteFunc(slices.Clone(g.order), func(s Source) bool { return s.Job != job || s.Trigger })
}
