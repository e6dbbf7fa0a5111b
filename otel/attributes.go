package runnelotel

import (
	"maps"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
)

const (
	epochKey       = attribute.Key("runnel.epoch")
	attemptKey     = attribute.Key("runnel.attempt")
	redeliveredKey = attribute.Key("runnel.redelivered")
	failedKey      = attribute.Key("runnel.failed")
	sentKey        = attribute.Key("runnel.sent")
	duplicatesKey  = attribute.Key("runnel.duplicates")
	refusedKey     = attribute.Key("runnel.refused")
	unknownKey     = attribute.Key("runnel.unknown")
)

func partitionID(n int) attribute.KeyValue {
	return semconv.MessagingDestinationPartitionID(strconv.Itoa(n))
}

// attempts returns the largest attempt number of the batch's events.
func attempts(b *runnel.Batch) int {
	most := 0
	for _, e := range b.Events {
		most = max(most, e.Attempt)
	}
	return most
}

// header reads the headers of an event as a propagation.TextMapCarrier.
type header struct{ event *runnel.Event }

func (h header) Get(name string) string { return h.event.Header(name) }
func (h header) Keys() []string         { return slices.Sorted(maps.Keys(h.event.Headers())) }

// Set does nothing: an event does not change.
func (header) Set(string, string) {}

// links are links to distinct contexts.
type links struct {
	list   []trace.Link
	at     map[spanKey]int // in list
	events []int           // number of events per link
	ids    []string        // of the first event per link
}

type spanKey struct {
	trace trace.TraceID
	span  trace.SpanID
}

// add adds a link to a context, unless the context is invalid or linked already.
func (l *links) add(sc trace.SpanContext) { l.addOf(sc, "") }

func (l *links) addOf(sc trace.SpanContext, id string) {
	if !sc.IsValid() {
		return
	}
	key := spanKey{sc.TraceID(), sc.SpanID()}
	if i, ok := l.at[key]; ok {
		l.events[i]++
		return
	}
	if l.at == nil {
		l.at = map[spanKey]int{}
	}
	l.at[key] = len(l.list)
	l.list, l.events, l.ids = append(l.list, trace.Link{SpanContext: sc}), append(l.events, 1), append(l.ids, id)
}

// label sets on each link the ID of its event, or the number of its events.
func (l *links) label() {
	for i, n := range l.events {
		about := semconv.MessagingMessageID(l.ids[i])
		if n > 1 {
			about = semconv.MessagingBatchMessageCount(n)
		}
		l.list[i].Attributes = []attribute.KeyValue{about}
	}
}
