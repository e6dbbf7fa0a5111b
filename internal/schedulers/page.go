package schedulers

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
)

//go:embed page.js
var module []byte

// pageTimes is how many times the page shows at once.
const pageTimes = 30

// page is the page of the dashboard: jobs, the grid of one, and a run with its log.
func page() *extension.Page {
	type reader = func(context.Context, *store.Client, url.Values) (any, error)
	type doer = func(context.Context, *store.Client, []byte) (string, error)
	p := &extension.Page{
		Title: "Schedule", Module: module,
		Reads:   map[string]reader{"jobs": readJobs, "grid": readGrid, "run": readRun},
		Actions: map[string]doer{},
	}
	for _, kind := range []string{schedule.OpActivate, schedule.OpClear, schedule.OpCancel, schedule.OpPause, schedule.OpResume} {
		p.Actions[kind] = func(ctx context.Context, c *store.Client, body []byte) (string, error) {
			return act(ctx, c, kind, body)
		}
	}
	return p
}

func readJobs(ctx context.Context, c *store.Client, _ url.Values) (any, error) {
	all, err := load(ctx, c, "")
	states := []*JobState{}
	for _, s := range all {
		stored, err := s.Ledger().Jobs(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			state, err := s.state(ctx, name, stored[name])
			if err != nil {
				return nil, err
			}
			states = append(states, state)
		}
	}
	return states, err
}

// named returns the scheduler and the job of SCHEDULER/JOB, and what follows.
func named(ctx context.Context, c *store.Client, on string) (s *scheduler, j *schedule.Job, rest string, err error) {
	name, rest, _ := strings.Cut(on, "/")
	job, rest, _ := strings.Cut(rest, "/")
	all, err := load(ctx, c, name)
	if err == nil && len(all) != 1 {
		err = extension.Usagef("no scheduler %q", name)
	}
	if err != nil {
		return nil, nil, "", err
	}
	j, err = all[0].job(ctx, job)
	return all[0], j, rest, err
}

func readGrid(ctx context.Context, c *store.Client, q url.Values) (any, error) {
	s, j, _, err := named(ctx, c, q.Get("on"))
	if err != nil {
		return nil, err
	}
	before := far
	if text := q.Get("before"); text != "" {
		if before, err = parseTime(text, time.Now()); err != nil {
			return nil, err
		}
	}
	return s.grid(ctx, j.Def.Name, before, pageTimes)
}

// A runPage is a run with its log.
type runPage struct {
	Cell
	Log []schedule.Line `json:"log"`
}

func readRun(ctx context.Context, c *store.Client, q url.Values) (any, error) {
	s, j, task, err := named(ctx, c, q.Get("on"))
	if err != nil {
		return nil, err
	}
	at, err := parseTime(q.Get("time"), time.Now())
	if err != nil {
		return nil, err
	}
	p := schedule.Place{Task: jobs.Source{Job: j.Def.Name, Name: task}.String(), Time: at.UnixMilli()}
	n := s.partition(p.Task)
	found, err := s.View().Look(ctx, n, []string{p.Task}, p.Time+1, 1)
	if err != nil {
		return nil, err
	}
	if len(found[p.Task]) == 0 || found[p.Task][0].Time != p.Time {
		return nil, extension.Usagef("nothing is known of %s/%s at %s", j.Def.Name, task, show(at))
	}
	out := runPage{Cell: cellOf(&found[p.Task][0])}
	out.Log, err = s.View().Lines(ctx, n, p, "")
	return out, err
}

// act asks for an operation: the field on is SCHEDULER/JOB or SCHEDULER/JOB/TASK.
func act(ctx context.Context, c *store.Client, kind string, body []byte) (string, error) {
	var do struct{ On, Time, Who, Why string }
	if err := json.Unmarshal(body, &do); err != nil {
		return "", extension.Usagef("this needs SCHEDULER/JOB")
	}
	s, j, task, err := named(ctx, c, do.On)
	if err != nil {
		return "", err
	}
	op := &schedule.Op{ID: rand.Text(), Kind: kind, Job: j.Def.Name, By: "dashboard", Why: do.Why, At: time.Now().UnixMilli()}
	if task != "" {
		if _, err := taskOf(j, task); err != nil {
			return "", err
		}
		op.Tasks = []string{task}
	}
	if kind != schedule.OpPause && kind != schedule.OpResume {
		at, err := parseTime(do.Time, time.Now())
		if err != nil {
			return "", err
		}
		op.Time = at.UnixMilli()
	}
	number, err := s.Ledger().Submit(ctx, op)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	outcome, err := s.Ledger().WaitOp(ctx, number, opPoll)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("job %s: %s (operation %d)", op.Job, outcome, number), nil
}

// pagePatience is how long an action waits for a worker.
const pagePatience = 5 * time.Second
