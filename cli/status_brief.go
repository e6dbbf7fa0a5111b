package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

// `status` of a whole app answers in ten lines, however large the app is: two about the app,
// a table of at most five, two findings, and the commands that show more. Each extension adds two at most.
const (
	briefProcessors = 4
	briefFindings   = 2
)

// A brief is an app in ten lines.
type brief struct {
	app        *inspect.AppState
	workers    int                       // that live, those of internal streams too
	processors []*inspect.ProcessorState // those that need attention first
	findings   []briefFinding
}

// A briefFinding is a finding, and the number of other partitions of the processor with the same.
type briefFinding struct {
	inspect.Finding
	more int
}

// brief looks for findings in all streams, and leaves out internal ones then, unless all is set.
func (s *session) brief(ctx context.Context, app *inspect.AppState, all bool) brief {
	found, err := inspect.Check(ctx, s.client, app, inspect.Limits{})
	if err == nil {
		var more []inspect.Finding
		more, err = extension.Findings(ctx, s.app, s.client, inspect.Limits{})
		found = append(found, more...)
	}
	workers := aliveIn(app)
	if !all {
		app.HideInternal()
	}
	b := briefOf(app, found, err)
	b.workers = workers
	return b
}

// aliveIn counts the workers of all processors.
func aliveIn(app *inspect.AppState) int {
	workers := map[string]bool{}
	for _, p := range app.Processors() {
		for _, m := range p.Members {
			if m.Alive {
				workers[m.Worker] = true
			}
		}
	}
	return len(workers)
}

func briefOf(app *inspect.AppState, found []inspect.Finding, err error) brief {
	b := brief{app: app}
	if err != nil { // takes the place of all findings
		found = []inspect.Finding{{Text: err.Error()}}
	}
	trouble := map[[2]string]int{}
	for _, f := range found {
		trouble[[2]string{f.Stream, f.Processor}]++
		same := func(o briefFinding) bool {
			return f.Partition != nil && o.Partition != nil && o.Stream == f.Stream && o.Processor == f.Processor && o.What == f.What
		}
		if i := slices.IndexFunc(b.findings, same); i >= 0 {
			b.findings[i].more++
		} else {
			b.findings = append(b.findings, briefFinding{f, 0})
		}
	}
	b.processors = app.Processors()
	slices.SortStableFunc(b.processors, func(p, o *inspect.ProcessorState) int {
		return cmp.Or(-cmp.Compare(trouble[[2]string{p.Stream, p.Processor}], trouble[[2]string{o.Stream, o.Processor}]),
			-cmp.Compare(p.Totals.Lag, o.Totals.Lag))
	})
	return b
}

func (b brief) write(t table) {
	all, delayed := inspect.Totals{}, int64(0)
	for _, p := range b.processors {
		all = sumOf(all, p.Totals)
	}
	for _, s := range b.app.Streams {
		delayed += s.Delayed
	}
	t.linef("app %s at %s: %s, %s, %s, leader %s", b.app.App, b.app.Redis, words.Plural(len(b.app.Streams), "stream"),
		words.Plural(len(b.processors), "processor"), words.Plural(b.workers, "worker"), words.Dash(b.app.Leader))
	if len(b.app.Streams)+len(b.app.Unreadable)+len(b.findings)+len(b.app.Extensions) == 0 {
		t.linef("a stream is there once its app has sent to it or run a worker")
		return
	}
	unknown := all.Unknown+len(b.app.Unreadable) > 0
	atLeast := func(n int64) string { return words.AtLeast(n, unknown) }
	t.linef("lag %s, oldest unacked event %s; %s delayed, %s parked, %s dead, %s lost", words.AtLeast(all.Lag, all.LagMore || unknown), ageOf(all.Age, all.Lag > 0),
		atLeast(delayed), atLeast(all.Parked), atLeast(all.Dead), atLeast(all.Lost))
	writeExtensions(t, b.app)
	b.writeProcessors(t)
	if len(b.findings) == 0 {
		t.linef("nothing is wrong")
	}
	for i, f := range b.findings {
		if i == briefFindings-1 && len(b.findings) > briefFindings {
			t.linef("and %s: check lists them", words.Plural(len(b.findings)-i, "other finding"))
			break
		}
		t.linef("%s%s", f.Text, f.others())
	}
	t.linef("more: status STREAM[/PROCESSOR], status --output wide, check, top")
}

func (f briefFinding) others() string {
	if f.more == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %s)", words.Plural(f.more, "other partition"))
}

func (b brief) writeProcessors(t table) {
	if len(b.processors) == 0 {
		return
	}
	out := slices.ContainsFunc(b.processors, func(p *inspect.ProcessorState) bool { return p.Totals.Outputs > 0 })
	t.row(insertOut(out, 7, outTitle, "PROCESSOR", "WORKERS", "OWNED", "LAG", "AGE", "PARKED", "DEAD", "STATE")...)
	for i, p := range b.processors {
		if i == briefProcessors-1 && len(b.processors) > briefProcessors {
			t.linef("and %s: processor ls lists them", words.Plural(len(b.processors)-i, "other processor"))
			break
		}
		unknown := p.Totals.Unknown > 0 // partitions
		t.row(insertOut(out, 7, p.Totals.Outputs, p.Stream+"/"+p.Processor, p.Working(), fmt.Sprintf("%d of %d", p.Totals.Owned, len(p.Partitions)),
			words.AtLeast(p.Totals.Lag, p.Totals.LagMore || unknown), ageOf(p.Totals.Age, p.Totals.Lag > 0), words.AtLeast(p.Totals.Parked, unknown), words.AtLeast(p.Totals.Dead, unknown), briefState(p))...)
	}
}

// briefState is the number of partitions in each state that is not ok.
func briefState(p *inspect.ProcessorState) string {
	count, order := map[string]int{}, []string{}
	for i := range p.Partitions {
		part := &p.Partitions[i]
		state := part.State(time.Now())
		switch {
		case part.RunningSince != nil && part.Quarantine == nil && part.Held == "":
			state = "running for long"
		case part.Err != "":
			state = "unknown"
		case state == "ok":
			continue
		}
		if count[state]++; count[state] == 1 {
			order = append(order, state)
		}
	}
	for i, state := range order {
		order[i] = fmt.Sprintf("%d %s", count[state], state)
	}
	return cmp.Or(strings.Join(order, ", "), "ok")
}

// sumOf adds what the first lines show.
func sumOf(a, b inspect.Totals) inspect.Totals {
	a.Lag, a.LagMore, a.Age = a.Lag+b.Lag, a.LagMore || b.LagMore, max(a.Age, b.Age)
	a.Unknown += b.Unknown
	a.Parked, a.Dead, a.Lost = a.Parked+b.Parked, a.Dead+b.Dead, a.Lost+b.Lost
	return a
}
