// A line of the log says which app, processor, partition and event it is about, and has the
// context of its event.

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
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// LogHandler adds to the user's lines where they come from, and nothing to those
// that come from elsewhere.
func TestLogHandlerSaysWhereALineComesFrom(t *testing.T) {
	var own redistest.Log
	log := slog.New(runnel.LogHandler(slog.NewTextHandler(&own, nil)))
	fn := func(ctx context.Context, ev *runnel.Events[item]) error {
		log.InfoContext(ctx, "before")
		for e, i := range ev.All() {
			log.InfoContext(ev.Context(), "record", "n", i.N, "id", e.ID)
			log.Info("no context")
		}
		log.InfoContext(ctx, "behind")
		return nil
	}
	cluster(t, 1, fn, nil, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "mill")
		send(7)
		c.Wait(func() bool { return strings.Contains(own.String(), "n=7") })
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{
		`msg=before worker=mill stream=items processor=p partition=0\n`,
		`msg=record n=7 id=(\d+-\d+) worker=mill stream=items processor=p partition=0 event=0/(\d+-\d+)\n`,
		`msg="no context"\n`,
		`msg=behind worker=mill stream=items processor=p partition=0\n`,
	} {
		m := regexp.MustCompile(want).FindStringSubmatch(own.String())
		if m == nil || len(m) == 3 && m[1] != m[2] {
			t.Errorf("no line %s in\n%s", want, own.String())
		}
	}
}

func TestLogHandlerOfABatchNamesItsFirstEvent(t *testing.T) {
	var own redistest.Log
	log := slog.New(runnel.LogHandler(slog.NewTextHandler(&own, nil))).With("a", 1)
	s := declareItems(runnel.EachBatch(3, 0, func(ctx context.Context, _ []*runnel.Event, _ []item) error {
		log.InfoContext(ctx, "batch")
		return nil
	}), nil)
	runneltest.Events(t, s, "p").Partition(4).Records(items(1, 2, 3, 4)...).Run()
	text := own.String()
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, "msg=batch a=1 ") || !strings.Contains(text, "partition=4 event=4/1-0\n") || !strings.Contains(text, "partition=4 event=4/4-0\n") {
		t.Errorf("logged\n%s", text)
	}
	h := runnel.LogHandler(slog.NewTextHandler(&own, nil))
	if runnel.LogHandler(h) != h {
		t.Error("a LogHandler is wrapped again")
	}
}

// What the framework itself says loudly, with the keys that operators filter by.
func TestTroubleIsLoggedWithItsPlace(t *testing.T) {
	for _, tt := range []struct {
		policy runnel.Policy
		want   string
	}{
		{runnel.Quarantine, `level=ERROR msg="partition quarantined" app=contract .*stream=items processor=p .*partition=0 .*err="event \d+/\d+-\d+: bad"`},
		{runnel.Ignore, `level=WARN msg="error ignored" app=contract .*stream=items processor=p .*partition=0 .*events=1 err="event \d+/\d+-\d+: bad"`},
		{runnel.Halt, `level=ERROR msg="worker halts" app=contract .*err="stream items partition 0 processor p: event \d+/\d+-\d+: bad"`},
	} {
		t.Run(tt.policy.String(), func(t *testing.T) {
			var log redistest.Log
			logged(t, &log, failAt, &runnel.ProcessorOptions{OnError: tt.policy}, func(c *runneltest.Cluster, w *runneltest.Worker, send func(...int)) {
				send(2)
				c.Wait(func() bool { return regexp.MustCompile(tt.want).MatchString(log.String()) })
				if tt.policy == runnel.Halt {
					<-w.Done()
					wantErr(t, w.Err(), errBad)
				}
			})
		})
	}
}

func TestAStuckFunctionIsReportedOnRelease(t *testing.T) {
	var n notes
	var log redistest.Log
	opts := &runnel.ProcessorOptions{Grace: time.Second}
	logged(t, &log, busy(&n, time.Minute, false), opts, func(c *runneltest.Cluster, w *runneltest.Worker, send func(...int)) {
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		// Out of the membership, it has to give the partition back.
		if err := c.Redis().Del(c.Context(), "__memb:contract.items.p").Err(); err != nil {
			t.Fatal(err)
		}
		c.Wait(func() bool { return strings.Contains(log.String(), "function is stuck") })
		if !regexp.MustCompile(`level=ERROR msg="function is stuck" app=contract .*stream=items processor=p .*partition=0`).MatchString(log.String()) {
			t.Errorf("the log lacks its place:\n%s", log.String())
		}
		c.Wait(func() bool { return n.has("a ends") })
	})
}

