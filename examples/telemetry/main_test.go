package main

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// A worker dies between the write of a mean and the ack of its event. The next one processes the
// event again, which is counted once.
func TestMeansSurviveACrash(t *testing.T) {
	const readings = 20
	var added atomic.Int64 // calls of add that came through
	crash := func(ctx context.Context) {
		w := runneltest.WorkerOf(ctx)
		if added.Add(1) == readings/2 && w.Name() == "a" {
			w.Kill()
		}
	}
	build := func(o *runnel.Options) *runnel.App {
		app := runnel.New("plant", o)
		m := means{o.Redis}
		register(app, func(ctx context.Context, e *runnel.Event, r Reading) (float64, error) {
			if err := runneltest.Gate(ctx); err != nil {
				return 0, err
			}
			mean, err := m.add(ctx, e, r)
			if err == nil {
				crash(ctx)
			}
			return mean, err
		})
		return app
	}
	runneltest.Sim(t, build, func(c *runneltest.Cluster) {
		app := runnel.New("plant", c.Options("sender"))
		defer app.Close()
		stream := register(app, nil)
		c.Start("a")
		var want float64
		for i := range readings {
			want += float64(i)
			if err := stream.Send(c.Context(), Reading{"boiler", float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		c.Wait(func() bool { return added.Load() >= readings/2 })
		c.Start("b")
		counted := func() int {
			n, err := c.Redis().HGet(c.Context(), "mean:boiler", "n").Int()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		c.Wait(func() bool { return counted() >= readings })
		c.Sleep(time.Minute)
		sum, err := c.Redis().HGet(c.Context(), "mean:boiler", "sum").Float64()
		if err != nil {
			t.Fatal(err)
		}
		if n := counted(); n != readings || math.Abs(sum-want) > 1e-9 {
			t.Errorf("%v readings add up to %v, want %v of %v", n, sum, readings, want)
		}
		if added.Load() <= readings {
			t.Errorf("%d calls for %d readings: the event of the crash did not come twice", added.Load(), readings)
		}
	})
}

// A write of a former owner is refused once a later one has written.
func TestMeanOfAFormerOwnerIsRefused(t *testing.T) {
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App { return runnel.New("plant", o) }, func(c *runneltest.Cluster) {
		m := means{c.Redis()}
		for _, step := range []struct {
			event *runnel.Event
			want  float64 // negative: refused
		}{
			{&runnel.Event{ID: "1-0", Epoch: 7}, 1},
			{&runnel.Event{ID: "1-1", Epoch: 8}, 1.5},
			{&runnel.Event{ID: "1-1", Epoch: 8}, 1.5},
			{&runnel.Event{ID: "2-0", Epoch: 7}, -1},
		} {
			value := 1.0
			if step.event.ID != "1-0" {
				value = 2
			}
			mean, err := m.add(c.Context(), step.event, Reading{"boiler", value})
			if refused := err != nil; refused != (step.want < 0) || !refused && mean != step.want {
				t.Errorf("event %s of epoch %d: mean %v, %v; want %v", step.event.ID, step.event.Epoch, mean, err, step.want)
			}
		}
	})
}
