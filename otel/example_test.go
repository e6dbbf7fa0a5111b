package runnelotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
	runnelotel "github.com/runnel-go/runnel/otel"
	"github.com/runnel-go/runnel/runneltest"
)

// printer is an exporter that prints the spans of a trace when they end.
type printer struct{ names map[trace.SpanID]string }

func (p printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		p.names[s.SpanContext().SpanID()] = s.Name()
		of := s.Parent().SpanID()
		if name, ended := p.names[of]; ended {
			fmt.Printf("%s: %s, after %s\n", s.SpanKind(), s.Name(), name)
		} else if of.IsValid() {
			fmt.Printf("%s: %s, within a span\n", s.SpanKind(), s.Name())
		} else {
			fmt.Printf("%s: %s\n", s.SpanKind(), s.Name())
		}
	}
	return nil
}

func (printer) Shutdown(context.Context) error { return nil }

// example stands in for a *testing.T.
type example struct{ testing.TB }

func (example) Helper()                  {}
func (example) Context() context.Context { return context.Background() }

func ExampleInstrument() {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(printer{map[trace.SpanID]string{}})) // a program uses WithBatcher and an exporter
	app := runnel.New("shop", runnelotel.Instrument(&runnel.Options{}, &runnelotel.Options{
		TracerProvider: provider,
		Propagator:     propagation.TraceContext{},
	}))
	orders := runnel.NewStream(app, "orders", customer, nil)
	bills := runnel.NewStream(app, "bills", customer, nil)
	orders.Process("bill", func(_ context.Context, events *runnel.Events[order]) error {
		for o := range events.Records() {
			if err := bills.Send(events.Context(), o); err != nil { // not the ctx of the function
				return err
			}
		}
		return nil
	}, nil)

	runneltest.Process(example{}, orders, "bill", order{"ada", 5})
	// Output:
	// producer: send orders
	// producer: send bills, within a span
	// consumer: process orders, after send orders
}

func ExampleLogHandler() {
	plain := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	logger := slog.New(runnelotel.LogHandler(plain)) // for runnel.Options.Logger, too

	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	})
	logger.InfoContext(ctx, "printing")
	// Output:
	// level=INFO msg=printing trace_id=0af7651916cd43dd8448eb211c80319c span_id=b7ad6b7169203331
}
