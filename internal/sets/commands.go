package sets

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// touchRate is how many entities a second `stage touch --all` touches by default.
const touchRate = 1000

func commands(p Process) []extension.Command {
	return []extension.Command{
		{
			Call: "ls [SET]", Usage: "list sets: their entities, and what waits, runs and failed of each stage", Run: with(p, runLs),
			Examples: []string{"PROG stage ls", "PROG stage ls listings --output json"},
		},
		{
			Call: "show SET ID", Usage: "show an entity: its value, and its visits of each stage", Run: with(p, runShow),
			Examples: []string{"PROG stage show listings 42"},
		},
		{
			Call: "touch SET [ID...]", Usage: "have all stages asked whether they want to visit entities", Run: with(p, runTouch), Changes: true,
			Flags: []extension.Flag{
				{Name: "all", Usage: "of all entities, one after another", Default: false, NoPage: true},
				{Name: "rate", Usage: "with --all: `N` entities per second", Default: touchRate},
			},
			Examples: []string{"PROG stage touch listings 42", "PROG stage touch listings --all --rate 500 --yes"},
		},
		{
			Call: "visit SET/STAGE ID...", Usage: "have a stage visit entities, if it wants them", Run: with(p, runVisit), Changes: true,
			Flags: []extension.Flag{
				{Name: "at", Usage: "not before this `TIME` (RFC 3339)", Default: ""},
				{Name: "after", Usage: "not before so `LONG` from now", Default: time.Duration(0)},
			},
			Examples: []string{"PROG stage visit listings/price 42", "PROG stage visit listings/price 42 --after 10m --yes"},
		},
		{
			Call: "rm SET/STAGE", Usage: "forget a stage that no code has any more: what waits, failed and died of it, and its name", Run: with(p, runRm), Changes: true,
			Examples: []string{"PROG stage rm listings/price"},
		},
	}
}

// with returns a command that knows what the app's code declares.
func with(p Process, run func(context.Context, *extension.Env, Process) error) func(context.Context, *extension.Env) error {
	return func(ctx context.Context, env *extension.Env) error { return run(ctx, env, p) }
}

func runLs(ctx context.Context, env *extension.Env, p Process) error {
	name := ""
	if len(env.Args) > 0 {
		s, err := one(ctx, env.Client, p, env.Args[0])
		if err != nil {
			return err
		}
		name = s.name
	}
	all, err := states(ctx, env.Client, name)
	if err != nil {
		return err
	}
	if all == nil {
		all = []*State{}
	}
	return env.Print(all, func(t extension.Table) {
		t.Row("SET", "STAGE", "WAITING", "DUE", "LATE", "RUNNING", "FAILING", "DEAD", "HELD")
		for _, s := range all {
			s.all(func(name string, one *StageState) {
				late := "-"
				if one.Late > 0 {
					late = words.Short(one.late())
				}
				t.Row(s.Set, name, one.Waiting, one.Due, late, one.Running, one.Failing, one.Dead, words.Dash(one.Held))
			})
		}
		for _, s := range all {
			t.Linef("%s: %d entities in Redis, %d slowed down", s.Set, s.Entities, s.Slowed)
		}
	})
}

// A VisitState is what is known of an entity's visit of a stage.
type VisitState struct {
	Stage    string     `json:"stage"`         // "" for the touch
	Due      *time.Time `json:"due,omitempty"` // of the visit that waits
	Running  bool       `json:"running"`
	Died     *time.Time `json:"died,omitempty"`
	Attempts int        `json:"attempts"` // that failed
	First    *time.Time `json:"first,omitempty"`
	Last     *time.Time `json:"last,omitempty"`
	Reason   string     `json:"reason"`
	Error    string     `json:"error"`
}

func visitState(v *stage.VisitOf) VisitState {
	out := VisitState{Stage: v.Stage, Running: v.Running, Due: moment(v.Due), Died: moment(v.Died)}
	if v.Stage == stage.Touch {
		out.Stage = ""
	}
	if f := v.Failure; f != nil {
		out.Attempts, out.First, out.Last, out.Reason, out.Error = f.Attempts, moment(f.First), moment(f.Last), f.Reason, f.Error
	}
	return out
}

// An EntityState is what `stage show` prints.
type EntityState struct {
	Set       string          `json:"set"`
	ID        string          `json:"id"`
	Partition int             `json:"partition"`
	Version   int64           `json:"version"` // 0: it is not in Redis
	Bytes     int             `json:"bytes"`
	Value     json.RawMessage `json:"value,omitempty"` // where the codec is known
	Visits    []VisitState    `json:"visits"`
}

func runShow(ctx context.Context, env *extension.Env, p Process) error {
	if len(env.Args) != 2 {
		return extension.Usagef("show needs a set and an ID")
	}
	s, err := one(ctx, env.Client, p, env.Args[0])
	if err != nil {
		return err
	}
	e, err := s.show(ctx, env.Args[1], math.MaxInt64)
	if err != nil {
		return err
	}
	if e.Version == 0 && len(e.Visits) == 0 {
		return fmt.Errorf("set %s has no entity %q", s.name, e.ID)
	}
	return env.Print(e, func(t extension.Table) {
		t.Linef("%s %q, partition %d, version %d, %d bytes: %s", s.name, e.ID, e.Partition, e.Version, e.Bytes, words.Dash(string(e.Value)))
		t.Row("STAGE", "NEXT VISIT", "STATE", "ATTEMPTS", "ERROR")
		for _, v := range e.Visits {
			t.Row(v.cells()...)
		}
	})
}

