package runnelotel_test

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/runnel-go/runnel"
	runnelotel "github.com/runnel-go/runnel/otel"
)

// BenchmarkMiddleware measures the span of an iteration, without its export:
//
//	go test -run - -bench . -benchmem ./...
func BenchmarkMiddleware(b *testing.B) {
	for _, bb := range []struct {
		name     string
		provider trace.TracerProvider
	}{
		{"off", noop.NewTracerProvider()},
		{"not sampled", sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))},
		{"sampled", sdktrace.NewTracerProvider()},
	} {
		b.Run(bb.name, func(b *testing.B) {
			next := func(context.Context, *runnel.Batch) error { return nil }
			handle := runnelotel.Middleware(&runnelotel.Options{TracerProvider: bb.provider, Propagator: w3c})(next)
			batch := &runnel.Batch{Processor: "p", Stream: "orders", Events: []*runnel.Event{{ID: "1-0"}}}
			for b.Loop() {
				if err := handle(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
