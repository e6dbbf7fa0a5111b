package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Graph is the tasks of all jobs of a scheduler, and what they wait for.
type Graph struct {
	order   []Source         // all sources, each behind those that it waits for
	needs   map[Source][]Ref // of all sources: After, or OnFailure
	handles map[Source]bool  // failures
}

// NewGraph returns the graph of jobs without faults of their own, and what is wrong with it: sources that are not
// there, and a cycle. All faults name the job.
func NewGraph(all map[string]*Job) (g *Graph, faults []Fault) {
	g = &Graph{needs: map[Source][]Ref{}, handles: map[Source]bool{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, t := range all[name].Triggers {
			g.add(Source{name, t.Name, true}, nil, nil)
		}
		for _, t := range all[name].Tasks {
			g.add(Source{name, t.Name, false}, t.After, t.OnFailure)
		}
	}
	for _, s := range g.order {
		for _, r := range g.needs[s] {
			if _, there := g.needs[r.Source]; !there {
				reason := fmt.Sprintf("%s is not there: %s", r.Source, g.instead(r.Source, all[r.Job] != nil))
				faults = append(faults, Fault{Place: s.String(), Reason: reason, Jobs: []string{r.Job}})
			}
		}
	}
	return g, append(faults, g.sort()...)
}

func (g *Graph) add(s Source, after, onFailure []string) {
	g.order = append(g.order, s)
	g.needs[s], g.handles[s] = nil, len(onFailure) > 0
	for _, text := range slices.Concat(after, onFailure) {
		r, _ := ParseRef(s.Job, text)
		g.needs[s] = append(g.needs[s], r)
	}
}

// Faults returns what is wrong with jobs that take the place of others, but for what was wrong before with those that stay as they are: these
// keep no other job back.
func Faults(was, now map[string]*Job) []Fault {
	_, old := NewGraph(was)
	_, faults := NewGraph(now)
	return slices.DeleteFunc(faults, func(f Fault) bool {
		s, _ := ParseSource(f.Place)
		return was[s.Job] == now[s.Job] && slices.ContainsFunc(old, func(o Fault) bool { return o.Place == f.Place && slices.Equal(o.Jobs, f.Jobs) })
	})
}

// instead says what is there instead of a source, whose job may be there.
func (g *Graph) instead(s Source, job bool) string {
	var names []string
	for _, other := range g.of(s.Job, s.Trigger) {
		names = append(names, other.Name)
	}
	const most = 10
	switch more := len(names) - most; {
	case !job:
		return "there is no job " + s.Job
	case len(names) == 0:
		return fmt.Sprintf("job %s has no %s", s.Job, kinds[s.Trigger])
	case more > 0:
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("the %ss of job %s are %s", kinds[s.Trigger], s.Job, strings.Join(names, ", "))
}

// sort puts each source behind those that it waits for, and returns a fault for the first cycle if there is one.
func (g *Graph) sort() (faults []Fault) {
	const unseen, onWay, done = 0, 1, 2
	written, state := g.order, map[Source]int{}
	g.order = nil
	var way []Source // each waits for the next one
	var visit func(s Source)
	visit = func(s Source) {
		switch _, there := g.needs[s]; {
		case state[s] == onWay && faults == nil:
			cycle, all := []string{s.String()}, []string{}
			for _, other := range slices.Backward(way[slices.Index(way, s):]) {
				cycle, all = append(cycle, other.String()), append(all, other.Job)
			}
			faults = []Fault{{Place: s.String(), Reason: "it waits for itself: " + strings.Join(cycle, " → "), Jobs: all}}
		case there && state[s] == unseen:
			state[s], way = onWay, append(way, s)
			for _, r := range g.needs[s] {
				visit(r.Source)
			}
			state[s], way = done, way[:len(way)-1]
			g.order = append(g.order, s)
		}
	}
	for _, s := range written {
		visit(s)
	}
	return faults
}

// Needs returns what a task waits for.
func (g *Graph) Needs(task Source) []Ref { return g.needs[task] }

// Handles reports whether a task handles failures.
func (g *Graph) Handles(task Source) bool { return g.handles[task] }

// Closure returns tasks and all that hang on them, by their success or their end; handlers of failures are no part of it.
// Each comes behind those that it waits for.
func (g *Graph) Closure(roots ...Source) (all []Source) {
	in := map[Source]bool{}
	for _, s := range roots {
		in[s] = true
	}
	for _, s := range g.order {
		hangs := func(r Ref) bool { return !g.handles[s] && in[r.Source] }
		if in[s] = in[s] || slices.ContainsFunc(g.needs[s], hangs); in[s] {
			all = append(all, s)
		}
	}
	return all
}

// Tasks returns the tasks of a job, each behind those that it waits for.
func (g *Graph) Tasks(job string) []Source { return g.of(job, false) }

func (g *Graph) of(job string, triggers bool) []Source {
	return slices.DeleteFunc(slices.Clone(g.order), func(s Source) bool { return s.Job != job || s.Trigger != triggers })
}
