package schedulers

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/internal/worker"
)

// A Process is what the schedulers of the app's code do in this process. Count may be called concurrently.
type Process interface {
	Count(add func(Counted)) // calls add for each task that has run here
}

// Counted is what this process counts of a task.
type Counted struct {
	Scheduler, Job, Task string
	Ends                 map[string]int64 // by result
	Spent                worker.Histogram // how long its attempts took
}

var (
	ends  = &extension.Metric{Name: "attempts_total", Help: "Attempts that this worker has ended, by result: success, skipped, failed, timeout, interrupted or refused.", Kind: extension.Counter, Labels: []string{"job", "result", "scheduler", "task"}}
	spent = &extension.Metric{Name: "attempt_seconds", Help: "How long an attempt took.", Kind: extension.Histogram, Labels: []string{"job", "scheduler", "task"}}
	runs  = &extension.Metric{Name: "stored_runs", Help: "Runs that wait or run, by state: queued, retry, running or held.", Kind: extension.Gauge, Labels: []string{"scheduler", "state"}, OfApp: true}
	late  = &extension.Metric{Name: "trigger_late_seconds", Help: "Time since a trigger was to go on; 0 before that.", Kind: extension.Gauge, Labels: []string{"job", "scheduler", "trigger"}, OfApp: true}

	metrics = []*extension.Metric{ends, spent, runs, late}
)

// gatherer returns the Gather of the extension.
func gatherer(p Process) func(context.Context, *store.Client, bool, func(extension.Sample)) error {
	return func(ctx context.Context, c *store.Client, ofApp bool, add func(extension.Sample)) error {
		if ofApp {
			return gatherStored(ctx, c, add)
		}
		if p != nil {
			p.Count(func(of Counted) {
				for result, n := range of.Ends {
					add(extension.Sample{Metric: ends, Labels: []string{of.Job, result, of.Scheduler, of.Task}, Value: float64(n)})
				}
				add(extension.Sample{Metric: spent, Labels: []string{of.Job, of.Scheduler, of.Task}, Histogram: &of.Spent})
			})
		}
		return nil
	}
}

func gatherStored(ctx context.Context, c *store.Client, add func(extension.Sample)) error {
	return eachScheduler(ctx, c, func(s *scheduler, load schedule.Load, lates []lateTrigger) {
		for state, n := range map[string]int64{"queued": load.Ready, "retry": load.Later, "running": load.Running, "held": load.Held} {
			add(extension.Sample{Metric: runs, Labels: []string{s.name, state}, Value: float64(n)})
		}
		for _, l := range lates {
			add(extension.Sample{Metric: late, Labels: []string{l.job, s.name, l.trigger}, Value: max(0, l.by.Seconds())})
		}
	})
}

// A lateTrigger is a trigger of a job that is not paused, and by how much it is late.
type lateTrigger struct {
	job, trigger string
	by           time.Duration
}

func eachScheduler(ctx context.Context, c *store.Client, do func(s *scheduler, load schedule.Load, lates []lateTrigger)) error {
	all, err := load(ctx, c, "")
	if err != nil {
		return err
	}
	for _, s := range all {
		load, err := s.View().Loads(ctx, s.partitions)
		if err != nil {
			return err
		}
		jobs, err := s.Ledger().Jobs(ctx)
		if err != nil {
			return err
		}
		var lates []lateTrigger
		for name, j := range jobs {
			for i := range j.Def.Triggers {
				t, err := s.trigger(ctx, name, &j.Def.Triggers[i])
				if err != nil {
					return err
				}
				if !t.At.IsZero() {
					lates = append(lates, lateTrigger{name, t.Trigger, time.Since(t.At)})
				}
			}
		}
		do(s, load, lates)
	}
	return nil
}

// findings are triggers that do not fire.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	if limits.Age == nil {
		return nil, nil
	}
	err = eachScheduler(ctx, c, func(s *scheduler, _ schedule.Load, lates []lateTrigger) {
		for _, l := range lates {
			if l.by > *limits.Age {
				found = append(found, inspect.Finding{
					Stream: s.name, What: "late triggers", Value: l.by.Milliseconds(), Limit: limits.Age.Milliseconds(),
					Text: fmt.Sprintf("%s/%s: trigger %s was to go on %s ago, above %s: does a worker run, or does a rule hold it? see schedule show %s", s.name, l.job, l.trigger, words.Short(l.by), words.Short(*limits.Age), l.job),
				})
			}
		}
	})
	return found, err
}

// status is one line about all schedulers.
func status(ctx context.Context, c *store.Client) (lines []string, err error) {
	var sum schedule.Load
	jobs, triggers := 0, 0
	err = eachScheduler(ctx, c, func(s *scheduler, load schedule.Load, lates []lateTrigger) {
		sum.Ready, sum.Later, sum.Running, sum.Held = sum.Ready+load.Ready, sum.Later+load.Later, sum.Running+load.Running, sum.Held+load.Held
		seen := map[string]bool{}
		for _, l := range lates {
			seen[l.job] = true
		}
		jobs, triggers = jobs+len(seen), triggers+len(lates)
	})
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%s of %s to come; %s queued, %d held, %d wait for another attempt, %d running",
		words.Plural(triggers, "trigger"), words.Plural(jobs, "job"), words.Plural(sum.Ready, "run"), sum.Held, sum.Later, sum.Running)}, nil
}
