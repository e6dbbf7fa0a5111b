package runnelotel

import (
	"context"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
)

// process is a runnel.Middleware.
func (t *tracing) process(next runnel.Handler) runnel.Handler {
	var last atomic.Pointer[place] // a Handler serves one ownership of a partition
	return func(ctx context.Context, b *runnel.Batch) error {
		before := attempts(b)
		at := last.Load()
		if at == nil || at.placeKey != keyOf(b) {
			at = t.placeOf(b)
			last.Store(at)
		}
		inner, span := t.begin(ctx, at, b, before)
		returned := false
		defer func() {
			if !returned { // a middleware panicked; the panic goes on
				panicked(span, "")
			}
			span.End()
		}()
		err := next(inner, b)
		returned = true
		if span.IsRecording() {
			if n := attempts(b); n > before+1 { // a middleware has called the function again
				span.SetAttributes(attemptKey.Int(n))
			}
			if err != nil {
				t.failed(ctx, span, b, err)
			}
		}
		return err
	}
}

type place struct {
	placeKey
	name string
	with []trace.SpanStartOption
}

type placeKey struct {
	stream, processor string
	partition         int
	epoch             int64
}

func keyOf(b *runnel.Batch) placeKey { return placeKey{b.Stream, b.Processor, b.Partition, b.Epoch} }

func (t *tracing) placeOf(b *runnel.Batch) *place {
	attrs := append(t.attributes[:len(t.attributes):len(t.attributes)],
		semconv.MessagingDestinationName(b.Stream), partitionID(b.Partition), semconv.MessagingConsumerGroupName(b.Processor),
		semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess, epochKey.Int64(b.Epoch))
	return &place{keyOf(b), "process " + b.Stream, []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...)}}
}

// begin begins the span of an iteration, after the attempts before.
func (t *tracing) begin(ctx context.Context, at *place, b *runnel.Batch, before int) (context.Context, trace.Span) {
	attrs := make([]attribute.KeyValue, 0, 3)
	attrs = append(attrs, attemptKey.Int(before+1))
	if redelivered(b) {
		attrs = append(attrs, redeliveredKey.Bool(true))
	}
	with := append(make([]trace.SpanStartOption, 0, len(at.with)+2), at.with...)
	var linked []trace.Link
	if len(b.Events) == 1 {
		attrs = append(attrs, semconv.MessagingMessageID(b.Events[0].ID))
		ctx, linked = t.continued(ctx, b.Events[0])
	} else {
		attrs = append(attrs, semconv.MessagingBatchMessageCount(len(b.Events)))
		linked = t.sendersOf(b)
	}
	with = append(with, trace.WithAttributes(attrs...))
	if linked != nil {
		with = append(with, trace.WithLinks(linked...))
	}
	return t.tracer.Start(ctx, at.name, with...)
}

// sendersOf returns links to the spans that sent the events.
func (t *tracing) sendersOf(b *runnel.Batch) []trace.Link {
	var from links
	for _, e := range b.Events {
		from.addOf(trace.SpanContextFromContext(t.propagator.Extract(context.Background(), header{e})), e.ID)
	}
	from.label()
	return from.list
}

// continued returns ctx with what the event carries: its baggage, and the context of the parent
// span. A span around the iteration, such as of another middleware, is linked if it cannot be the
// parent.
func (t *tracing) continued(ctx context.Context, e *runnel.Event) (context.Context, []trace.Link) {
	around := trace.SpanFromContext(ctx)
	within := around.SpanContext().IsValid()
	if within { // or Extract could leave it as the sender's
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	with := t.propagator.Extract(ctx, header{e})
	sent := trace.SpanContextFromContext(with)
	switch {
	case !sent.IsValid() && !within:
		return with, nil
	case !sent.IsValid():
		return trace.ContextWithSpan(with, around), nil
	case t.linksOnly:
		return trace.ContextWithSpan(with, around), []trace.Link{{SpanContext: sent}}
	case within:
		return with, []trace.Link{{SpanContext: sent}, {SpanContext: around.SpanContext()}}
	}
	return with, []trace.Link{{SpanContext: sent}}
}

func (t *tracing) failed(ctx context.Context, span trace.Span, b *runnel.Batch, err error) {
	if len(b.Events) > 1 {
		span.SetAttributes(failedKey.Int(len(b.Failed(err))))
	}
	fail(ctx, span, err)
}

func redelivered(b *runnel.Batch) bool {
	return slices.ContainsFunc(b.Events, func(e *runnel.Event) bool { return e.Redelivered })
}
