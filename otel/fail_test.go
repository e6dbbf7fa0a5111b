package runnelotel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/middleware"
	runnelotel "github.com/runnel-go/runnel/otel"
	"github.com/runnel-go/runnel/runneltest"
)

type paper struct{}

func (*paper) Error() string { return "no paper" }

// declared returns a stream of orders with the processor "p", of an app with traces.
func (s *spans) declared(fn runnel.ProcessFunc[order], opts *runnel.ProcessorOptions) *runnel.Stream[order] {
	app := runnel.New("shop", runnelotel.Instrument(&runnel.Options{Logger: slog.New(slog.DiscardHandler)}, s.options()))
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("p", fn, opts)
	return orders
}

func TestErrorsOfIterations(t *testing.T) {
	for _, tt := range []struct {
		name              string
		err               error
		text, error, more string
	}{
		{"plain", errors.New("no ink"), "no ink", "*errors.errorString", ""},
		{"a type", &paper{}, "no paper", "*runnelotel_test.paper", ""},
		{"wrapped", fmt.Errorf("print: %w", runnel.FailedEvents(runnel.DeadLetter(&paper{}))), "print: no paper", "*runnelotel_test.paper", ""},
		{"canceled", fmt.Errorf("print: %w", context.Canceled), "print: context canceled", "canceled", ""},
		{"too late", context.DeadlineExceeded, "context deadline exceeded", "deadline_exceeded", ""},
		{"full", &runnel.SendError{Stream: "x", Failed: []runnel.SendFailure{{Err: runnel.ErrStreamFull}}}, "", "stream_full", ""},
		{"not sent", &runnel.SendError{Stream: "x", Failed: []runnel.SendFailure{{Err: io.EOF}}}, "", "*errors.errorString", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := record(t)
			orders := s.declared(runnel.Each(func(context.Context, *runnel.Event, order) error { return tt.err }), nil)
			runneltest.Process(t, orders, "p", order{"ada", 1})
			span := s.one("process orders")
			wantAttributes(t, span, map[string]string{"error.type": tt.error})
			if tt.text != "" {
				wantStatus(t, span, tt.text, tt.error)
			}
			if len(span.Events()) != 0 {
				t.Errorf("events %v", span.Events())
			}
		})
	}
}

func TestPanics(t *testing.T) {
	s := record(t)
	orders := s.declared(runnel.Each(func(context.Context, *runnel.Event, order) error { panic("no ink") }), nil)
	runneltest.Process(t, orders, "p", order{"ada", 1})
	span := s.one("process orders")
	wantStatus(t, span, "panic: no ink", "panic")
	if len(span.Events()) != 1 || span.Events()[0].Name != "exception" {
		t.Fatalf("events %v", span.Events())
	}
	got := attributes(span.Events()[0].Attributes)
	if got["exception.type"] != "string" || got["exception.message"] != "no ink" || !strings.Contains(got["exception.stacktrace"], "fail_test.go") {
		t.Errorf("the exception is %v", got)
	}

	inside := func(runnel.Handler) runnel.Handler {
		return func(context.Context, *runnel.Batch) error { panic("middleware") }
	}
	s = record(t)
	got2 := runneltest.Process(t, s.declared(nothing, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{inside}}), "p", order{"ada", 1})
	wantStatus(t, s.one("process orders"), "panic", "panic")
	var p *runnel.PanicError
	if !errors.As(got2.Err, &p) || p.Value != "middleware" || !strings.Contains(string(p.Stack), "fail_test.go") {
		t.Errorf("the processor ended with %v", got2.Err)
	}
}

var nothing = runnel.Each(func(context.Context, *runnel.Event, order) error { return nil })

var waiting = runnel.Each(func(ctx context.Context, _ *runnel.Event, _ order) error {
	<-ctx.Done()
	return ctx.Err()
})

// onceAndNeverAgain fails with its first event, and takes no event when called again.
func onceAndNeverAgain() runnel.ProcessFunc[order] {
	called := false
	return func(_ context.Context, events *runnel.Events[order]) error {
		if called {
			return nil
		}
		for range events.Records() {
			called = true
			return &paper{}
		}
		return nil
	}
}

