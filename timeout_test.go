// A Timeout ends the context of an iteration, which is then a failed attempt.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/middleware"
	"github.com/runnel-go/runnel/runneltest"
)

// obedient takes as many seconds as the record says, or until its context ends.
func obedient(ctx context.Context, i item) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(i.N) * time.Second):
		return nil
	}
}

// Each iteration has its own Timeout, and the error of one that it ended is an
// error as any other.
func TestTimeoutEndsTheContextOfAnIteration(t *testing.T) {
	for _, tt := range []struct {
		name string
		fn   runnel.ProcessFunc[item]
	}{
		{"records", func(_ context.Context, events *runnel.Events[item]) error {
			for i := range events.Records() {
				if err := obedient(events.Context(), i); err != nil {
					return err
				}
			}
			return nil
		}},
		{"each", runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error { return obedient(ctx, i) })},
		{"batches of one", runnel.EachBatch(1, 0, func(ctx context.Context, _ []*runnel.Event, i []item) error { return obedient(ctx, i[0]) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := declareItems(tt.fn, &runnel.ProcessorOptions{OnError: runnel.Ignore, Timeout: 2 * time.Second})
				began := time.Now()
				got := runneltest.Process(t, s, "p", items(1, 1, 5, 1)...)
				wantAcked(t, got, "1-0", "2-0", "3-0", "4-0")
				if got.Ignored != 1 || !errors.Is(got.IgnoredErrs[0], runnel.ErrTimeout) || !strings.Contains(got.IgnoredErrs[0].Error(), "event 0/3-0: timeout of the iteration: it took longer than 2s") {
					t.Errorf("ignored %v", got.IgnoredErrs)
				}
				if d := time.Since(began); d != 5*time.Second {
					t.Errorf("took %v, want 1, 1, 2 and 1 seconds", d)
				}
			})
		})
	}
}

// It bounds each call of the function, and neither the pauses of middleware nor
// what stands before the loop.
func TestTimeoutIsOfEachCallOfTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := declareItems(func(ctx context.Context, events *runnel.Events[item]) error {
			time.Sleep(time.Minute)
			for i := range events.Records() {
				if calls++; calls < 3 {
					return errBad
				}
				if err := obedient(events.Context(), i); err != nil {
					return err
				}
			}
			return nil
		}, &runnel.ProcessorOptions{Timeout: 2 * time.Second, Middleware: []runnel.Middleware{middleware.RetryInPlace(3, time.Minute)}})
		got := runneltest.Process(t, s, "p", items(1)...)
		wantAcked(t, got, "1-0")
		wantErr(t, got.Err, nil)
	})
}

func TestTimeoutLeavesOtherErrorsAlone(t *testing.T) {
	s := declareItems(failAt, &runnel.ProcessorOptions{Timeout: time.Hour})
	got := runneltest.Process(t, s, "p", items(1, 2)...)
	wantErr(t, got.Err, errBad)
	if errors.Is(got.Err, runnel.ErrTimeout) {
		t.Errorf("%v", got.Err)
	}
}

// FailedEvents goes through the error that Timeout makes.
func TestTimeoutKeepsWhichEventsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := declareItems(runnel.EachBatch(3, 0, func(ctx context.Context, e []*runnel.Event, _ []item) error {
			<-ctx.Done()
			return runnel.FailedEvents(ctx.Err(), e[1])
		}), &runnel.ProcessorOptions{OnError: runnel.Halt, Timeout: time.Second})
		got := runneltest.Process(t, s, "p", items(1, 2, 3)...)
		wantAcked(t, got, "1-0", "3-0")
		wantErr(t, got.Err, runnel.ErrTimeout)
	})
}

