package schedulers

import (
	"cmp"
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

// gatherer returns the Gather of the extension.
func gatherer(count *extension.Counters) func(context.Context, *store.Client, bool, func(extension.Sample)) error {
	return func(ctx context.Context, c *store.Client, ofApp bool, add func(extension.Sample)) error {
		if ofApp {
			return gatherStored(ctx, c, add)
		}
		count.Each(add)
		return nil
	}
}

// gatherStored adds how many runs there are, and by how much each trigger is late that has a time to come.
func gatherStored(ctx context.Context, c *store.Client, add func(extension.Sample)) error {
	all, err := load(ctx, c, "")
	for _, s := range all {
		loads, err := s.View().Loads(ctx, s.partitions)
		if err != nil {
			return err
		}
		for state, n := range loads {
			add(extension.Sample{Metric: runs, Labels: []string{s.name, state}, Value: float64(n)})
		}
		triggers, err := s.triggers(ctx, s.names()...)
		if err != nil {
			return err
		}
		for _, t := range triggers {
			if !t.At.IsZero() {
				by := max(0, time.Since(t.At).Seconds())
				add(extension.Sample{Metric: late, Labels: []string{t.job, s.name, t.Trigger}, Value: by})
			}
		}
	}
	return err
}

// findings are triggers that do not fire, and schedulers in which too many runs are queued.
func findings(ctx context.Context, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	if limits.Age == nil && limits.Lag == nil {
		return nil, nil
	}
	const queued = "%s: %s queued, above %d: have workers free places, or does a rule hold the starts? see schedule ls and rules ls"
	const text = "%s/%s: trigger %s was to go on %s ago, above %s: does a worker run, or does a rule hold it? see schedule show %s"
	err = gatherStored(ctx, c, func(one extension.Sample) {
		by := time.Duration(one.Value * float64(time.Second))
		if n := int64(one.Value); one.Metric == runs && one.Labels[1] == "queued" && limits.Lag != nil && n > *limits.Lag {
			found = append(found, inspect.Finding{
				Stream: one.Labels[0], What: "queued runs", Value: n, Limit: *limits.Lag,
				Text: fmt.Sprintf(queued, one.Labels[0], words.Plural(n, "run"), *limits.Lag),
			})
		}
		if one.Metric != late || limits.Age == nil || by <= *limits.Age {
			return
		}
		job, scheduler, trigger := one.Labels[0], one.Labels[1], one.Labels[2]
		found = append(found, inspect.Finding{
			Stream: scheduler, What: "late triggers", Value: by.Milliseconds(), Limit: limits.Age.Milliseconds(),
			Text: fmt.Sprintf(text, scheduler, job, trigger, words.Short(by), words.Short(*limits.Age), job),
		})
	})
	return found, err
}

// status is one line about all schedulers.
func status(ctx context.Context, c *store.Client) (lines []string, err error) {
	counts, jobs, triggers := map[string]int64{}, map[string]bool{}, 0
	err = gatherStored(ctx, c, func(one extension.Sample) {
		switch one.Metric {
		case runs:
			counts[one.Labels[1]] += int64(one.Value)
		case late:
			triggers++
			jobs[one.Labels[1]+"/"+one.Labels[0]] = true
		}
	})
	line := fmt.Sprintf("%s of %s to come; %s queued, %d held, %d wait for another attempt, %d running",
		words.Plural(triggers, "trigger"), words.Plural(len(jobs), "job"), words.Plural(counts["queued"], "run"),
		counts["held"], counts["retry"], counts["running"])
	all, failed := load(ctx, c, "")
	var paused []string
	for _, s := range all {
		for name, j := range s.jobs {
			if j.Pause != nil {
				paused = append(paused, s.name+"/"+name)
			}
		}
	}
	if len(paused) > 0 {
		slices.Sort(paused)
		line += "; paused: " + strings.Join(paused, ", ")
	}
	return []string{line}, cmp.Or(err, failed)
}
