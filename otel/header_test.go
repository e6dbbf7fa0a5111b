package runnelotel_test

import (
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
	runnelotel "github.com/runnel-go/runnel/otel"
	"github.com/runnel-go/runnel/runneltest"
)

const foreign = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func contextOf(t *testing.T, traceparent string) trace.SpanContext {
	t.Helper()
	carrier := propagation.MapCarrier{"traceparent": traceparent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// forwarded runs a processor that sends each event on, with these headers, and returns the headers
// that were sent.
func (s *spans) forwarded(opts *runnelotel.Options, headers ...map[string]string) (out []map[string]string) {
	s.t.Helper()
	app := runnel.New("shop", runnelotel.Instrument(nil, opts))
	orders := runnel.NewStream(app, "orders", customer, nil)
	copies := runnel.NewStream(app, "copies", customer, nil)
	orders.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		var records []runnel.Outgoing[order]
		for _, h := range headers {
			records = append(records, runnel.Outgoing[order]{Record: o, Headers: h})
		}
		_, err := copies.SendEvents(ctx, records...)
		return err
	}), nil)
	got := runneltest.Process(s.t, orders, "p", order{"ada", 1})
	for _, one := range runneltest.SentEvents(s.t, got, copies) {
		out = append(out, one.Headers)
	}
	return out
}

// A caller's own trace headers stay, and are linked.
func TestOwnTraceHeadersStay(t *testing.T) {
	s := record(t)
	got := s.forwarded(s.options(), map[string]string{"traceparent": foreign, "mine": "1"}, map[string]string{"mine": "2"}, nil)
	span := s.one("send copies")
	injected := fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID())
	want := []map[string]string{{"traceparent": foreign, "mine": "1"}, {"traceparent": injected, "mine": "2"}, {"traceparent": injected}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("headers %v, want %v", got, want)
	}
	wantLinks(t, span, contextOf(t, foreign))
	if span.SpanKind() != trace.SpanKindProducer {
		t.Errorf("the kind is %v", span.SpanKind())
	}

	s = record(t)
	s.forwarded(s.options(), map[string]string{"traceparent": foreign}, map[string]string{"traceparent": foreign})
	span = s.one("send copies")
	wantLinks(t, span, contextOf(t, foreign))
	if span.SpanKind() != trace.SpanKindClient { // no event carries its context
		t.Errorf("the kind is %v", span.SpanKind())
	}
}

// stateful puts a trace state beside each context.
type stateful struct{ propagation.TextMapPropagator }

func (s stateful) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	s.TextMapPropagator.Inject(ctx, carrier)
	carrier.Set("tracestate", "a=b")
}

// Headers of two traces are not mixed.
func TestOwnTraceHeadersGetNothingOfAnotherTrace(t *testing.T) {
	s := record(t)
	opts := s.options()
	opts.Propagator = stateful{w3c}
	got := s.forwarded(opts, map[string]string{"traceparent": foreign}, nil)
	if len(got[0]) != 1 || got[1]["tracestate"] != "a=b" {
		t.Errorf("headers %v", got)
	}
}

func TestAMalformedHeaderOfTheCallerStays(t *testing.T) {
	s := record(t)
	got := s.forwarded(s.options(), map[string]string{"traceparent": "no"})
	if fmt.Sprint(got) != fmt.Sprint([]map[string]string{{"traceparent": "no"}}) {
		t.Errorf("headers %v", got)
	}
	wantLinks(t, s.one("send copies"))
}

func TestWhatEventsMayCarry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fields map[string]string
		parent trace.SpanContext
	}{
		{"nothing", nil, trace.SpanContext{}},
		{"no trace", map[string]string{"__h.traceparent": "no", "__h.tracestate": "a=b"}, trace.SpanContext{}},
		{"an empty one", map[string]string{"__h.traceparent": ""}, trace.SpanContext{}},
		{"zeros", map[string]string{"__h.traceparent": "00-00000000000000000000000000000000-0000000000000000-01"}, trace.SpanContext{}},
		{"a foreign trace", map[string]string{"__h.traceparent": foreign, "__h.tracestate": "a=b"}, contextOf(t, foreign)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := record(t)
			fields := map[string]string{"json": `{"customer":"ada"}`}
			for name, value := range tt.fields {
				fields[name] = value
			}
			got := runneltest.Events(t, s.declared(nothing, nil), "p").Raw(fields).Run()
			if len(got.Acked) != 1 {
				t.Fatalf("%+v", got)
			}
			span := s.one("process orders")
			wantStatus(t, span, "", "")
			if !tt.parent.IsValid() {
				wantRoot(t, span)
				wantLinks(t, span)
				return
			}
			wantLinks(t, span, tt.parent)
			if span.Parent().SpanID() != tt.parent.SpanID() || span.SpanContext().TraceID() != tt.parent.TraceID() || span.SpanContext().TraceState().Get("a") != "b" {
				t.Errorf("the parent is %v, the state %v", span.Parent(), span.SpanContext().TraceState())
			}
		})
	}
}

// The sampling decision travels as well.
func TestUnsampledTraces(t *testing.T) {
	s := record(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	app := runnel.New("shop", runnelotel.Instrument(nil, s.options()))
	orders := runnel.NewStream(app, "orders", customer, nil)
	var inside trace.SpanContext
	var header string
	orders.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, _ order) error {
		inside, header = trace.SpanContextFromContext(ctx), e.Header("traceparent")
		return &paper{}
	}), &runnel.ProcessorOptions{OnError: runnel.Ignore})
	runneltest.Process(t, orders, "p", order{"ada", 1})
	sent := contextOf(t, header)
	if !sent.IsValid() || sent.IsSampled() || inside.IsSampled() || inside.TraceID() != sent.TraceID() || inside.SpanID() == sent.SpanID() {
		t.Errorf("sent under %v, processed under %v", sent, inside)
	}
	if len(s.recorder.Started()) != 0 {
		t.Errorf("recorded%s", s)
	}
}
