package runnelotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	runnelotel "github.com/runnel-go/runnel/otel"
)

type order struct {
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
}

func customer(o order) string { return o.Customer }

// spans records the ended spans of a test.
type spans struct {
	t        *testing.T
	recorder *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
}

func record(t *testing.T, opts ...sdktrace.TracerProviderOption) *spans {
	s := &spans{t: t, recorder: tracetest.NewSpanRecorder()}
	s.provider = sdktrace.NewTracerProvider(append(opts, sdktrace.WithSpanProcessor(s.recorder))...)
	return s
}

var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

func (s *spans) options() *runnelotel.Options {
	return &runnelotel.Options{TracerProvider: s.provider, Propagator: w3c}
}

func (s *spans) begin(name string) (context.Context, trace.Span) {
	return s.provider.Tracer("test").Start(s.t.Context(), name)
}

// all returns the spans of this name, in the order in which they began.
func (s *spans) all(name string) (out []sdktrace.ReadOnlySpan) {
	ended := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, one := range s.recorder.Ended() {
		ended[one.SpanContext().SpanID()] = one
	}
	for _, one := range s.recorder.Started() {
		if e, ok := ended[one.SpanContext().SpanID()]; ok && e.Name() == name {
			out = append(out, e)
		}
	}
	return out
}

// want returns the spans of this name, which must be n.
func (s *spans) want(name string, n int) []sdktrace.ReadOnlySpan {
	s.t.Helper()
	out := s.all(name)
	if len(out) != n {
		s.t.Fatalf("%d spans %q, want %d; all: %s", len(out), name, n, s)
	}
	return out
}

func (s *spans) one(name string) sdktrace.ReadOnlySpan { s.t.Helper(); return s.want(name, 1)[0] }

func (s *spans) String() (out string) {
	for _, one := range s.recorder.Ended() {
		out += fmt.Sprintf("\n%s %s %v %v", one.SpanKind(), one.Name(), one.Attributes(), one.Status())
	}
	return out
}

func attributes(list []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// wantAttributes compares some attributes; "" expects none.
func wantAttributes(t *testing.T, s sdktrace.ReadOnlySpan, want map[string]string) {
	t.Helper()
	got := attributes(s.Attributes())
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %s is %q, want %q", s.Name(), key, got[key], value)
		}
	}
}

func wantChild(t *testing.T, child, parent sdktrace.ReadOnlySpan) {
	t.Helper()
	if child.Parent().SpanID() != parent.SpanContext().SpanID() || child.SpanContext().TraceID() != parent.SpanContext().TraceID() {
		t.Errorf("%s is no child of %s", child.Name(), parent.Name())
	}
}

func wantRoot(t *testing.T, s sdktrace.ReadOnlySpan) {
	t.Helper()
	if s.Parent().IsValid() {
		t.Errorf("%s has the parent %v", s.Name(), s.Parent().SpanID())
	}
}

func wantLinks(t *testing.T, s sdktrace.ReadOnlySpan, want ...trace.SpanContext) {
	t.Helper()
	var got, wanted []string
	for _, l := range s.Links() {
		got = append(got, l.SpanContext.TraceID().String()+l.SpanContext.SpanID().String())
	}
	for _, sc := range want {
		wanted = append(wanted, sc.TraceID().String()+sc.SpanID().String())
	}
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("%s has links to %v, want %v", s.Name(), got, wanted)
	}
}

func wantStatus(t *testing.T, s sdktrace.ReadOnlySpan, text, errorType string) {
	t.Helper()
	want := sdktrace.Status{Code: codes.Error, Description: text}
	if errorType == "" {
		want = sdktrace.Status{}
	}
	if s.Status() != want {
		t.Errorf("%s has the status %+v, want %+v", s.Name(), s.Status(), want)
	}
	wantAttributes(t, s, map[string]string{"error.type": errorType})
}

func quiet(srv *redistest.Server) *runnel.Options {
	return &runnel.Options{RedisURL: srv.URL(), Logger: slog.New(slog.DiscardHandler)}
}

// work runs a worker of the app until the test ends.
func work(t *testing.T, app *runnel.App) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		app.Close()
	})
}
