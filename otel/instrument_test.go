package runnelotel_test

import (
	"context"
	"strconv"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/runnel-go/runnel"
	runnelotel "github.com/runnel-go/runnel/otel"
	"github.com/runnel-go/runnel/runneltest"
)

// around is a middleware with a span of its own.
func (s *spans) around(name string) runnel.Middleware {
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			ctx, span := s.provider.Tracer("test").Start(ctx, name)
			defer span.End()
			return next(ctx, b)
		}
	}
}

func TestInstrumentLeavesItsArgumentAndComesFirst(t *testing.T) {
	s := record(t)
	var hooked int
	o := &runnel.Options{
		WorkerName: "mill",
		SendHooks:  make([]runnel.SendHook, 0, 4),
		Processor:  runnel.ProcessorOptions{Middleware: []runnel.Middleware{s.around("inherited")}},
	}
	o.SendHooks = append(o.SendHooks, func(context.Context, *runnel.Sending) func([]runnel.Sent, error) { hooked++; return nil })
	got := runnelotel.Instrument(o, s.options())
	if len(o.SendHooks) != 1 || o.SendHooks[:2][1] != nil || len(o.Processor.Middleware) != 1 || got.WorkerName != "mill" {
		t.Errorf("from %+v to %+v", o, got)
	}
	app := runnel.New("shop", got)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("p", nothing, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{s.around("own")}})
	runneltest.Process(t, orders, "p", order{"ada", 1})
	chain := []string{"send orders", "process orders", "inherited", "own"}
	for i, name := range chain[1:] {
		wantChild(t, s.one(name), s.one(chain[i]))
	}
	if hooked != 1 {
		t.Errorf("the other hook was called %d times", hooked)
	}
}

// A span around the iteration is linked if the sender's is the parent, and is the parent without a
// sender's.
func TestSpansAroundAnIteration(t *testing.T) {
	for _, tt := range []struct {
		name      string
		linksOnly bool
		fn        runnel.ProcessFunc[order]
		records   []order
		child     string
		links     []string
	}{
		{"an event", false, nothing, []order{{"a", 1}}, "send orders", []string{"send orders", "outer"}},
		{"an event, links only", true, nothing, []order{{"a", 1}}, "outer", []string{"send orders"}},
		{"a batch", false, runnel.EachBatch(2, 0, func(context.Context, []*runnel.Event, []order) error { return nil }),
			[]order{{"a", 1}, {"b", 1}}, "outer", []string{"send orders", "send orders"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := record(t)
			opts := s.options()
			opts.LinksOnly = tt.linksOnly
			app := runnel.New("shop", &runnel.Options{SendHooks: []runnel.SendHook{runnelotel.SendHook(opts)}})
			orders := runnel.NewStream(app, "orders", customer, nil)
			orders.Process("p", tt.fn, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{s.around("outer"), runnelotel.Middleware(opts)}})
			runneltest.Process(t, orders, "p", tt.records...)
			byName := map[string][]sdktrace.ReadOnlySpan{"send orders": s.all("send orders"), "outer": s.all("outer")}
			span := s.one("process orders")
			wantChild(t, span, byName[tt.child][0])
			var links []trace.SpanContext
			for _, name := range tt.links {
				links = append(links, byName[name][0].SpanContext())
				byName[name] = byName[name][1:]
			}
			wantLinks(t, span, links...)
		})
	}
}

// A span around the iteration is not taken for the sender's.
func TestASpanAroundAnEventWithoutASender(t *testing.T) {
	s := record(t)
	orders := runnel.NewStream(runnel.New("shop", nil), "orders", customer, nil)
	orders.Process("p", nothing, &runnel.ProcessorOptions{Middleware: []runnel.Middleware{s.around("outer"), runnelotel.Middleware(s.options())}})
	runneltest.Process(t, orders, "p", order{"ada", 1})
	wantChild(t, s.one("process orders"), s.one("outer"))
	wantLinks(t, s.one("process orders"))
}

