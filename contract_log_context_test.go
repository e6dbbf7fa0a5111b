package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// traceKey is the key of what traced puts into an iteration's context.
type traceKey struct{}

// traced gives each iteration's context the entry ID of its event, and refuses
// those of this number without calling next.
func traced(refused int) runnel.Middleware {
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			if b.Events[0].Header("n") == fmt.Sprint(refused) {
				return errBad
			}
			return next(context.WithValue(ctx, traceKey{}, b.Events[0].ID), b)
		}
	}
}

// traceHandler adds what traced put into the context.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		r = r.Clone()
		r.AddAttrs(slog.String("trace", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

// The framework's own lines about an event get the context that middleware gave to
// its iteration, and say once where they come from.
func TestLinesAboutAnEventHaveItsContext(t *testing.T) {
	fail := func(err error) runnel.ProcessFunc[item] {
		return runnel.Each(func(context.Context, *runnel.Event, item) error { return err })
	}
	slow := runnel.Each(func(context.Context, *runnel.Event, item) error { time.Sleep(10 * time.Second); return nil })
	for _, tt := range []struct {
		name, line string
		fn         runnel.ProcessFunc[item]
		opts       runnel.ProcessorOptions
	}{
		{"ignored", "error ignored", fail(errBad), runnel.ProcessorOptions{OnError: runnel.Ignore}},
		{"quarantined", "partition quarantined", fail(errBad), runnel.ProcessorOptions{OnError: runnel.Quarantine}},
		{"retried", "attempt failed", fail(errBad), runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2}}},
		{"retried again", "event is a dead letter", fail(errBad), runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2}}},
		{"dead", "event is a dead letter", fail(runnel.DeadLetter(errBad)), runnel.ProcessorOptions{}},
		{"dropped", "event dropped", fail(runnel.Drop(errBad)), runnel.ProcessorOptions{}},
		{"stuck", "function is stuck", slow, runnel.ProcessorOptions{Timeout: time.Second}},
		{"others failed", "error of events that are not of the batch", fail(runnel.FailedEvents(errBad, &runnel.Event{})), runnel.ProcessorOptions{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log syncLog
			tt.opts.Middleware = []runnel.Middleware{traced(-1)}
			handler := runnel.LogHandler(traceHandler{slog.NewTextHandler(&log, nil)})
			runWith(t, handler, tt.fn, &tt.opts, func(c *runneltest.Cluster, send func(...int)) {
				send(1)
				c.Wait(func() bool { return strings.Contains(log.text(), tt.line) })
			})
			m := regexp.MustCompile(`(?m)^.*msg="` + tt.line + `.*$`).FindString(log.text())
			if !regexp.MustCompile(` trace=\d+-\d+`).MatchString(m) || strings.Count(m, " processor=p") != 1 {
				t.Errorf("the line is %s", m)
			}
		})
	}
}

// Also those about an event that never reached the loop.
func TestLinesAboutAnUndecodableEventHaveItsContext(t *testing.T) {
	var log syncLog
	opts := &runnel.ProcessorOptions{OnError: runnel.Ignore, Middleware: []runnel.Middleware{traced(-1)}}
	runWith(t, traceHandler{slog.NewTextHandler(&log, nil)}, ignoreAll, opts, func(c *runneltest.Cluster, _ func(...int)) {
		bad := &redis.XAddArgs{Stream: "__strm:contract.items.0", Values: []any{"json", "no"}}
		if err := c.Redis().XAdd(c.Context(), bad).Err(); err != nil {
			t.Fatal(err)
		}
		c.Wait(func() bool { return strings.Contains(log.text(), "error ignored") })
	})
	if !regexp.MustCompile(`error ignored.* trace=\d+-\d+`).MatchString(log.text()) {
		t.Errorf("logged\n%s", log.text())
	}
}

// A line has nothing of an iteration before its own.
func TestLinesHaveNoContextOfAnotherEvent(t *testing.T) {
	var log syncLog
	fn := func(_ context.Context, ev *runnel.Events[item]) error {
		for i := range ev.Records() {
			if i.N == 1 {
				return errBad
			}
		}
		return nil
	}
	opts := &runnel.ProcessorOptions{OnError: runnel.Ignore, Middleware: []runnel.Middleware{traced(2)}}
	runWith(t, traceHandler{slog.NewTextHandler(&log, nil)}, fn, opts, func(c *runneltest.Cluster, send func(...int)) {
		send(1, 2)
		c.Wait(func() bool { return strings.Count(log.text(), "error ignored") == 2 })
	})
	lines := regexp.MustCompile(`(?m)^.*error ignored.*$`).FindAllString(log.text(), -1)
	if !strings.Contains(lines[0], " trace=") || strings.Contains(lines[1], " trace=") {
		t.Errorf("logged\n%s", strings.Join(lines, "\n"))
	}
}

// runWith simulates a worker of one partition that logs with the handler. Items are
// sent with their number in a header, too.
func runWith(t *testing.T, handler slog.Handler, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions, run func(*runneltest.Cluster, func(...int))) {
	t.Helper()
	one := &runnel.StreamOptions{Partitions: 1}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		o.Logger = slog.New(handler)
		app := runnel.New("contract", o)
		runnel.NewStream(app, "items", keyOfItem, one).Process("p", fn, opts)
		return app
	}, func(c *runneltest.Cluster) {
		app := runnel.New("contract", c.Options("sender"))
		defer app.Close()
		s := runnel.NewStream(app, "items", keyOfItem, one)
		ready(c, "a")
		run(c, func(numbers ...int) {
			for _, n := range numbers {
				if _, err := s.SendEvents(c.Context(), runnel.Outgoing[item]{Record: item{n}, Headers: map[string]string{"n": fmt.Sprint(n)}}); err != nil {
					t.Error(err)
				}
			}
		})
	})
}
