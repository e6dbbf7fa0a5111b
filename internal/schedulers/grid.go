package schedulers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/words"
)

// A Grid is the tasks of a job at its last times.
type Grid struct {
	Job   string      `json:"job"`
	Times []time.Time `json:"times"` // the newest first
	Tasks []Row       `json:"tasks"` // each behind those that it waits for
}

// A Row is a task.
type Row struct {
	Task  string `json:"task"`
	Cells []Cell `json:"cells"` // the newest first; times at which nothing is known of the task have none
}

// A Cell is a task at a logical time.
type Cell struct {
	Time       time.Time `json:"time"`
	State      string    `json:"state"`
	Generation int64     `json:"generation"`
	Attempt    int64     `json:"attempt"`
	Failed     int64     `json:"failed_attempts"`
	Crashes    int64     `json:"crashes"`
	Priority   string    `json:"priority"`
	Begun      time.Time `json:"begun,omitzero"`
	Ended      time.Time `json:"ended,omitzero"`
	Error      string    `json:"error,omitempty"`
	Waits      []string  `json:"waits_for,omitempty"` // sources without a token
	Rerun      string    `json:"operation,omitempty"` // of the re-run that it belongs to
	Attempts   []Attempt `json:"attempts,omitempty"`  // before the last one
}

// An Attempt is an earlier one of the same generation.
type Attempt struct {
	Attempt int64     `json:"attempt"`
	Begun   time.Time `json:"begun,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// letters of states in a grid.
var letters = map[string]string{
	"waiting": "w", "held": "h", "queued": "q", "running": "R", "retry": "r", "success": "S", "failed": "F", "timeout": "T",
	"crashed": "C", "skipped": "k", "cancelled": "x", "cleared": "c",
}

// open are the states of runs that have not ended.
var open = []string{"waiting", "held", "queued", "running", "retry"}

func cellOf(c *schedule.CellAt) Cell {
	out := Cell{
		Time: time.UnixMilli(c.Time).UTC(), State: c.State, Generation: c.Generation, Attempt: c.Attempt,
		Failed: c.Failed, Crashes: c.Crashes, Priority: string(schedule.PriorityOf(c.Priority)),
		Begun: timeAt(c.Begun), Ended: timeAt(c.Ended), Error: c.Error, Rerun: c.Rerun,
	}
	for source, e := range c.Edges {
		if !e.Came() && (c.State == "waiting" || c.State == "cleared") {
			out.Waits = append(out.Waits, source)
		}
	}
	slices.Sort(out.Waits)
	for _, a := range c.Attempts {
		out.Attempts = append(out.Attempts, Attempt{a.Attempt, timeAt(a.Begun), timeAt(a.Ended), a.Error})
	}
	return out
}

// cells returns the task, or all of the job, by source, at the last times before one, of each at most so many, the newest first; of a
// request with a time the last one up to that.
func (r *request) cells(ctx context.Context, before time.Time, most int) (map[string][]Cell, error) {
	if !r.at.IsZero() {
		before, most = r.at.Add(time.Millisecond), 1
	}
	by := map[int][]string{}
	for _, task := range r.def().Tasks {
		if source := r.source(task.Name); r.part == "" || r.part == task.Name {
			n := r.partition(source)
			by[n] = append(by[n], source)
		}
	}
	cells := map[string][]Cell{}
	for n, sources := range by {
		for some := range slices.Chunk(sources, max(1, schedule.PerCall/most)) {
			found, err := r.View().Look(ctx, n, some, before.UnixMilli(), most)
			if err != nil {
				return nil, err
			}
			for source, of := range found {
				for i := range of {
					cells[source] = append(cells[source], cellOf(&of[i]))
				}
			}
		}
	}
	return cells, nil
}

func runGrid(ctx context.Context, r *request) error {
	before, err := parseTime(r.Flags.String("before"), far)
	if err != nil {
		return err
	}
	cells, err := r.cells(ctx, before, r.most)
	if err != nil {
		return err
	}
	g := &Grid{Job: r.job, Times: []time.Time{}}
	for _, of := range cells {
		for i := range of {
			g.Times = append(g.Times, of[i].Time)
		}
	}
	slices.SortFunc(g.Times, func(a, b time.Time) int { return b.Compare(a) })
	g.Times = slices.Compact(g.Times)
	g.Times = g.Times[:min(len(g.Times), r.most)]
	graph, _ := jobs.NewGraph(map[string]*jobs.Job{r.job: r.def()})
	for _, task := range graph.Tasks(r.job) {
		of := slices.DeleteFunc(cells[task.String()], func(c Cell) bool { return c.Time.Before(g.Times[len(g.Times)-1]) })
		g.Tasks = append(g.Tasks, Row{task.Name, append([]Cell{}, of...)})
	}
	return r.Print(g, func(t extension.Table) { // times in rows, the oldest first, and tasks in columns: times are many, and wide
		head := []any{"TIME"}
		for _, row := range g.Tasks {
			head = append(head, strings.ToUpper(row.Task))
		}
		t.Row(head...)
		for _, at := range slices.Backward(g.Times) {
			line := []any{show(at)}
			for _, row := range g.Tasks {
				letter := "."
				if i := slices.IndexFunc(row.Cells, func(c Cell) bool { return c.Time.Equal(at) }); i >= 0 {
					letter = cmp.Or(letters[row.Cells[i].State], "?")
				}
				line = append(line, letter)
			}
			t.Row(line...)
		}
		t.Linef("S success, F failed, T timeout, C crashed, k skipped, x cancelled, R running, " +
			"r waits for its next attempt, q queued, h held, w waiting, c cleared")
	})
}

func runRuns(ctx context.Context, r *request) error {
	cells, err := r.cells(ctx, far, r.most)
	if err != nil {
		return err
	}
	state := r.Flags.String("state")
	runs := slices.DeleteFunc(append([]Cell{}, cells[r.source(r.part)]...), func(c Cell) bool {
		return state != "" && state != c.State || !r.at.IsZero() && !c.Time.Equal(r.at)
	})
	return r.Print(runs, func(t extension.Table) {
		t.Row("TIME", "STATE", "ATTEMPT", "BEGUN", "TOOK", "ERROR")
		for _, c := range runs {
			took := "-"
			if !c.Ended.IsZero() && !c.Begun.IsZero() {
				took = c.Ended.Sub(c.Begun).Round(time.Millisecond).String()
			}
			what := c.Error
			if len(c.Waits) > 0 {
				what = "waits for " + strings.Join(c.Waits, ", ")
			}
			t.Row(show(c.Time), c.State, fmt.Sprintf("%d.%d", c.Generation, c.Attempt), show(c.Begun), took, words.Dash(what))
		}
		if len(runs) == 1 {
			for _, a := range runs[0].Attempts {
				why := cmp.Or(a.Error, "interrupted, or its worker was lost")
				t.Linef("attempt %d began %s, ended %s: %s", a.Attempt, show(a.Begun), show(a.Ended), why)
			}
		}
	})
}

// logsPoll is how often --follow looks for lines.
const logsPoll = 200 * time.Millisecond

func runLogs(ctx context.Context, r *request) error {
	follow, attempt, behind := r.Flags.Bool("follow"), r.Flags.String("attempt"), ""
	place := schedule.Place{Task: r.source(r.part), Time: r.at.UnixMilli()}
	for {
		cells, err := r.cells(ctx, far, 1) // before its lines: if it is over, they are all there
		if err != nil {
			return err
		}
		run := cells[place.Task]
		if len(run) == 0 || !run[0].Time.Equal(r.at) {
			return fmt.Errorf("nothing is known of %s/%s at %s", r.job, r.part, show(r.at))
		}
		lines, err := r.View().Lines(ctx, r.partition(place.Task), place, behind)
		if err != nil {
			return err
		}
		if len(lines) > 0 {
			behind = lines[len(lines)-1].ID
		}
		lines = slices.DeleteFunc(lines, func(l schedule.Line) bool { return attempt != "" && attempt != l.Attempt })
		if len(lines) > 0 || !follow {
			err = r.Print(lines, func(t extension.Table) {
				for _, l := range lines {
					t.Linef("%s %s %s: %s", l.At.Format("15:04:05.000"), l.Attempt, l.From, l.Text)
				}
			})
		}
		if err != nil || !follow || !slices.Contains(open, run[0].State) || !monotime.Sleep(ctx, logsPoll) {
			return err
		}
	}
}
