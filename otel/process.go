package runnelotel

import (
	"context"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
)

// process is a runnel.Middleware.
func (t *tracing) process(next runnel.Handler) runnel.Handler {
	return func(ctx context.Context, b *runnel.Batch) error {
		before := attempts(b)
		inner, span := t.begin(ctx, b, before)
		returned := false
		defer func() {
			if !returned { // the panic of a middleware goes on: here it is not recovered
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

// begin begins the span of an iteration. before is how many attempts there were.
func (t *tracing) begin(ctx context.Context, b *runnel.Batch, before int) (context.Context, trace.Span) {
	attrs := append(t.attributes[:len(t.attributes):len(t.attributes)],
		semconv.MessagingDestinationName(b.Stream), partitionID(b.Partition), semconv.MessagingConsumerGroupName(b.Processor),
		semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		epochKey.Int64(b.Epoch), attemptKey.Int(before+1))
	if redelivered(b) {
		attrs = append(attrs, redeliveredKey.Bool(true))
	}
	var from links
	if len(b.Events) == 1 {
		attrs = append(attrs, semconv.MessagingMessageID(b.Events[0].ID))
		ctx = t.continued(ctx, b.Events[0], &from)
	} else {
		attrs = append(attrs, semconv.MessagingBatchMessageCount(len(b.Events)))
		for _, e := range b.Events {
			from.addOf(trace.SpanContextFromContext(t.propagator.Extract(context.Background(), header{e})), e.ID)
		}
		from.tell()
	}
	return t.tracer.Start(ctx, "process "+b.Stream,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...), trace.WithLinks(from.list...))
}

// continued is ctx with what travelled with the event: its baggage, and the context
// of the span that is to be the parent. Where there is a span around the iteration,
// such as that of another middleware, it is linked if it cannot be the parent.
func (t *tracing) continued(ctx context.Context, e *runnel.Event, from *links) context.Context {
	around := trace.SpanFromContext(ctx)
	with := t.propagator.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), header{e})
	sent := trace.SpanContextFromContext(with)
	from.add(sent)
	if !sent.IsValid() || t.linksOnly {
		return trace.ContextWithSpan(with, around)
	}
	from.add(around.SpanContext())
	return with
}

func (t *tracing) failed(ctx context.Context, span trace.Span, b *runnel.Batch, err error) {
	if len(b.Events) > 1 {
		span.SetAttributes(failedKey.Int(len(runnel.Failed(b, err))))
	}
	fail(ctx, span, err)
}

func redelivered(b *runnel.Batch) bool {
	for _, e := range b.Events {
		if e.Redelivered {
			return true
		}
	}
	return false
}