func TestTheTimeoutGoesProcessorAppEnvironmentDefault(t *testing.T) {
	for _, tt := range []struct {
		name, env string
		app, own  time.Duration
		want      time.Duration // 0: none
	}{
		{"default", "", 0, 0, 0},
		{"environment", "7s", 0, 0, 7 * time.Second},
		{"app", "7s", 6 * time.Second, 0, 6 * time.Second},
		{"processor", "7s", 6 * time.Second, 5 * time.Second, 5 * time.Second},
		{"none", "7s", 6 * time.Second, -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("RUNNEL_TIMEOUT", tt.env)
			synctest.Test(t, func(t *testing.T) {
				var left time.Duration
				app := runnel.New("contract", &runnel.Options{Processor: runnel.ProcessorOptions{Timeout: tt.app}})
				s := runnel.NewStream(app, "items", keyOfItem, nil)
				s.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, _ item) error {
					if at, ok := ctx.Deadline(); ok {
						left = time.Until(at)
					}
					return nil
				}), &runnel.ProcessorOptions{Timeout: tt.own})
				runneltest.Process(t, s, "p", items(1)...)
				if left != tt.want {
					t.Errorf("%v left, want %v", left, tt.want)
				}
			})
		})
	}
}

// deafTo goes on when its context ends; its name is to be found in the report.
func deafTo(release <-chan struct{}) { <-release }

// A function that ignores the end of its Timeout is reported, with its stack, after
// another Timeout and then each minute; its partition waits, the others go on.
func TestAFunctionThatIgnoresItsTimeoutIsReported(t *testing.T) {
	t.Parallel()
	var log redistest.Log
	var n notes
	var release chan struct{} // of the bubble
	fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		if i.N == 2 {
			deafTo(release)
		}
		n.add(e.ID)
		return nil
	})
	sim := simulation{
		key: keyOfItem, stream: &runnel.StreamOptions{Partitions: 2},
		worker: func(o *runnel.Options) { o.Logger = log.Logger() },
	}
	sim.run(t, fn, &runnel.ProcessorOptions{Timeout: 5 * time.Second}, func(c *simulated) {
		release = make(chan struct{})
		ready(c.Cluster, "a")
		began := time.Now()
		c.send(1)
		c.send(2)
		c.send(3)
		c.Wait(func() bool { return strings.Contains(log.String(), "function is stuck") })
		if d := time.Since(began); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("reported after %v, want two Timeouts", d)
		}
		for _, want := range []string{"level=ERROR", "partition=", "stream=items", "processor=p", "after=10s", "event=", "deafTo", "stack=\"goroutine ", "#function-is-stuck"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log.String())
			}
		}
		c.Sleep(2*time.Minute + time.Second) // the third report may come at the very end of two
		if got := strings.Count(log.String(), "function is stuck"); got != 3 {
			t.Errorf("reported %d times within two minutes", got)
		}
		if len(n.all()) != 1 {
			t.Errorf("processed %v beside the event that is stuck", n.all())
		}
		close(release)
		c.Wait(func() bool { return len(n.all()) == 3 })
		c.Sleep(5 * time.Minute)
		if got := strings.Count(log.String(), "function is stuck"); got != 3 {
			t.Errorf("reported %d times, though it has returned", got)
		}
	})
}

// With a Retry, an iteration that its Timeout ended was an attempt as any other.
func TestATimeoutIsAFailedAttempt(t *testing.T) {
	var n notes
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, _ item) error {
		n.add(fmt.Sprint("attempt ", e.Attempt))
		<-ctx.Done()
		return ctx.Err()
	})
	opts := &runnel.ProcessorOptions{Timeout: time.Second, Retry: &runnel.Retry{Max: 2, MinBackoff: time.Second}}
	cluster(t, 1, fn, opts, func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		send(1)
		c.Wait(func() bool { return c.Redis().XLen(c.Context(), "__dead:contract.items.p.0").Val() == 1 })
		letter := c.Redis().XRange(c.Context(), "__dead:contract.items.p.0", "-", "+").Val()[0]
		if text := fmt.Sprint(letter.Values["__dead.error"]); !strings.Contains(text, "timeout of the iteration: it took longer than 1s") {
			t.Errorf("the dead letter says %q", text)
		}
	})
	if got := strings.Join(n.all(), ", "); got != "attempt 1, attempt 2" {
		t.Error(got)
	}
}
