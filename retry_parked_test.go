// A parked event keeps its attempts and is a dead letter once, also where acks got lost or the park
// is full.

package runnel_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// An ackless connection loses acks while it is switched on.
type ackless struct {
	net.Conn
	on *atomic.Bool
}

func (c ackless) Write(b []byte) (int, error) {
	if c.on.Load() && bytes.Contains(bytes.ToLower(b), []byte("\r\nxack\r\n")) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// withoutAcks makes the acks of an app get lost while on says so.
func withoutAcks(o *runnel.Options, on *atomic.Bool) {
	opts := *o.Redis.(*redis.Client).Options()
	dial := opts.Dialer
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return ackless{c, on}, nil
	}
	o.Redis = redis.NewClient(&opts)
}

// An event that was moved out of its partition does not come again with one before
// it whose ack did not arrive: it is a dead letter once, and its attempts go on.
func TestWhatWasMovedAsideStaysThereWhereAcksGotLost(t *testing.T) {
	for name, tt := range map[string]struct {
		batch int
		fails func(e *runnel.Event) error
	}{
		"the event before": {1, func(*runnel.Event) error { return runnel.DeadLetter(errBad) }},
		"of the same batch": {3, func(e *runnel.Event) error {
			return runnel.FailedEvents(runnel.DeadLetter(errBad), e)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var lost atomic.Bool
			declare := func(o *runnel.Options) (*runnel.App, *runnel.Stream[item]) {
				app := runnel.New("contract", o)
				return app, runnel.NewStream(app, "items", func(i item) string { return fmt.Sprint(i.N) }, &runnel.StreamOptions{Partitions: 1})
			}
			runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
				if o.WorkerName == "a" {
					withoutAcks(o, &lost)
				}
				app, s := declare(o)
				s.Process("p", runnel.EachBatch(tt.batch, 50*time.Millisecond, func(_ context.Context, es []*runnel.Event, is []item) error {
					for n, i := range is {
						if i.N == 2 {
							return tt.fails(es[n])
						}
					}
					return nil
				}), &runnel.ProcessorOptions{Lease: time.Second, Retry: &runnel.Retry{Max: 3, Order: runnel.OrderKey}})
				return app
			}, func(c *runneltest.Cluster) {
				app, s := declare(c.Options("sender"))
				defer app.Close()
				a := ready(c, "a")
				lost.Store(true)
				if err := s.Send(c.Context(), items(1, 2, 3)...); err != nil {
					t.Fatal(err)
				}
				c.Sleep(500 * time.Millisecond)
				a.Kill()
				ready(c, "b")
				c.Sleep(time.Minute)
				if got := deadLetters(t, c, 0); !slices.Equal(got, []string{"2#1 dead"}) {
					t.Errorf("dead letters %q", got)
				}
				if left := unsettled(t, c, 1); left != 0 {
					t.Errorf("%d events are not done", left)
				}
			})
		})
	}
}

// A partition with no room for more parked events begins no new one, so that no
// attempt is forgotten when it moves.
func TestAFullParkForgetsNoAttempt(t *testing.T) {
	var n notes
	declare := func(o *runnel.Options) (*runnel.App, *runnel.Stream[item]) {
		app := runnel.New("contract", o)
		return app, runnel.NewStream(app, "items", func(i item) string { return fmt.Sprint(i.N) }, &runnel.StreamOptions{Partitions: 1, MaxLen: 4})
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app, s := declare(o)
		s.Process("p", runnel.EachBatch(10, 0, func(ctx context.Context, es []*runnel.Event, is []item) error {
			for k := range is {
				n.add(attempt(ctx, es[k], is[k]))
			}
			return runnel.RetryAfter(errBad, time.Hour)
		}), retrying(9, runnel.OrderNone))
		return app
	}, func(c *runneltest.Cluster) {
		for i := 1; i <= 9; i++ {
			if err := c.Redis().XAdd(c.Context(), xadd(i)).Err(); err != nil {
				t.Fatal(err)
			}
		}
		a := ready(c, "a")
		c.Sleep(10 * time.Second)
		if err := a.Stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		ready(c, "b")
		c.Sleep(10 * time.Second)
		wantNotes(t, &n, "a 1#1", "a 2#1", "a 3#1", "a 4#1")
		if got := parkedIn(t, c, 0); got != 4 {
			t.Errorf("%d are parked", got)
		}
	})
}
