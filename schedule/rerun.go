package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// roots are the tasks that the operation names, or those that hang on triggers.
func (x *operation) roots() (roots []jobs.Source, err error) {
	def := x.all[x.Job].Def
	for _, t := range def.Tasks {
		on := len(x.Tasks) == 0 && slices.ContainsFunc(t.After, func(text string) bool {
			r, _ := jobs.ParseRef(x.Job, text)
			return r.Trigger
		})
		if on || slices.Contains(x.Tasks, t.Name) {
			roots = append(roots, jobs.Source{Job: x.Job, Name: t.Name})
		}
	}
	for _, name := range x.Tasks {
		if !slices.ContainsFunc(def.Tasks, func(t jobs.Task) bool { return t.Name == name }) {
			return nil, refuse("job %s has no task %s", x.Job, name)
		}
	}
	if len(roots) == 0 {
		return nil, refuse("no task of job %s hangs on a trigger: name one", x.Job)
	}
	return roots, nil
}

// activate runs tasks at a time, done or not, and all that hangs on them; OpClear only makes void what is there.
func (x *operation) activate() (string, error) {
	roots, err := x.roots()
	if err != nil {
		return "", err
	}
	return x.rerun(roots, x.Time)
}

func (x *operation) rerun(roots []jobs.Source, at int64) (string, error) {
	graph, _ := jobs.NewGraph(defsOf(x.all))
	in := roots
	if !x.Only {
		in = graph.Closure(roots...)
	}
	places := make([]ischedule.Place, len(in))
	for i, task := range in {
		places[i] = ischedule.Place{Task: task.String(), Time: at}
	}
	generations, err := x.freeze(places, ischedule.Cleared)
	if err != nil {
		return "", err
	}
	var waiting, firing []ischedule.Thaw
	for _, task := range in {
		t := ischedule.Thaw{Place: ischedule.Place{Task: task.String(), Time: at}, Silent: x.Only, Waits: map[string]int64{}}
		for _, need := range graph.Needs(task) {
			if g, inside := generations[need.Source.String()]; inside && !x.Only && !graph.Handles(task) {
				t.Waits[need.Source.String()] = g
			}
		}
		if t.Fires = len(t.Waits) == 0 && x.Kind != ischedule.OpClear; len(t.Waits) == 0 {
			firing = append(firing, t)
		} else {
			waiting = append(waiting, t)
		}
	}
	// What fires by itself comes last: its tokens must find the others as they are to be.
	for _, some := range [][]ischedule.Thaw{waiting, firing} {
		if err := x.thaw(some); err != nil {
			return "", err
		}
	}
	did := "activated"
	if x.Kind == ischedule.OpClear {
		did = "cleared"
	}
	return fmt.Sprintf("%s: %d tasks at %s", did, len(in), time.UnixMilli(at).UTC().Format(time.RFC3339)), nil
}

// freeze freezes cells in all partitions. It returns the next generation of each.
func (x *operation) freeze(places []ischedule.Place, to string) (map[string]int64, error) {
	generations := map[string]int64{}
	for n, some := range x.byPartition(places) {
		for chunk := range slices.Chunk(some, ischedule.PerCall) {
			got, err := x.s.calls.Freeze(x.ctx, n, x.Number, to, chunk)
			if err != nil {
				return nil, err
			}
			for i, g := range got {
				if g > 0 {
					generations[chunk[i].Task] = g
				}
			}
		}
	}
	return generations, nil
}

func (x *operation) byPartition(places []ischedule.Place) map[int][]ischedule.Place {
	by := map[int][]ischedule.Place{}
	for _, p := range places {
		n := x.s.partition(p.Task)
		by[n] = append(by[n], p)
	}
	return by
}

func (x *operation) thaw(all []ischedule.Thaw) error {
	by := map[int][]ischedule.Thaw{}
	for _, t := range all {
		n := x.s.partition(t.Task)
		by[n] = append(by[n], t)
	}
	for n, some := range by {
		for chunk := range slices.Chunk(some, ischedule.PerCall) {
			if err := x.s.calls.Thaw(x.ctx, n, x.Number, x.Priority, chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// cancel ends what is under way of tasks at a time.
func (x *operation) cancel() (string, error) {
	if len(x.Tasks) == 0 {
		return "", refuse("name the task")
	}
	roots, err := x.roots()
	if err != nil {
		return "", err
	}
	var places []ischedule.Place
	for _, task := range roots {
		places = append(places, ischedule.Place{Task: task.String(), Time: x.Time})
	}
	_, err = x.freeze(places, ischedule.Cancelled)
	return "cancelled", err
}
