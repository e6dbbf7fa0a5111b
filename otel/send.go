package runnelotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
)

// send is a runnel.SendHook.
func (t *tracing) send(ctx context.Context, s *runnel.Sending) func([]runnel.Sent, error) {
	own, given := t.ownContexts(s)
	kind := trace.SpanKindProducer
	if len(own) == s.Records { // no event carries the context of this span
		kind = trace.SpanKindClient
	}
	attrs := append(t.attributes[:len(t.attributes):len(t.attributes)],
		semconv.MessagingDestinationName(s.Stream), semconv.MessagingOperationName("send"), semconv.MessagingOperationTypeSend)
	if s.Records > 1 {
		attrs = append(attrs, semconv.MessagingBatchMessageCount(s.Records))
	}
	ctx, span := t.tracer.Start(ctx, "send "+s.Stream,
		trace.WithSpanKind(kind), trace.WithAttributes(attrs...), trace.WithLinks(given.list...))
	headers := propagation.MapCarrier{}
	t.propagator.Inject(ctx, headers)
	for i := range s.Records {
		if !own[i] && len(headers) > 0 {
			s.AddHeaders(i, headers)
		}
	}
	records := s.Records
	return func(sent []runnel.Sent, err error) {
		defer span.End()
		if !span.IsRecording() {
			return
		}
		span.SetAttributes(outcome(records, sent, err)...)
		if err != nil {
			fail(ctx, span, err)
		}
	}
}

// ownContexts returns the records whose headers already have a context, such as those of an event
// that is passed on, and links to these contexts.
func (t *tracing) ownContexts(s *runnel.Sending) (own map[int]bool, given links) {
	for i := range s.Records {
		h := s.Headers(i)
		if len(h) == 0 {
			continue
		}
		from := trace.SpanContextFromContext(t.propagator.Extract(context.Background(), propagation.MapCarrier(h)))
		if !from.IsValid() {
			continue
		}
		if own == nil {
			own = map[int]bool{}
		}
		own[i] = true
		given.add(from)
	}
	return own, given
}

func outcome(records int, sent []runnel.Sent, err error) []attribute.KeyValue {
	var refused, unknown, duplicates int
	var se *runnel.SendError
	switch {
	case errors.As(err, &se):
		for _, f := range se.Failed {
			if f.Unknown {
				unknown++
			}
		}
		refused = len(se.Failed) - unknown
	case err != nil:
		refused = records
	}
	for _, one := range sent {
		if one.Duplicate {
			duplicates++
		}
	}
	out := []attribute.KeyValue{sentKey.Int(records - refused - unknown - duplicates)}
	for _, n := range []attribute.KeyValue{duplicatesKey.Int(duplicates), refusedKey.Int(refused), unknownKey.Int(unknown)} {
		if n.Value.AsInt64() > 0 {
			out = append(out, n)
		}
	}
	if records == 1 && len(sent) == 1 && err == nil {
		out = append(out, semconv.MessagingMessageID(sent[0].ID), partitionID(sent[0].Partition))
	}
	return out
}
