package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/bench/internal/stats"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A Bench runs cases, one after another.
type Bench struct {
	pairs  int
	quick  bool
	events int       // of a backlog
	log    io.Writer // progress
	commit string    // of Runnel
	kernel string

	url  string        // of the server of the case that runs
	rdb  *redis.Client // of that server
	runs int           // so far, to name them

	after []func() // what else ends with the case
}

// An Outcome is the result of a case.
type Outcome struct {
	Case    string        `json:"case"`
	About   string        `json:"about"`
	Notes   []string      `json:"notes,omitempty"`
	Sides   []SideOutcome `json:"sides"`
	Claims  []Finding     `json:"claims"`
	Columns []Column      `json:"columns"`
	Rounds  int           `json:"rounds"`
	Began   time.Time     `json:"began"`
	Seconds float64       `json:"seconds"`
	Commit  string        `json:"commit"` // of Runnel
	Kernel  string        `json:"kernel"`
	Error   string        `json:"error,omitempty"` // it ended early
}

// A SideOutcome is what a side measured in each round.
type SideOutcome struct {
	Name    string   `json:"name"`
	Task    Task     `json:"task"`
	Results []Result `json:"results"`
}

// values are those of a figure in all rounds.
func (s SideOutcome) values(figure string) (out []float64) {
	for _, r := range s.Results {
		if v, ok := r[figure]; ok {
			out = append(out, v)
		}
	}
	return out
}

// A Finding is the result of a claim.
type Finding struct {
	Name    string        `json:"name"`
	Unit    string        `json:"unit"`
	Values  []float64     `json:"values"` // of each round
	Summary stats.Summary `json:"summary"`
	Bar     *stats.Bar    `json:"bar,omitempty"`
	Verdict stats.Verdict `json:"verdict,omitempty"`
}

// scale chooses by whether the run is a quick one.
func (b *Bench) scale(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// Case runs a case on a new server. An error of a side ends the case; what was
// measured before is in the outcome.
func (b *Bench) Case(ctx context.Context, c Case) (o Outcome) {
	began := time.Now()
	o = Outcome{Case: c.Name, About: c.About, Began: began, Commit: b.commit, Kernel: b.kernel}
	fmt.Fprintf(b.log, "%s\n", c.Name)
	if err := b.measure(ctx, c, &o); err != nil {
		o.Error = err.Error()
		fmt.Fprintf(b.log, "  %v\n", err)
	}
	o.Seconds = time.Since(began).Seconds()
	for _, f := range o.Claims {
		fmt.Fprintf(b.log, "  %s: %s %s\n", f.Name, f.text(), f.Verdict)
	}
	fmt.Fprintf(b.log, "  %.0f s\n", o.Seconds)
	return o
}

func (b *Bench) measure(ctx context.Context, c Case, o *Outcome) (err error) {
	stop, err := b.start(c.Args...)
	if err != nil {
		return err
	}
	defer stop()
	plan, err := c.Plan(ctx, b)
	if err != nil {
		return err
	}
	o.Notes, o.Columns = plan.Notes, plan.Columns
	for _, s := range plan.Sides {
		o.Sides = append(o.Sides, SideOutcome{Name: s.Name, Task: s.Task})
	}
	rounds := b.pairs
	if plan.Rounds > 0 {
		rounds = min(rounds, plan.Rounds)
	}
	var all []Round
	for len(all) < rounds && err == nil {
		var r Round
		if r, err = b.round(ctx, plan.Sides, len(all)%2 == 1); err == nil {
			all = append(all, r)
			for i := range o.Sides {
				o.Sides[i].Results = append(o.Sides[i].Results, r[o.Sides[i].Name])
			}
		}
	}
	o.Rounds = len(all)
	for _, claim := range plan.Claims {
		o.Claims = append(o.Claims, claim.find(all))
	}
	return err
}

// start starts a server for a case, without persistence unless args say otherwise.
func (b *Bench) start(args ...string) (stop func(), err error) {
	s, kill, err := redistest.Launch(args...)
	if err != nil {
		return nil, err
	}
	b.url = s.URL()
	b.rdb = redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	return func() {
		for _, end := range b.after {
			end()
		}
		b.after = nil
		_ = b.rdb.Close()
		kill()
	}, nil
}

// serverCPU is the time that the server's main thread, which executes the commands, has spent on a processor.
func (b *Bench) serverCPU(ctx context.Context) (time.Duration, error) { return cpuOf(ctx, b.rdb) }

func cpuOf(ctx context.Context, rdb *redis.Client) (time.Duration, error) {
	info := rdb.InfoMap(ctx, "cpu")
	sum := 0.0
	for _, name := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info.Item("CPU", name), 64)
		if err != nil {
			return 0, fmt.Errorf("INFO of redis-server: %s: %w", name, err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second)), nil
}

// round runs every side once.
func (b *Bench) round(ctx context.Context, sides []Side, backwards bool) (Round, error) {
	order := slices.Clone(sides)
	if backwards {
		slices.Reverse(order)
	}
	out := Round{}
	for _, s := range order {
		r, err := b.run(ctx, s)
		if err != nil {
			return nil, err
		}
		out[s.Name] = r
		fmt.Fprintf(b.log, "  %s: %s\n", s.Name, r)
	}
	return out, nil
}

// run runs a side once, under a name that no other run has.
func (b *Bench) run(ctx context.Context, s Side) (Result, error) {
	b.runs++
	t := s.Task
	t.URL, t.Run = b.url, fmt.Sprint("run-", b.runs)
	if s.Before != nil {
		if err := s.Before(ctx, b, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	run := s.Run
	if run == nil {
		run = runChild
	}
	before, err := b.serverCPU(ctx)
	if err != nil {
		return nil, err
	}
	r, err := run(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	after, err := b.serverCPU(ctx)
	if _, told := r[serverColumn.Figure]; t.Events > 0 && !told {
		r[serverColumn.Figure] = float64((after - before).Nanoseconds()) / 1e3 / float64(t.Events)
	}
	return r, err
}

// find sums up a claim over rounds. A round in which it has no value is left out.
func (c Claim) find(rounds []Round) Finding {
	f := Finding{Name: c.Name, Unit: c.Unit}
	for _, r := range rounds {
		if v := c.Of(r); !math.IsNaN(v) && !math.IsInf(v, 0) {
			f.Values = append(f.Values, v)
		}
	}
	f.Summary = stats.Sum(f.Values)
	if c.Bar != (stats.Bar{}) {
		f.Bar, f.Verdict = &c.Bar, c.Bar.Judge(f.Summary)
	}
	return f
}

func (r Result) String() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(r)) {
		text += fmt.Sprintf("%s %.4g  ", name, r[name])
	}
	return text
}
