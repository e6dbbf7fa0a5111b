package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/bench/internal/stats"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/schedule"
)

// settles is how long a worker has until the first trigger is due.
const settles = 20 * time.Second

// triggers are as many as a task has events, which come each minute, evenly over it, and concern a task that is not there.
func triggers(t Task, start time.Time) []*ischedule.Definition {
	defs := make([]*ischedule.Definition, t.Partitions)
	for n := range defs {
		defs[n] = ischedule.NewDefinition()
	}
	for i := range t.Events {
		first := start.Add(time.Minute * time.Duration(i) / time.Duration(t.Events)).Truncate(time.Millisecond)
		trigger := jobs.Trigger{Name: fmt.Sprint("t", i), Every: jobs.Duration(time.Minute), Start: first}
		id := jobs.Source{Job: "job", Name: trigger.Name, Trigger: true}.String()
		def := defs[runnel.XXHash.Func(id, t.Partitions)]
		rule := &ischedule.Rule{Rev: 1, Trigger: trigger}
		def.Target(id, "s", "job/task/none", false)
		def.Rules[id] = ischedule.Due{ID: id, Rule: rule.String(), Position: trigger.Start.UnixMilli() - 1}
	}
	return defs
}

// firedTriggers measures how long after their times the facts of triggers are in the log, over a minute.
func firedTriggers(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	start := time.Now().Add(settles + time.Duration(t.Events)*200*time.Microsecond).Truncate(time.Second)
	var logs []string
	err := t.withScheduler(ctx, rdb, triggers(t, start), func(b *bareScheduler) error {
		for _, p := range b.parts {
			logs = append(logs, p.Log)
			if err := rdb.Del(ctx, p.Own).Err(); err != nil { // a worker's from now on
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if time.Until(start) < settles/2 {
		return nil, fmt.Errorf("%d triggers took longer to define than they should", t.Events)
	}
	app := newApp(t)
	defer app.Close()
	schedule.New(app, t.Stream, &schedule.Options{Partitions: t.Partitions})
	var waits []float64
	err = runUntil(ctx, app, func(ctx context.Context) error {
		if err := awaitReady(ctx, app); err != nil {
			return err
		}
		waits, err = readFacts(ctx, rdb, logs, t.Events)
		return err
	})
	if err != nil {
		return nil, err
	}
	return Result{"p50": stats.Quantile(waits, 0.5), "p99": stats.Quantile(waits, 0.99), "max": waits[len(waits)-1]}, nil
}

// readFacts reads the next facts of logs, and returns in order how many ms each is behind its time.
func readFacts(ctx context.Context, rdb *redis.Client, logs []string, want int) (waits []float64, err error) {
	at := map[string]string{}
	for _, log := range logs {
		at[log] = "0"
	}
	for len(waits) < want {
		args := &redis.XReadArgs{Block: time.Second, Count: 1000, Streams: append([]string(nil), logs...)}
		for _, log := range logs {
			args.Streams = append(args.Streams, at[log])
		}
		streams, err := rdb.XRead(ctx, args).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("%d of %d facts: %w", len(waits), want, err)
		}
		for _, s := range streams {
			for _, e := range s.Messages {
				at[s.Stream] = e.ID
				var due int64
				if text, is := e.Values["t"].(string); is {
					fmt.Sscan(text, &due)
					waits = append(waits, float64(entryid.Time(e.ID).UnixMilli()-due))
				}
			}
		}
	}
	slices.Sort(waits)
	return waits, nil
}
