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
	"github.com/runnel-go/runnel/internal/schedule"
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
	"waiting": "w", "held": "h", "queued": "q", "running": "R", "retry": "r", "success": "S", "failed": "F", "timeout": "T", "crashed": "C",
	"skipped": "k", "cancelled": "x", "cleared": "c",
}

func timeAt(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func cellOf(c *schedule.CellAt) Cell {
	out := Cell{
		Time: time.UnixMilli(c.Time).UTC(), State: c.State, Generation: c.Generation, Attempt: c.Attempt, Failed: c.Failed, Crashes: c.Crashes,
		Priority: string(schedule.PriorityOf(c.Priority)), Begun: timeAt(c.Begun), Ended: timeAt(c.Ended), Error: c.Error, Rerun: c.Rerun,
	}
	if c.State == "waiting" || c.State == "cleared" {
		for source, e := range c.Edges {
			if !e.Came() {
				out.Waits = append(out.Waits, source)
			}
		}
		slices.Sort(out.Waits)
	}
	for _, a := range c.Attempts {
		out.Attempts = append(out.Attempts, Attempt{a.Attempt, timeAt(a.Begun), timeAt(a.Ended), a.Error})
	}
	return out
}

// grid returns a job at its last times before one.
func (s *scheduler) grid(ctx context.Context, job string, before time.Time, most int) (*Grid, error) {
	graph, all, err := s.graph(ctx)
	if err != nil {
		return nil, err
	}
	if all[job] == nil {
		_, err := s.job(ctx, job)
		return nil, err
	}
	tasks := graph.Tasks(job)
	by := map[int][]string{}
	for _, task := range tasks {
		n := s.partition(task.String())
		by[n] = append(by[n], task.String())
	}
	cells := map[string][]schedule.CellAt{}
	for n, names := range by {
		for some := range slices.Chunk(names, max(1, schedule.PerCall/max(most, 1))) {
			found, err := s.View().Look(ctx, n, some, before.UnixMilli(), most)
			if err != nil {
				return nil, err
			}
			for task, of := range found {
				cells[task] = of
			}
		}
	}
	return gridOf(job, tasks, cells, most), nil
}

func gridOf(job string, tasks []jobs.Source, cells map[string][]schedule.CellAt, most int) *Grid {
	g, times := &Grid{Job: job, Times: []time.Time{}}, map[int64]bool{}
	for _, of := range cells {
		for _, c := range of {
			times[c.Time] = true
		}
	}
	for t := range times {
		g.Times = append(g.Times, time.UnixMilli(t).UTC())
	}
	slices.SortFunc(g.Times, func(a, b time.Time) int { return b.Compare(a) })
	g.Times = g.Times[:min(len(g.Times), most)]
	for _, task := range tasks {
		row := Row{Task: task.Name, Cells: []Cell{}}
		for _, c := range cells[task.String()] {
			if at := time.UnixMilli(c.Time).UTC(); slices.ContainsFunc(g.Times, at.Equal) {
				row.Cells = append(row.Cells, cellOf(&c))
			}
		}
		g.Tasks = append(g.Tasks, row)
	}
	return g
}

func runGrid(ctx context.Context, env *extension.Env) error {
	s, err := one(ctx, env)
	if err != nil {
		return err
	}
	j, err := s.job(ctx, argOf(env, 0))
	if err != nil {
		return err
	}
	before := far
	if text := env.Flags.String("before"); text != "" {
		if before, err = parseTime(text, time.Now()); err != nil {
			return err
		}
	}
	most := env.Flags.Int(flagLimit)
	if most < 1 || most > 1000 {
		return extension.Usagef("--limit %d is not between 1 and 1 000", most)
	}
	g, err := s.grid(ctx, j.Def.Name, before, most)
	if err != nil {
		return err
	}
	return env.Print(g, g.table)
}

// table prints times in rows, the oldest first, and tasks in columns: times are many, and wide.
func (g *Grid) table(t extension.Table) {
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
	t.Linef("S success, F failed, T timeout, C crashed, k skipped, x cancelled, R running, r waits for its next attempt, q queued, h held, w waiting, c cleared")
}

func argOf(env *extension.Env, n int) string {
	if n < len(env.Args) {
		return env.Args[n]
	}
	return ""
}

func tooMany(env *extension.Env, most int) error {
	if len(env.Args) > most {
		return extension.Usagef("unexpected argument %q", env.Args[most])
	}
	return nil
}

func runRuns(ctx context.Context, env *extension.Env) error {
	if err := tooMany(env, 2); err != nil {
		return err
	}
	s, err := one(ctx, env)
	if err != nil {
		return err
	}
	job, task := splitPart(argOf(env, 0))
	j, err := s.job(ctx, job)
	if err != nil {
		return err
	}
	if _, err := taskOf(j, task); err != nil {
		return err
	}
	before, most := far, env.Flags.Int(flagLimit)
	if text := argOf(env, 1); text != "" {
		at, err := s.timeOf(ctx, j.Def.Name, task, text)
		if err != nil {
			return err
		}
		before, most = at.Add(time.Millisecond), 1
	}
	source := jobs.Source{Job: j.Def.Name, Name: task}.String()
	found, err := s.View().Look(ctx, s.partition(source), []string{source}, before.UnixMilli(), most)
	if err != nil {
		return err
	}
	cells := []Cell{}
	for _, c := range found[source] {
		if state := env.Flags.String("state"); (state == "" || state == c.State) && (argOf(env, 1) == "" || c.Time == before.UnixMilli()-1) {
			cells = append(cells, cellOf(&c))
		}
	}
	return env.Print(cells, func(t extension.Table) {
		t.Row("TIME", "STATE", "ATTEMPT", "BEGUN", "TOOK", "ERROR")
		for _, c := range cells {
			took := "-"
			if !c.Ended.IsZero() && !c.Begun.IsZero() {
				took = c.Ended.Sub(c.Begun).Round(time.Millisecond).String()
			}
			what := c.Error
			if len(c.Waits) > 0 {
				what = "waits for " + strings.Join(c.Waits, ", ")
			}
			t.Row(show(c.Time), c.State, fmt.Sprintf("%d.%d", c.Generation, c.Attempt), show(c.Begun), took, cmp.Or(what, "-"))
		}
		if len(cells) == 1 {
			for _, a := range cells[0].Attempts {
				t.Linef("attempt %d began %s, ended %s: %s", a.Attempt, show(a.Begun), show(a.Ended), cmp.Or(a.Error, "interrupted, or its worker was lost"))
			}
		}
	})
}
