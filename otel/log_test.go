package runnelotel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/middleware"
	runnelotel "github.com/runnel-go/runnel/otel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestLogHandlerAddsTheTrace(t *testing.T) {
	s := record(t)
	ctx, span := s.begin("span")
	defer span.End()
	ids := fmt.Sprintf("trace_id=%s span_id=%s", span.SpanContext().TraceID(), span.SpanContext().SpanID())
	for _, tt := range []struct {
		name string
		ctx  context.Context
		with func(*slog.Logger) *slog.Logger
		want string
	}{
		{"plain", ctx, func(l *slog.Logger) *slog.Logger { return l }, "msg=hello n=1 " + ids},
		{"attributes", ctx, func(l *slog.Logger) *slog.Logger { return l.With("a", 1) }, "msg=hello a=1 n=1 " + ids},
		{"groups", ctx, func(l *slog.Logger) *slog.Logger {
			return l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("").WithGroup("h").With("c", 3)
		}, "msg=hello a=1 " + ids + " g.b=2 g.h.c=3 g.h.n=1"},
		{"no span", t.Context(), func(l *slog.Logger) *slog.Logger { return l.WithGroup("g") }, "msg=hello g.n=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			l := tt.with(slog.New(runnelotel.LogHandler(slog.NewTextHandler(&out, nil))))
			l.InfoContext(tt.ctx, "hello", "n", 1)
			if got := strings.TrimSpace(out.String()); !strings.HasSuffix(got, "level=INFO "+tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	// Two loggers of one parent do not affect each other.
	var out bytes.Buffer
	parent := slog.New(runnelotel.LogHandler(slog.NewTextHandler(&out, nil))).WithGroup("g").With("a", 1).With("d", 4)
	one, two := parent.With("b", 2), parent.With("c", 3)
	one.InfoContext(ctx, "one")
	two.InfoContext(ctx, "two")
	if strings.Count(out.String(), "g.b=2") != 1 || strings.Count(out.String(), "g.c=3") != 1 {
		t.Errorf("logged\n%s", out.String())
	}
	h := runnelotel.LogHandler(slog.NewTextHandler(&out, nil))
	twice := slog.New(runnelotel.LogHandler(h))
	out.Reset()
	twice.InfoContext(ctx, "hello")
	if strings.Count(out.String(), "trace_id") != 1 {
		t.Errorf("logged %s", out.String())
	}
}

// The lines of function, middleware and Runnel about an event carry its trace once.
func TestLinesOfOneTrace(t *testing.T) {
	s := record(t)
	var out bytes.Buffer
	logger := slog.New(runnel.LogHandler(runnelotel.LogHandler(slog.NewJSONHandler(&out, nil))))
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		o.Logger = logger
		app := runnel.New("shop", runnelotel.Instrument(o, s.options()))
		orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1})
		orders.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, _ order) error {
			logger.InfoContext(ctx, "printing")
			return &paper{}
		}), &runnel.ProcessorOptions{
			Middleware: []runnel.Middleware{middleware.Log(logger)},
			Retry:      &runnel.Retry{Max: 2, MinBackoff: time.Second},
		})
		return app
	}, func(c *runneltest.Cluster) {
		w := c.Start("a")
		c.Wait(func() bool { return w.App().Ready() == nil })
		app := runnel.New("shop", runnelotel.Instrument(c.Options("sender"), s.options()))
		defer app.Close()
		orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1})
		if err := orders.Send(c.Context(), order{"ada", 1}); err != nil {
			t.Error(err)
		}
		c.Wait(func() bool { return len(s.all("process orders")) == 2 })
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	trace := s.one("send orders").SpanContext().TraceID().String()
	found := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var got struct {
			Msg, Trace, Span string
			TraceID          string `json:"trace_id"`
			Processor        string
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.TraceID == "" {
			continue
		}
		found[got.Msg]++
		if got.TraceID != trace || got.Processor != "p" || strings.Count(line, `"processor":`) != 1 || strings.Count(line, `"span_id":`) != 1 {
			t.Errorf("logged %s, want the trace %s", line, trace)
		}
	}
	want := map[string]int{"printing": 2, "not processed": 2, "attempt failed": 1, "dead letter": 1}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("lines with a trace: %v, want %v\n%s", found, want, out.String())
	}
}
