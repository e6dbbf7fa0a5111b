package sets

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

var (
	visits   = &extension.Metric{Name: "visits_total", Help: "Visits that this worker has ended, by result: untouched, updated, deleted, failed, dead, conflict, gone or dropped.", Kind: extension.Counter, Labels: []string{"result", "set", "stage"}}
	calls    = &extension.Metric{Name: "calls_total", Help: "Calls of the function of a stage.", Kind: extension.Counter, Labels: []string{"set", "stage"}}
	spent    = &extension.Metric{Name: "call_seconds_total", Help: "Time in calls of the function of a stage.", Kind: extension.Counter, Labels: []string{"set", "stage"}}
	entities = &extension.Metric{Name: "stored_entities", Help: "Entities in Redis.", Kind: extension.Gauge, Labels: []string{"set"}, OfApp: true}
	waiting  = &extension.Metric{Name: "stored_waiting_visits", Help: "Visits that wait for their time.", Kind: extension.Gauge, Labels: []string{"set", "stage"}, OfApp: true}
	due      = &extension.Metric{Name: "stored_due_visits", Help: "Visits that wait although they are due.", Kind: extension.Gauge, Labels: []string{"set", "stage"}, OfApp: true}
	dead     = &extension.Metric{Name: "stored_dead_visits", Help: "Visits that had their last attempt.", Kind: extension.Gauge, Labels: []string{"set", "stage"}, OfApp: true}
	oldest   = &extension.Metric{Name: "oldest_due_seconds", Help: "Time since the first visit has been due.", Kind: extension.Gauge, Labels: []string{"set", "stage"}, OfApp: true}
	running  = &extension.Metric{Name: "stored_running_visits", Help: "Visits that run.", Kind: extension.Gauge, Labels: []string{"set"}, OfApp: true}
	failures = &extension.Metric{Name: "stored_failed_visits", Help: "Visits that failed and wait for another attempt, or are dead.", Kind: extension.Gauge, Labels: []string{"set"}, OfApp: true}

	metrics = []*extension.Metric{visits, calls, spent, entities, running, failures, waiting, due, dead, oldest}
)

// gatherer returns the Gather of the extension; count adds what this process counts.
func gatherer(count func(add func(set, stage string, visits map[string]int64, calls int64, spent time.Duration))) func(context.Context, *store.Client, bool, func(extension.Sample)) error {
	return func(ctx context.Context, c *store.Client, ofApp bool, add func(extension.Sample)) error {
		if !ofApp {
			if count != nil {
				count(func(set, stage string, results map[string]int64, n int64, took time.Duration) {
					for result, n := range results {
						add(extension.Sample{Metric: visits, Labels: []string{result, set, stage}, Value: float64(n)})
					}
					add(extension.Sample{Metric: calls, Labels: []string{set, stage}, Value: float64(n)})
					add(extension.Sample{Metric: spent, Labels: []string{set, stage}, Value: took.Seconds()})
				})
			}
			return nil
		}
		all, err := states(ctx, c, "")
		for _, s := range all {
			of := func(m *extension.Metric, v float64, labels ...string) {
				add(extension.Sample{Metric: m, Labels: append([]string{s.Set}, labels...), Value: v})
			}
			of(entities, float64(s.Entities))
			of(running, float64(s.Running))
			of(failures, float64(s.Failed))
			for _, one := range s.Stages {
				of(waiting, float64(one.Waiting), one.Stage)
				of(due, float64(one.Due), one.Stage)
				of(dead, float64(one.Dead), one.Stage)
				of(oldest, (time.Duration(one.Late) * time.Millisecond).Seconds(), one.Stage)
			}
		}
		return err
	}
}