func (v *VisitState) cells() []any {
	name, next, state, attempts, message := v.Stage, "-", "waits", "-", "-"
	if name == "" {
		name = "(touch)"
	}
	if v.Due != nil {
		next = v.Due.UTC().Format(time.RFC3339)
	}
	switch {
	case v.Running:
		state = "runs"
	case v.Died != nil:
		state = "dead"
	case v.Reason == stage.ReasonLoop:
		state = "slowed down"
	case v.Due == nil:
		state = "-"
	}
	if v.Attempts > 0 {
		attempts, message = fmt.Sprint(v.Attempts), words.Summary(v.Error)
	}
	return []any{name, next, state, attempts, message}
}

// show looks at an entity, up to most bytes of it, and its visits.
func (s *set) show(ctx context.Context, id string, most int64) (*EntityState, error) {
	n, err := s.partition(id)
	if err != nil {
		return nil, err
	}
	e, err := s.calls.Get(ctx, n, id)
	if err != nil {
		return nil, err
	}
	out := &EntityState{Set: s.name, ID: id, Partition: n, Version: e.Version, Bytes: len(e.Payload), Visits: []VisitState{}}
	if e.Version > 0 {
		out.Value, _ = s.at.Within(most).Record(redisconn.Entry{ID: "0-1", Values: map[string]any{store.PayloadField: e.Payload}}) // else only the app knows it
	}
	visits, err := s.calls.VisitsOf(ctx, n, id)
	for _, v := range visits {
		out.Visits = append(out.Visits, visitState(&v))
	}
	return out, err
}

// moment returns a time of ms since 1970, nil for 0.
func moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}

// Changed is what `stage touch` and `stage visit` print.
type Changed struct {
	Set      string `json:"set"`
	Stage    string `json:"stage"` // "" for touches
	Entities int    `json:"entities"`
}

func runTouch(ctx context.Context, env *extension.Env, p Process) error {
	if len(env.Args) == 0 || len(env.Args) == 1 != env.Flags.Bool("all") {
		return extension.Usagef("touch needs a set, and either IDs or --all")
	}
	s, err := one(ctx, env.Client, p, env.Args[0])
	if err != nil {
		return err
	}
	if !env.Flags.Bool("all") {
		return s.visit(ctx, env, stage.Touch, stage.In(0), env.Args[1:])
	}
	rate := env.Flags.Int("rate")
	if rate < 1 || rate > 1_000_000 {
		return extension.Usagef("--rate %d is not between 1 and 1 000 000", rate)
	}
	if err := env.Confirm("Touch all entities of %s?", s.name); err != nil {
		return err
	}
	touched := 0
	did, err := env.Audited(ctx, "stage/touch", s.name, func(ctx context.Context) (_ string, err error) {
		step := time.Second / time.Duration(rate)
		if touched, err = s.calls.TouchAll(ctx, s.meta.Partitions, step); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d entities of %s touched; the last one is due in %s", touched, s.name, words.Short(time.Duration(touched)*step)), nil
	})
	if err != nil {
		return err
	}
	return env.Print(Changed{s.name, "", touched}, func(t extension.Table) { t.Linef("%s", did) })
}

// part returns the set and the stage of an argument SET/STAGE.
func part(ctx context.Context, c *store.Client, p Process, arg string) (*set, string, error) {
	name, stage, both := strings.Cut(arg, "/")
	if !both {
		return nil, "", extension.Usagef("%q is not SET/STAGE", arg)
	}
	s, err := one(ctx, c, p, name)
	if err == nil {
		err = s.stage(stage)
	}
	return s, stage, err
}

func runVisit(ctx context.Context, env *extension.Env, p Process) error {
	if len(env.Args) < 2 {
		return extension.Usagef("visit needs SET/STAGE and IDs")
	}
	s, name, err := part(ctx, env.Client, p, env.Args[0])
	if err != nil {
		return err
	}
	due := stage.In(env.Flags.Duration("after"))
	if at := env.Flags.String("at"); at != "" {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil || env.Flags.IsSet("after") {
			return extension.Usagef("--at takes a time as 2026-01-02T15:04:05Z, and excludes --after")
		}
		due = stage.At(moment)
	}
	return s.visit(ctx, env, name, due, env.Args[1:])
}

// visit puts visits of IDs, and says so.
func (s *set) visit(ctx context.Context, env *extension.Env, name string, due stage.Due, ids []string) error {
	on, out := s.name, Changed{Set: s.name, Entities: len(ids)}
	if name != stage.Touch {
		on, out.Stage = on+"/"+name, name
	}
	did, err := env.Audited(ctx, "stage/visit", on, func(ctx context.Context) (string, error) {
		for _, id := range ids {
			n, err := s.partition(id)
			if err == nil {
				err = s.calls.Visit(ctx, n, name, due, id)
			}
			if err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s of %s to be visited", words.Plural(len(ids), "ID"), on), nil
	})
	if err != nil {
		return err
	}
	return env.Print(out, func(t extension.Table) { t.Linef("%s", did) })
}
