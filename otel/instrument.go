package runnelotel

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
)

// Options configure the traces. A zero field is the default.
type Options struct {
	// TracerProvider makes the spans. Default: otel.GetTracerProvider, which may be set later.
	TracerProvider trace.TracerProvider
	// Propagator puts a context into headers and reads it there. Default:
	// otel.GetTextMapPropagator, which may be set later, and does nothing until then;
	// propagation.TraceContext is for the headers of the W3C.
	Propagator propagation.TextMapPropagator
	// LinksOnly makes each iteration begin a trace of its own, with a link to the span that sent
	// its event: for events that wait for days, or whose traces would become too large.
	LinksOnly bool
	// Attributes are put on every span, such as semconv.ServerAddress of Redis.
	Attributes []attribute.KeyValue
}

// Instrument returns a copy of o, which may be nil, under which every call that sends and every
// iteration of every processor is a span: SendHook is the last of its SendHooks, Middleware the
// first of its Processor.Middleware. A nil opts is all defaults.
func Instrument(o *runnel.Options, opts *Options) *runnel.Options {
	out := *cmp.Or(o, &runnel.Options{})
	t := newTracing(opts)
	out.SendHooks = append(slices.Clip(out.SendHooks), t.send)
	out.Processor.Middleware = append([]runnel.Middleware{t.process}, out.Processor.Middleware...)
	return &out
}

// Middleware returns a middleware that makes a span of each iteration, for single processors;
// Instrument is for all. It should be the first: the span covers the middleware inside it. A nil
// opts is all defaults.
func Middleware(opts *Options) runnel.Middleware { return newTracing(opts).process }

// SendHook returns a hook that makes a span of each call that sends, and puts its context into the
// headers of the records. A record that already has a context which the propagator can read keeps
// it, and the span links to it. A nil opts is all defaults.
func SendHook(opts *Options) runnel.SendHook { return newTracing(opts).send }

// scope is the name of the instrumentation.
const scope = "github.com/runnel-go/runnel/otel"

var system = semconv.MessagingSystemKey.String("runnel")

// tracing makes the spans. It is safe for concurrent use.
type tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	linksOnly  bool
	attributes []attribute.KeyValue
}

func newTracing(opts *Options) *tracing {
	o := cmp.Or(opts, &Options{})
	tracers := cmp.Or(o.TracerProvider, otel.GetTracerProvider())
	return &tracing{
		tracer:     tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: cmp.Or(o.Propagator, otel.GetTextMapPropagator()),
		linksOnly:  o.LinksOnly,
		attributes: append(slices.Clone(o.Attributes), system),
	}
}