func TestLinksOnlyBeginsATraceOfItsOwn(t *testing.T) {
	s := record(t)
	opts := s.options()
	opts.LinksOnly = true
	app := runnel.New("shop", runnelotel.Instrument(nil, opts))
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("p", nothing, nil)
	runneltest.Process(t, orders, "p", order{"ada", 1})
	span := s.one("process orders")
	wantRoot(t, span)
	wantLinks(t, span, s.one("send orders").SpanContext())
	if span.SpanContext().TraceID() == s.one("send orders").SpanContext().TraceID() {
		t.Error("the iteration is in the sender's trace")
	}
}

func TestAHandlerOfSeveralPartitions(t *testing.T) {
	s := record(t)
	handle := runnelotel.Middleware(s.options())(func(context.Context, *runnel.Batch) error { return nil })
	for partition := range 2 {
		for epoch := range int64(2) {
			b := &runnel.Batch{Processor: "p", Stream: "orders", Partition: partition, Epoch: epoch, Events: []*runnel.Event{{ID: "1-0"}}}
			if err := handle(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, span := range s.want("process orders", 4) {
		wantAttributes(t, span, map[string]string{"messaging.destination.partition.id": strconv.Itoa(i / 2), "runnel.epoch": strconv.Itoa(i % 2)})
	}
}

// A loop gets the span of each event by Context.
func TestTheContextOfALoop(t *testing.T) {
	s := record(t)
	var seen []trace.SpanContext
	orders := s.declared(func(ctx context.Context, events *runnel.Events[order]) error {
		for range events.Raw() {
			seen = append(seen, trace.SpanContextFromContext(events.Context()))
		}
		if trace.SpanContextFromContext(ctx).IsValid() {
			t.Error("the function's own context has a span")
		}
		return nil
	}, nil)
	runneltest.Process(t, orders, "p", order{"a", 1}, order{"b", 1}, order{"c", 1})
	for i, span := range s.want("process orders", 3) {
		if seen[i].SpanID() != span.SpanContext().SpanID() {
			t.Errorf("event %d ran under %v, want %v", i, seen[i].SpanID(), span.SpanContext().SpanID())
		}
	}
}

// Without traces nothing is added, and existing headers are passed on.
func TestWithoutAProvider(t *testing.T) {
	s := record(t)
	opts := &runnelotel.Options{TracerProvider: noop.NewTracerProvider(), Propagator: w3c}
	if got := s.forwarded(opts, nil); got[0] != nil {
		t.Errorf("headers %v", got)
	}
	app := runnel.New("shop", runnelotel.Instrument(nil, opts))
	orders := runnel.NewStream(app, "orders", customer, nil)
	copies := runnel.NewStream(app, "copies", customer, nil)
	orders.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error { return copies.Send(ctx, o) }), nil)
	got := runneltest.Events(t, orders, "p").Outgoing(runnel.Outgoing[order]{Headers: map[string]string{"traceparent": foreign}}).Run()
	if out := runneltest.SentEvents(t, got, copies); len(out) != 1 || out[0].Headers["traceparent"] != foreign {
		t.Errorf("sent %+v", out)
	}
}

var globally = record(nil)

// The globals may be set after Instrument was called.
func TestTheGlobalProviderAndPropagator(t *testing.T) {
	s := &spans{t, globally.recorder, globally.provider} // the globals delegate to the first provider that is set
	s.recorder.Reset()
	orders := runnel.NewStream(runnel.New("shop", runnelotel.Instrument(nil, nil)), "orders", customer, nil)
	var header string
	orders.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, _ order) error {
		header = e.Header("traceparent")
		return nil
	}), nil)
	otel.SetTracerProvider(s.provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	runneltest.Process(t, orders, "p", order{"ada", 1})
	if sent := s.one("send orders"); contextOf(t, header).SpanID() != sent.SpanContext().SpanID() {
		t.Errorf("the header is %q", header)
	}
	wantChild(t, s.one("process orders"), s.one("send orders"))
}
