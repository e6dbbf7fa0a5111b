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
	t.Parallel()
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
			worker := func(o *runnel.Options) {
				if o.WorkerName == "a" {
					withoutAcks(o, &lost)
				}
			}
			fn := runnel.EachBatch(tt.batch, 50*time.Millisecond, func(_ context.Context, es []*runnel.Event, is []item) error {
				for n, i := range is {
					if i.N == 2 {
						return tt.fails(es[n])
					}
				}
				return nil
			})
			opts := &runnel.ProcessorOptions{Lease: time.Second, Retry: &runnel.Retry{Max: 3, Order: runnel.OrderKey}}
			simulation{worker: worker}.run(t, fn, opts, func(c *simulated) {
				a := ready(c.Cluster, "a")
				lost.Store(true)
				c.send(1, 2, 3)
				c.Sleep(500 * time.Millisecond)
				a.Kill()
				ready(c.Cluster, "b")
				c.Sleep(time.Minute)
				if got := deadLetters(t, c.Cluster, 0); !slices.Equal(got, []string{"2#1 dead"}) {
					t.Errorf("dead letters %q", got)
				}
				if left := unsettled(t, c.Cluster, 1); left != 0 {
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
	fn := runnel.EachBatch(10, 0, func(ctx context.Context, es []*runnel.Event, is []item) error {
		for k := range is {
			n.add(attempt(ctx, es[k], is[k]))
		}
		return runnel.RetryAfter(errBad, time.Hour)
	})
	stream := &runnel.StreamOptions{Partitions: 1, MaxLen: 4}
	simulate(t, nil, stream, fn, retrying(9, runnel.OrderNone), func(c *simulated) {
		c.append(1, 9)
		a := ready(c.Cluster, "a")
		c.Sleep(10 * time.Second)
		c.stop(a)
		ready(c.Cluster, "b")
		c.Sleep(10 * time.Second)
		wantNotes(t, &n, "a 1#1", "a 2#1", "a 3#1", "a 4#1")
		if got := parkedIn(t, c.Cluster, 0); got != 4 {
			t.Errorf("%d are parked", got)
		}
	})
}

// An event that cannot be decoded ends a batch before it. What lies behind it in the batch may be parked by then: the
// position does not pass the event.
func TestAnEventThatEndsABatchIsNotPassed(t *testing.T) {
	fn := runnel.EachBatch(3, 50*time.Millisecond, func(_ context.Context, es []*runnel.Event, is []item) error {
		for n, i := range is {
			if i.N == 1 {
				return runnel.FailedEvents(runnel.RetryAfter(errBad, 10*time.Second), es[n])
			}
		}
		return nil
	})
	keyed := simulation{key: func(i item) string { return fmt.Sprint(i.N % 10) }}
	keyed.run(t, fn, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2, Order: runnel.OrderKey}}, func(c *simulated) {
		ready(c.Cluster, "a")
		c.send(1)
		c.Sleep(time.Second)
		bad := xadd(0)
		bad.Values = []any{"json", `{"N":`}
		_, err := c.Redis().Pipelined(c.Context(), func(p redis.Pipeliner) error {
			p.XAdd(c.Context(), xadd(2))
			p.XAdd(c.Context(), bad)
			p.XAdd(c.Context(), xadd(11)) // waits for 1
			return nil
		})
		c.must(err)
		c.Sleep(time.Minute)
		if got := len(deadLetters(t, c.Cluster, 0)); got != 2 {
			t.Errorf("%d dead letters, want 1 and what cannot be decoded", got)
		}
		if left := unsettled(t, c.Cluster, 1); left != 0 {
			t.Errorf("%d events are not done", left)
		}
	})
}
