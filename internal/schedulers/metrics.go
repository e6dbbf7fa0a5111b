package schedulers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

var (
	// Ends counts attempts. Its labels are job, result, scheduler and task.
	Ends = &extension.Metric{
		Name: "attempts_total", Kind: extension.Counter, Labels: []string{"job", "result", "scheduler", "task"},
		Help: "Attempts that this worker has ended, by result: success, skipped, failed, timeout, interrupted or refused."}
	// Spent is how long they took. Its labels are job, scheduler and task.
	Spent = &extension.Metric{
		Name: "attempt_seconds", Kind: extension.Histogram, Labels: []string{"job", "scheduler", "task"},
		Help: "How long an attempt took."}
	runs = &extension.Metric{
		Name: "stored_runs", Kind: extension.Gauge, Labels: []string{"scheduler", "state"}, OfApp: true,
		Help: "Runs that wait or run, by state: queued, retry, running or held."}
	late = &extension.Metric{
		Name: "trigger_late_seconds", Kind: extension.Gauge, Labels: []string{"job", "scheduler", "trigger"}, OfApp: true,
		Help: "Time since a trigger was to go on; 0 before that."}
	metrics = []*extension.Metric{Ends, Spent, runs, late}
)

// gather looks at the schedulers of an app.
func gather(ctx context.Context, c *store.Client, add func(extension.Sample)) error {
	return stored(ctx, c, func(s *scheduler, loads map[string]int64, triggers []TriggerState) {
		for state, n := range loads {
			add(extension.Sample{Metric: runs, Labels: []string{s.name, state}, Value: float64(n)})
		}
		for _, t := range triggers {
			add(extension.Sample{Metric: late, Labels: []string{t.job, s.name, t.Trigger}, Value: t.late().Seconds()})
		}
	})
}

// stored calls do with each scheduler, how many runs it has by state, and those of its triggers that have a time to come.
func stored(ctx context.Context, c *store.Client, do func(*scheduler, map[string]int64, []TriggerState)) error {
	all, err := load(ctx, c, "")
	for _, s := range all {
		loads, err := s.View().Loads(ctx, s.partitions)
		if err != nil {
			return err
		}
		triggers, err := s.triggers(ctx)
		if err != nil {
			return err
		}
		do(s, loads, slices.DeleteFunc(triggers, func(t TriggerState) bool { return t.At.IsZero() }))
	}
	return err
}

// late is by how much the trigger is late.
func (t *TriggerState) late() time.Duration { return max(0, time.Since(t.At)) }

// findings are triggers that do not fire, and schedulers in which too many runs are queued.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	if limits.Age == nil && limits.Lag == nil {
		return nil, nil
	}
	const queued = "%s: %s queued, above %d: have workers free places, or does a rule hold the starts? see schedule ls and rules ls"
	const text = "%s/%s: trigger %s was to go on %s ago, above %s: does a worker run, or does a rule hold it? see schedule show %s"
	err = stored(ctx, c, func(s *scheduler, loads map[string]int64, triggers []TriggerState) {
		if n := loads["queued"]; limits.Lag != nil && n > *limits.Lag {
			found = append(found, inspect.Finding{
				Stream: s.name, What: "queued runs", Value: n, Limit: *limits.Lag,
				Text: fmt.Sprintf(queued, s.name, words.Plural(n, "run"), *limits.Lag),
			})
		}
		for _, t := range triggers {
			if by := t.late(); limits.Age != nil && by > *limits.Age {
				found = append(found, inspect.Finding{
					Stream: s.name, What: "late triggers", Value: by.Milliseconds(), Limit: limits.Age.Milliseconds(),
					Text: fmt.Sprintf(text, s.name, t.job, t.Trigger, words.Short(by), words.Short(*limits.Age), t.job),
				})
			}
		}
	})
	return found, err
}

// status is one line about all schedulers.
func status(ctx context.Context, c *store.Client) (lines []string, err error) {
	var paused []string
	counts, jobs, triggers := map[string]int64{}, map[string]bool{}, 0
	err = stored(ctx, c, func(s *scheduler, loads map[string]int64, some []TriggerState) {
		for state, n := range loads {
			counts[state] += n
		}
		for _, t := range some {
			triggers++
			jobs[s.name+"/"+t.job] = true
		}
		for name, j := range s.jobs {
			if j.Pause != nil {
				paused = append(paused, s.name+"/"+name)
			}
		}
	})
	line := fmt.Sprintf("%s of %s to come; %s queued, %d held, %d wait for another attempt, %d running",
		words.Plural(triggers, "trigger"), words.Plural(len(jobs), "job"), words.Plural(counts["queued"], "run"),
		counts["held"], counts["retry"], counts["running"])
	if len(paused) > 0 {
		slices.Sort(paused)
		line += "; paused: " + strings.Join(paused, ", ")
	}
	return []string{line}, err
}