func TestEndsOfIterations(t *testing.T) {
	one := order{"ada", 1}
	for _, tt := range []struct {
		name, error string
		fn          runnel.ProcessFunc[order]
		opts        runnel.ProcessorOptions
		script      func(*runneltest.Script[order]) *runneltest.Script[order]
	}{
		{"lost", "lost", waiting, runnel.ProcessorOptions{}, (*runneltest.Script[order]).Lose},
		{"released", "released", waiting, runnel.ProcessorOptions{Grace: time.Millisecond}, (*runneltest.Script[order]).Release},
		{"shut down", "shutdown", waiting, runnel.ProcessorOptions{Grace: time.Millisecond}, (*runneltest.Script[order]).Shutdown},
		{"timeout", "timeout", waiting, runnel.ProcessorOptions{Timeout: time.Millisecond}, nil},
		{"not consumed", "not_consumed", onceAndNeverAgain(), runnel.ProcessorOptions{Middleware: []runnel.Middleware{middleware.RetryInPlace(2, time.Millisecond)}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := record(t)
			script := runneltest.Events(t, s.declared(tt.fn, &tt.opts), "p").Records(one)
			if tt.script != nil {
				script = tt.script(script)
			}
			script.Run()
			wantAttributes(t, s.one("process orders"), map[string]string{"error.type": tt.error})
		})
	}
}

func TestUndecodableEventsAndPartsOfBatches(t *testing.T) {
	s := record(t)
	orders := s.declared(nothing, &runnel.ProcessorOptions{OnError: runnel.Ignore})
	runneltest.Events(t, orders, "p").Raw(map[string]string{"json": "no"}).Redelivered().Run()
	span := s.one("process orders")
	wantRoot(t, span)
	wantAttributes(t, span, map[string]string{"error.type": "decode", "runnel.attempt": "1", "runnel.redelivered": "true"})

	s = record(t)
	orders = s.declared(runnel.EachBatch(3, 0, func(_ context.Context, events []*runnel.Event, _ []order) error {
		return runnel.FailedEvents(&paper{}, events[1])
	}), &runnel.ProcessorOptions{OnError: runnel.Ignore})
	runneltest.Process(t, orders, "p", order{"a", 1}, order{"b", 1}, order{"c", 1})
	span = s.one("process orders")
	wantStatus(t, span, "no paper", "*runnelotel_test.paper")
	wantAttributes(t, span, map[string]string{"runnel.failed": "1", "messaging.batch.message_count": "3", "messaging.message.id": ""})
}

// The calls of middleware.RetryInPlace are one span, with their number.
func TestRetriesInsideAreOneSpan(t *testing.T) {
	s := record(t)
	orders := s.declared(runnel.Each(func(_ context.Context, e *runnel.Event, _ order) error {
		if e.Attempt < 3 {
			return &paper{}
		}
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{middleware.RetryInPlace(5, time.Millisecond)}})
	runneltest.Process(t, orders, "p", order{"ada", 1})
	wantAttributes(t, s.one("process orders"), map[string]string{"runnel.attempt": "3", "error.type": ""})
}

func TestErrorsOfSends(t *testing.T) {
	srv, s := redistest.Start(t), record(t)
	app := runnel.New("shop", runnelotel.Instrument(quiet(srv), s.options()))
	defer app.Close()
	orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1, MaxLen: 2})
	out := runnel.Outgoing[order]{Record: order{"ada", 1}, DedupID: "a"}
	if _, err := orders.SendEvents(t.Context(), out, out); err != nil {
		t.Fatal(err)
	}
	if err := orders.Send(t.Context(), order{"b", 1}, order{"b", 2}); !errors.Is(err, runnel.ErrStreamFull) {
		t.Fatal(err)
	}
	twice := runnel.Outgoing[order]{At: time.Now(), After: time.Second}
	_, mistake := orders.SendEvents(t.Context(), twice)
	all := s.want("send orders", 3)
	wantStatus(t, all[0], "", "")
	wantAttributes(t, all[0], map[string]string{"runnel.sent": "1", "runnel.duplicates": "1", "runnel.refused": ""})
	wantAttributes(t, all[1], map[string]string{"runnel.sent": "0", "runnel.refused": "2", "error.type": "stream_full"})
	wantStatus(t, all[2], mistake.Error(), "*errors.errorString")
	wantAttributes(t, all[2], map[string]string{"runnel.sent": "0", "runnel.refused": "1", "messaging.message.id": ""})

	srv.Kill()
	if err := orders.Send(t.Context(), order{"b", 3}); err == nil {
		t.Fatal("sent to a dead server")
	}
	last := s.want("send orders", 4)[3]
	got := attributes(last.Attributes())
	if got["error.type"] == "" || got["runnel.refused"] != "1" && got["runnel.unknown"] != "1" {
		t.Errorf("attributes %v", got)
	}
}
