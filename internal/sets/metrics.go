package sets

import (
	"cmp"
	"context"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// Counted is what this process counts of a stage.
type Counted struct {
	Set, Stage  string
	Visits      map[string]int64 // by result
	Spent, Late worker.Histogram // of calls of its function: how long, and how long after the visit was due
}

var (
	visits = &extension.Metric{Name: "visits_total", Help: "Visits that this worker has ended, by result: untouched, updated, deleted, failed, dead, conflict, gone or dropped.", Kind: extension.Counter, Labels: []string{"result", "set", "stage"}}
	spent  = &extension.Metric{Name: "seconds", Help: "How long a call of the function of a stage took.", Kind: extension.Histogram, Labels: ofStage}
	late   = &extension.Metric{Name: "lateness_seconds", Help: "How long after a visit was due, by Redis' clock, the function of the stage was called.", Kind: extension.Histogram, Labels: ofStage}

	entities = &extension.Metric{Name: "stored_entities", Help: "Entities in Redis.", Kind: extension.Gauge, Labels: ofStage[:1], OfApp: true}
	slowed   = &extension.Metric{Name: "slowed_entities", Help: "Entities that stages have changed too often, so that they are visited later and later.", Kind: extension.Gauge, Labels: ofStage[:1], OfApp: true}
	waiting  = gauge("stored_waiting_visits", "Visits that wait for their time.")
	due      = gauge("stored_due_visits", "Visits that wait although they are due.")
	running  = gauge("stored_running_visits", "Visits that run.")
	failing  = gauge("stored_failing_visits", "Visits that failed and wait for another attempt; of more than 1000 in a partition, an estimate.")
	dead     = gauge("stored_dead_visits", "Visits that had their last attempt.")
	oldest   = gauge("oldest_due_seconds", "Time since the first visit has been due; 0 without one, and while a rule holds the stage back.")

	ofStage = []string{"set", "stage"}
	metrics = []*extension.Metric{visits, spent, late, entities, slowed, waiting, due, running, failing, dead, oldest}
)

// gauge returns a metric of the app as a whole; touches have the stage "!".
func gauge(name, help string) *extension.Metric {
	return &extension.Metric{Name: name, Help: help, Kind: extension.Gauge, Labels: ofStage, OfApp: true}
}

// gatherer returns the Gather of the extension.
func gatherer(p Process) func(context.Context, *store.Client, bool, func(extension.Sample)) error {
	return func(ctx context.Context, c *store.Client, ofApp bool, add func(extension.Sample)) error {
		if ofApp {
			return gatherStored(ctx, c, add)
		}
		if p != nil {
			p.Count(func(of Counted) {
				for result, n := range of.Visits {
					add(extension.Sample{Metric: visits, Labels: []string{result, of.Set, of.Stage}, Value: float64(n)})
				}
				add(extension.Sample{Metric: spent, Labels: []string{of.Set, of.Stage}, Histogram: &of.Spent})
				add(extension.Sample{Metric: late, Labels: []string{of.Set, of.Stage}, Histogram: &of.Late})
			})
		}
		return nil
	}
}

func gatherStored(ctx context.Context, c *store.Client, add func(extension.Sample)) error {
	all, err := states(ctx, c, "")
	for _, s := range all {
		of := func(m *extension.Metric, v float64, labels ...string) {
			add(extension.Sample{Metric: m, Labels: append([]string{s.Set}, labels...), Value: v})
		}
		of(entities, float64(s.Entities))
		of(slowed, float64(s.Slowed))
		s.all(func(_ string, one *StageState) {
			name := cmp.Or(one.Stage, stage.Touch)
			of(waiting, float64(one.Waiting), name)
			of(due, float64(one.Due), name)
			of(running, float64(one.Running), name)
			of(failing, float64(one.Failing), name)
			of(dead, float64(one.Dead), name)
			if one.Held != "" {
				one.Late = 0
			}
			of(oldest, one.late().Seconds(), name)
		})
	}
	return err
}
