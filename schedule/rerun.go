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
	if x.Time.UnixMilli() < 0 {
		return nil, refuse("%s: logical times are from 1970 on", x.Time.Format(time.RFC3339))
	}
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
	in, err := x.roots()
	if err != nil {
		return "", err
	}
	graph, _ := jobs.NewGraph(defsOf(x.all))
	if !x.Only {
		in = graph.Closure(in...)
	}
	generations, err := x.freeze(in, ischedule.Cleared)
	if err != nil {
		return "", err
	}
	cells := map[bool]map[int][]ischedule.Thaw{false: {}, true: {}} // by whether they wait for none of the others
	for _, task := range in {
		t := ischedule.Thaw{Place: x.place(task), Silent: x.Only, Waits: map[string]int64{}}
		for _, need := range graph.Needs(task) {
			if g, inside := generations[need.Source.String()]; inside && !x.Only && !graph.Handles(task) {
				t.Waits[need.Source.String()] = g
			}
		}
		alone := len(t.Waits) == 0
		t.Fires = alone && x.Kind != ischedule.OpClear
		n := x.s.partition(t.Task)
		cells[alone][n] = append(cells[alone][n], t)
	}
	// What fires by itself comes last: its tokens must find the others as they are to be.
	for _, alone := range []bool{false, true} {
		if err := x.s.calls.Thaw(x.ctx, x.Number, ischedule.ClassOf(x.Priority), cells[alone]); err != nil {
			return "", err
		}
	}
	did := "activated"
	if x.Kind == ischedule.OpClear {
		did = "cleared"
	}
	return fmt.Sprintf("%s: %d tasks at %s", did, len(in), x.Time.Format(time.RFC3339)), nil
}

// place is a task at the time.
func (x *operation) place(task jobs.Source) ischedule.Place {
	return ischedule.Place{Task: task.String(), Time: x.Time.UnixMilli()}
}

// freeze freezes tasks at the time. It returns the next generation of each.
func (x *operation) freeze(tasks []jobs.Source, to string) (generations map[string]int64, err error) {
	by := map[int][]ischedule.Place{}
	for _, task := range tasks {
		n := x.s.partition(task.String())
		by[n] = append(by[n], x.place(task))
	}
	return x.s.calls.Freeze(x.ctx, x.Number, to, by)
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
	_, err = x.freeze(roots, ischedule.Cancelled)
	return "cancelled", err
}
