// Shapes: a cluster, and many workers over an odd number of partitions.

package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/schedule"
)

// chained are three tasks and a join for each minute before a time, which count their runs.
func chained(s *schedule.Scheduler, end time.Time, times int, ran *atomic.Int64) {
	does := func(context.Context, *schedule.Run) error {
		ran.Add(1)
		return nil
	}
	s.Job("j", schedule.Job{
		Triggers: []schedule.Trigger{{Name: "minute", Every: time.Minute, Start: end.Add(-time.Duration(times) * time.Minute), End: end, MaxCatchUp: times}},
		Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/minute"}, Do: does},
			{Name: "b", After: []string{"task/a"}, Do: does, Limit: 3},
			{Name: "joined", After: []string{"task/a", "task/b"}},
			{Name: "c", After: []string{"task/joined"}, Do: does},
		},
	})
}

// TestACluster runs tasks whose facts go from master to master, while slots move.
func TestACluster(t *testing.T) {
	tier.Server(t)
	cluster := redistest.StartCluster(t, 3, 0)
	const times = 2000
	var ran atomic.Int64
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		app := runnel.New("shop", &runnel.Options{RedisURL: cluster.URL(), KeyLayout: runnel.LayoutCluster, LogLevel: "error"})
		chained(schedule.New(app, "schedule", &schedule.Options{Partitions: 11}), end, times, &ran)
		go func() {
			defer app.Close()
			ended <- app.Run(ctx)
		}()
	}
	redistest.Eventually(t, "some tasks have run", func() bool { return ran.Load() > 10 })
	for n := range 4 { // with all of a partition's keys
		slot, masters := cluster.Slot(fmt.Sprintf("{shop.%d}", n)), cluster.Masters()
		to := masters[n%len(masters)]
		if to == cluster.Owner(slot) {
			to = masters[(n+1)%len(masters)]
		}
		move := cluster.Begin(slot, to)
		for move.Some(1) > 0 {
		}
		move.End()
	}
	redistest.Eventually(t, "all tasks have run", func() bool { return ran.Load() >= 3*times })
	app := runnel.New("shop", &runnel.Options{RedisURL: cluster.URL(), KeyLayout: runnel.LayoutCluster, LogLevel: "error"})
	defer app.Close()
	s := schedule.New(app, "schedule", &schedule.Options{Partitions: 11})
	op, err := s.Activate(ctx, schedule.Activation{Job: "j", Time: end.Add(-time.Minute)}, nil)
	if err == nil {
		_, err = op.Wait(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "they ran again", func() bool { return ran.Load() >= 3*times+3 })
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// An operation that replicas have not confirmed is an error, and is the same one when it is repeated; what a partition tells another one is
// told until replicas confirm it.
func TestReplicasConfirmOperationsAndFacts(t *testing.T) {
	tier.Server(t)
	master, replica := redistest.Start(t), redistest.Start(t)
	var ran atomic.Int64
	durable := &runnel.Options{RedisURL: master.URL(), LogLevel: "error", Durability: runnel.Durability{MinReplicas: 1, Timeout: 200 * time.Millisecond}}
	app := runnel.New("shop", durable)
	defer app.Close()
	s := schedule.New(app, "schedule", &schedule.Options{Partitions: 7})
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	chained(s, end, 1, &ran)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	asks := &schedule.OpOptions{ID: "again"}
	_, err := s.Activate(ctx, schedule.Activation{Job: "j", Time: end.Add(-time.Minute)}, asks)
	if !errors.Is(err, runnel.ErrNotReplicated) {
		t.Errorf("an operation without a replica: %v", err)
	}
	follow := func(of ...any) {
		if err := replica.Client(t).Do(ctx, append([]any{"REPLICAOF"}, of...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := net.SplitHostPort(master.Addr())
	follow(host, port)
	go func() { ended <- app.Run(ctx) }()
	redistest.Eventually(t, "all tasks have run", func() bool { return ran.Load() == 3 })
	follow("NO", "ONE")
	op, err := s.Activate(ctx, schedule.Activation{Job: "j", Time: end.Add(-time.Minute)}, asks)
	if !errors.Is(err, runnel.ErrNotReplicated) {
		t.Errorf("a repetition without a replica: %v, %v", op, err)
	}
	follow(host, port)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestManyWorkers has more workers than partitions; each task runs once for each time.
func TestManyWorkers(t *testing.T) {
	var ran atomic.Int64
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app := runnel.New("shop", o)
		chained(schedule.New(app, "schedule", &schedule.Options{Partitions: 7}), begin, tier.Large(100), &ran)
		return app
	}, func(c *runneltest.Cluster) {
		for i := range 20 {
			c.Start(fmt.Sprint("w", i))
		}
		c.Sleep(2 * time.Minute)
		if n, want := ran.Load(), int64(3*tier.Large(100)); n != want {
			t.Errorf("%d runs, want %d", n, want)
		}
	})
}
