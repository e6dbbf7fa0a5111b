package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/redisconn"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/schedule"
)

const (
	chains    = 64 // jobs of a trigger and three tasks, each behind the one before
	tasksEach = 3
	timeEvery = time.Hour
)

// firstTime is the first logical time of all triggers.
var firstTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// timesOf is how many logical times each trigger of a task has.
func timesOf(t Task) int { return t.Events / (chains * tasksEach) }

func lastOf(t Task) time.Time { return firstTime.Add(time.Duration(timesOf(t)) * timeEvery) }

// runnelSchedule runs all times of the chains, with functions that do nothing.
func runnelSchedule(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	m := newMeter(t.Events)
	s := schedule.New(app, t.Stream, &schedule.Options{Partitions: t.Partitions, Concurrency: t.Places, Ahead: t.Events})
	does := func(context.Context, *schedule.Run) error {
		m.add(1)
		return nil
	}
	for i := range chains {
		job := schedule.Job{Triggers: []schedule.Trigger{{Name: "hour", Every: timeEvery, Start: firstTime, End: lastOf(t), MaxCatchUp: timesOf(t)}}}
		after := "trigger/hour"
		for k := range tasksEach {
			name := fmt.Sprint("t", k)
			job.Tasks = append(job.Tasks, schedule.Task{Name: name, After: []string{after}, Do: does, Priority: schedule.PriorityNormal})
			after = "task/" + name
		}
		s.Job(fmt.Sprint("job", i), job)
	}
	if err := runUntil(ctx, app, m.wait); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// idleSchedule measures a worker whose scheduler has nothing to do for years.
func idleSchedule(ctx context.Context, t Task) (Result, error) {
	return t.idle(ctx, func(app *runnel.App) {
		s := schedule.New(app, t.Stream, &schedule.Options{Partitions: t.Partitions})
		for i := range chains {
			s.Job(fmt.Sprint("job", i), schedule.Job{
				Triggers: []schedule.Trigger{{Name: "hour", Every: timeEvery, Start: firstTime.AddDate(100, 0, 0)}},
				Tasks:    []schedule.Task{{Name: "t", After: []string{"trigger/hour"}, Do: func(context.Context, *schedule.Run) error { return nil }}},
			})
		}
	})
}

// A bareScheduler is a scheduler as a loop written by hand sees it: its scripts, and a group of its log.
type bareScheduler struct {
	Task
	rdb   *redis.Client
	calls *ischedule.Scheduler
	parts []store.Partition
}

// withScheduler passes the scripts of a task's scheduler to fn, which owns all partitions.
func (t Task) withScheduler(ctx context.Context, rdb *redis.Client, defs []*ischedule.Definition, fn func(b *bareScheduler) error) error {
	client, err := store.Open(redisconn.Options{URL: t.URL, Keys: keyNames})
	if err != nil {
		return err
	}
	defer client.Close()
	b := &bareScheduler{Task: t, rdb: rdb, calls: ischedule.New(client, t.Stream)}
	for n, def := range defs {
		p := client.Partition(t.Stream, ischedule.Processor, n)
		b.parts = append(b.parts, p)
		if err := b.calls.Define(ctx, n, 1, ischedule.NewDefinition(), def, true); err != nil {
			return err
		}
		if err := errors.Join(rdb.HSet(ctx, p.Own, "tenure", bareFence).Err(), rdb.XGroupCreateMkStream(ctx, p.Log, "bare", "0").Err()); err != nil {
			return err
		}
	}
	return fn(b)
}

// bareSchedule does the same with the package's scripts, in a goroutine for each partition: it fires all times, and then reads and
// applies facts, takes runs and ends them, as many as a call may have.
func bareSchedule(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	all := map[string]*ischedule.Job{}
	for i := range chains {
		name := fmt.Sprint("job", i)
		def := &jobs.Job{Name: name, Triggers: []jobs.Trigger{{Name: "hour", Every: jobs.Duration(timeEvery), Start: firstTime, End: lastOf(t)}}}
		after := "trigger/hour"
		for k := range tasksEach {
			task := fmt.Sprint("t", k)
			def.Tasks = append(def.Tasks, jobs.Task{Name: task, After: []string{after}, Handler: "none"})
			after = "task/" + task
		}
		all[name] = &ischedule.Job{Rev: 1, Def: def}
	}
	m := newMeter(t.Events)
	defs := ischedule.Compile(all, t.Partitions, func(source string) int { return runnel.XXHash.Func(source, t.Partitions) }, 0)
	err := t.withScheduler(ctx, rdb, defs, func(b *bareScheduler) error {
		g, ctx := errgroup.WithContext(ctx)
		for n := range b.parts {
			g.Go(func() error { return errors.Join(b.fireAll(ctx, n), b.loop(ctx, n, m)) })
		}
		return g.Wait()
	})
	if err != nil {
		return nil, err
	}
	return m.result(), nil
}

// fireAll fires all times of the triggers of a partition.
func (b *bareScheduler) fireAll(ctx context.Context, n int) error {
	for {
		due, now, _, err := b.calls.Due(ctx, n, 1)
		if err != nil || len(due) == 0 {
			return err
		}
		f := &ischedule.Fire{Due: due[0], Source: due[0].ID, Next: now.UnixMilli(), Class: ischedule.Own}
		for at := firstTime; at.Before(lastOf(b.Task)) && len(f.Times) < ischedule.PerCall; at = at.Add(timeEvery) {
			if at.UnixMilli() > due[0].Position {
				f.Times, f.To = append(f.Times, at.UnixMilli()), at.UnixMilli()
			}
		}
		f.Over = len(f.Times) == 0
		if err := b.calls.Fire(ctx, n, bareFence, f); err != nil {
			return err
		}
	}
}

func (b *bareScheduler) loop(ctx context.Context, n int, m *meter) error {
	for m.n.Load() < m.want {
		facts, err := b.apply(ctx, n)
		if err != nil {
			return err
		}
		take := &ischedule.Take{
			Partition: n, Fence: bareFence, Runner: "bare", Life: time.Minute, Most: ischedule.PerCall, MostBackfill: ischedule.PerCall,
		}
		if err := b.calls.Take(ctx, take); err != nil {
			return err
		}
		if facts+len(take.Runs) == 0 {
			if err := rest(ctx, time.Millisecond); err != nil { // other partitions have to go on first
				return err
			}
			continue
		}
		ends := make([]*ischedule.End, len(take.Runs))
		for i := range ends {
			ends[i] = &ischedule.End{Run: &take.Runs[i], Result: ischedule.Success}
		}
		b.calls.Finish(ctx, map[int][]*ischedule.End{n: ends})
		for _, e := range ends {
			if e.Err != nil {
				return e.Err
			}
		}
		m.add(int64(len(ends)))
	}
	return nil
}

// apply applies the next facts of a partition, and returns how many there were.
func (b *bareScheduler) apply(ctx context.Context, n int) (int, error) {
	streams, err := b.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: "bare", Consumer: "bare", Streams: []string{b.parts[n].Log, ">"}, Count: 2 * ischedule.PerCall, Block: -1,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var facts []ischedule.Fact
	var ids []string
	for _, e := range streams[0].Messages {
		fields := map[string]string{}
		for name, value := range e.Values {
			fields[name], _ = value.(string)
		}
		f, err := ischedule.FactOf(n, e.ID, fields)
		if err != nil {
			return 0, err
		}
		if ids = append(ids, e.ID); f.Source != "" {
			facts = append(facts, f)
		}
	}
	tokens := ischedule.Tokens(facts, func(source string) int { return runnel.XXHash.Func(source, b.Partitions) })
	if _, err := b.calls.Apply(ctx, tokens); err != nil {
		return 0, err
	}
	return len(facts), b.rdb.XAck(ctx, b.parts[n].Log, "bare", ids...).Err()
}
