// A send that finds fewer replicas than its stream wants returns in time and says so.

package runnel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// A send to a server without replicas ends in time, with an error that says what is
// missing; the records are in, and counted as what may get lost.
func TestWithoutReplicasASendSaysSo(t *testing.T) {
	srv := redistest.Start(t)
	want := func(what string, o *runnel.Options, err error) {
		t.Helper()
		o.RedisURL = srv.URL()
		app := runnel.New("contract", o)
		defer app.Close()
		s := runnel.NewStream(app, "items", keyOfItem, nil)
		sent, got := s.SendEvents(t.Context(), runnel.Outgoing[item]{Record: item{1}}, runnel.Outgoing[item]{Record: item{2}, After: time.Hour})
		if !errors.Is(got, err) || sent[0].ID == "" || sent[1].ID == "" {
			t.Errorf("%s: sent %+v, %v", what, sent, got)
		}
		var se *runnel.SendError
		if errors.As(got, &se) && (len(se.Failed) != 2 || !se.Failed[0].Unknown || !se.Failed[1].Unknown) {
			t.Errorf("%s: %+v", what, se.Failed)
		}
	}
	few := runnel.Durability{MinReplicas: 1, Timeout: 50 * time.Millisecond}
	want("default", &runnel.Options{}, nil)
	want("code", &runnel.Options{Durability: few}, runnel.ErrNotReplicated)
	t.Setenv("RUNNEL_MIN_REPLICAS", "2")
	t.Setenv("RUNNEL_REPLICATION_TIMEOUT", "20ms")
	want("environment", &runnel.Options{}, runnel.ErrNotReplicated)
	for variable, value := range map[string]string{"RUNNEL_MIN_REPLICAS": "-1", "RUNNEL_REPLICATION_TIMEOUT": "1m"} {
		t.Setenv(variable, value)
		if err := settled(nil, nil, nil).Run(t.Context()); err == nil {
			t.Errorf("%s=%s was taken", variable, value)
		}
		t.Setenv(variable, "")
	}
	wantPanic(t, "MinReplicas -1", func() { runnel.New("contract", &runnel.Options{Durability: runnel.Durability{MinReplicas: -1}}) })
	wantPanic(t, "Timeout 1ns", func() { runnel.New("contract", &runnel.Options{Durability: runnel.Durability{Timeout: 1}}) })
}

// In memory there is nothing to wait for: an app runs there as it is.
func TestDurabilityHoldsInMemory(t *testing.T) {
	var n notes
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		o.Durability.MinReplicas = 2
		app := runnel.New("contract", o)
		s := runnel.NewStream(app, "items", keyOfItem, nil)
		s.Process("p", runnel.Each(func(context.Context, *runnel.Event, item) error { n.add("processed"); return nil }), nil)
		app.Task("send", func(ctx context.Context) error { return s.Send(ctx, item{1}) }, nil)
		return app
	}, func(c *runneltest.Cluster) {
		ready(c, "a")
		c.Wait(func() bool { return n.has("processed") })
	})
}
