package schedulers

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
)

//go:embed page.js
var module []byte

const (
	pageTimes    = 30              // that the page shows at once
	pagePatience = 5 * time.Second // of an action with workers
)

// page is the page of the dashboard: jobs, the grid of one, and a run with its log. Its rows pause jobs by the actions of the core.
func page() *extension.Page {
	p := &extension.Page{
		Title: "Schedule", Module: module,
		Reads: map[string]func(context.Context, *store.Client, url.Values) (any, error){
			"jobs": readJobs, "grid": readGrid, "run": readRun,
		},
		Actions: map[string]func(context.Context, *store.Client, []byte) (string, error){},
	}
	for _, kind := range []string{schedule.OpActivate, schedule.OpClear, schedule.OpCancel} {
		p.Actions[kind] = func(ctx context.Context, c *store.Client, body []byte) (string, error) {
			return act(ctx, c, kind, body)
		}
	}
	return p
}

func readJobs(ctx context.Context, c *store.Client, _ url.Values) (any, error) {
	all, err := load(ctx, c, "")
	states := []JobState{}
	for _, s := range all {
		some, err := s.states(ctx, s.names()...)
		if err != nil {
			return nil, err
		}
		states = append(states, some...)
	}
	return states, err
}

// named returns what SCHEDULER/JOB or SCHEDULER/JOB/TASK names, at a time or "".
func named(ctx context.Context, c *store.Client, on, at string) (*subject, error) {
	name, rest, _ := strings.Cut(on, "/")
	s, err := one(ctx, c, name)
	if err != nil {
		return nil, err
	}
	o, err := s.find(rest, "JOB[/TASK]")
	if err == nil {
		err = o.when(ctx, at)
	}
	return o, err
}

func readGrid(ctx context.Context, c *store.Client, q url.Values) (any, error) {
	o, err := named(ctx, c, q.Get("on"), "")
	if err != nil {
		return nil, err
	}
	return o.grid(ctx, q.Get("before"), pageTimes)
}

// A runPage is a run with its log.
type runPage struct {
	*Cell
	Log []schedule.Line `json:"log"`
}

func readRun(ctx context.Context, c *store.Client, q url.Values) (any, error) {
	o, err := named(ctx, c, q.Get("on"), q.Get("time"))
	if err != nil {
		return nil, err
	}
	run, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	lines, err := o.lines(ctx, "")
	return runPage{run, lines}, err
}

// act asks for an operation: the field on is SCHEDULER/JOB or SCHEDULER/JOB/TASK.
func act(ctx context.Context, c *store.Client, kind string, body []byte) (string, error) {
	var do struct{ On, Time, Why string }
	if err := json.Unmarshal(body, &do); err != nil || do.Time == "" {
		return "", extension.Usagef("this needs SCHEDULER/JOB, and a logical time")
	}
	o, err := named(ctx, c, do.On, do.Time)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	op := o.op(kind)
	op.By, op.Why = "dashboard", do.Why
	return o.do(ctx, op)
}