// logged simulates a worker "a", ready, of one partition, whose log is kept.
func logged(t *testing.T, log *redistest.Log, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions,
	run func(c *runneltest.Cluster, w *runneltest.Worker, send func(...int))) {
	t.Helper()
	simulate(t, log.Logger().Handler(), &runnel.StreamOptions{Partitions: 1}, fn, opts, func(c *simulated) {
		run(c.Cluster, ready(c.Cluster, "a"), c.send)
	})
}

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
		{"retried again", "dead letter", fail(errBad), runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2}}},
		{"dead", "dead letter", fail(runnel.DeadLetter(errBad)), runnel.ProcessorOptions{}},
		{"dropped", "event dropped", fail(runnel.Drop(errBad)), runnel.ProcessorOptions{}},
		{"stuck", "function is stuck", slow, runnel.ProcessorOptions{Timeout: time.Second}},
		{"others failed", "error of no event of the batch", fail(runnel.FailedEvents(errBad, &runnel.Event{})), runnel.ProcessorOptions{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log redistest.Log
			tt.opts.Middleware = []runnel.Middleware{traced(-1)}
			handler := runnel.LogHandler(traceHandler{slog.NewTextHandler(&log, nil)})
			runWith(t, handler, tt.fn, &tt.opts, func(c *runneltest.Cluster, send func(...int)) {
				send(1)
				c.Wait(func() bool { return strings.Contains(log.String(), tt.line) })
			})
			m := regexp.MustCompile(`(?m)^.*msg="` + tt.line + `.*$`).FindString(log.String())
			if !regexp.MustCompile(` trace=\d+-\d+`).MatchString(m) || strings.Count(m, " processor=p") != 1 {
				t.Errorf("the line is %s", m)
			}
		})
	}
}

// Also those about an event that never reached the loop.
func TestLinesAboutAnUndecodableEventHaveItsContext(t *testing.T) {
	var log redistest.Log
	opts := &runnel.ProcessorOptions{OnError: runnel.Ignore, Middleware: []runnel.Middleware{traced(-1)}}
	runWith(t, traceHandler{slog.NewTextHandler(&log, nil)}, ignoreAll, opts, func(c *runneltest.Cluster, _ func(...int)) {
		bad := &redis.XAddArgs{Stream: "__strm:contract.items.0", Values: []any{"json", "no"}}
		if err := c.Redis().XAdd(c.Context(), bad).Err(); err != nil {
			t.Fatal(err)
		}
		c.Wait(func() bool { return strings.Contains(log.String(), "error ignored") })
	})
	if !regexp.MustCompile(`error ignored.* trace=\d+-\d+`).MatchString(log.String()) {
		t.Errorf("logged\n%s", log.String())
	}
}

// A line has nothing of an iteration before its own.
func TestLinesHaveNoContextOfAnotherEvent(t *testing.T) {
	var log redistest.Log
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
		c.Wait(func() bool { return strings.Count(log.String(), "error ignored") == 2 })
	})
	lines := regexp.MustCompile(`(?m)^.*error ignored.*$`).FindAllString(log.String(), -1)
	if !strings.Contains(lines[0], " trace=") || strings.Contains(lines[1], " trace=") {
		t.Errorf("logged\n%s", strings.Join(lines, "\n"))
	}
}

// runWith simulates a worker of one partition that logs with the handler. Items are
// sent with their number in a header, too.
func runWith(t *testing.T, handler slog.Handler, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions, run func(*runneltest.Cluster, func(...int))) {
	t.Helper()
	simulate(t, handler, &runnel.StreamOptions{Partitions: 1}, fn, opts, func(c *simulated) {
		ready(c.Cluster, "a")
		run(c.Cluster, func(numbers ...int) {
			for _, n := range numbers {
				_, err := c.stream.SendEvents(c.Context(), runnel.Outgoing[item]{Record: item{n}, Headers: map[string]string{"n": fmt.Sprint(n)}})
				c.must(err)
			}
		})
	})
}
