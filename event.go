package runnel

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// An Event is one entry of a partition, still encoded. It may be kept after its
// iteration; it must not be changed.
type Event struct {
	Stream      string // name of the stream
	Partition   int    // number of the partition, from 0
	ID          string // Redis entry ID, such as "1700000000000-0": unique within its partition, and only there
	Epoch       int64  // of the ownership that delivered the event: a fencing token for writes to other systems
	Attempt     int    // 1 for the first call of the handler with this event in this ownership, then 2, …; with a Retry over all ownerships
	Redelivered bool   // an earlier owner may have begun the event

	values map[string]any
	source *eventSource
	index  int // in its batch, as delivered
}

// eventSource is the common part of the events of one stream and processor.
type eventSource struct {
	processor string                       // "" for none
	key       func(*Event) (string, error) // by the stream's key function
}

// keyOf returns the key of an entry; ok is false if the entry cannot be decoded.
func (s *eventSource) keyOf(entry redisconn.Entry) (key string, ok bool) {
	if k, ok := entry.Values[keyField].(string); ok {
		return k, true
	}
	e := &Event{source: s, ID: entry.ID, values: entry.Values}
	var err error
	func() {
		defer recoverInto(&err)
		key, err = s.key(e)
	}()
	return key, err == nil
}

// Names of the framework's fields of an entry. Other fields are the user's.
const (
	payloadField = store.PayloadField
	jsonField    = store.JSONField
	ownPrefix    = "__"
	keyField     = store.KeyField
	headerPrefix = store.HeaderPrefix
)

// Data returns the payload as the codec wrote it, without copying: it must not
// be changed. It is nil for an entry of native fields.
func (e *Event) Data() []byte {
	data, _, _ := e.payload()
	return data
}

// payload returns the payload, and reports whether it is in the field "json".
func (e *Event) payload() (data []byte, isJSON, ok bool) {
	if s, ok := e.values[payloadField].(string); ok {
		return viewOf(s), false, true
	}
	if s, ok := e.values[jsonField].(string); ok {
		return viewOf(s), true, true
	}
	return nil, false, false
}

// viewOf returns s as bytes, without copying: they must not be changed.
func viewOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Fields returns a copy of the entry's own Redis fields, without those of the
// framework (their names begin with "__").
func (e *Event) Fields() map[string]string {
	out := make(map[string]string, len(e.values))
	for name, v := range e.values {
		if s, ok := v.(string); ok && !strings.HasPrefix(name, ownPrefix) {
			out[name] = s
		}
	}
	return out
}

// Headers returns a copy of the event's headers, nil if it has none.
func (e *Event) Headers() map[string]string {
	var out map[string]string
	for name, v := range e.values {
		if h, ok := strings.CutPrefix(name, headerPrefix); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[h], _ = v.(string)
		}
	}
	return out
}

// Header returns the event's header of this name, "" if it has none.
func (e *Event) Header(name string) string {
	value, _ := e.values[headerPrefix+name].(string)
	return value
}

// Key returns the key that the event was sent with: the explicit one, else the result of
// the stream's key function for the record, which Key decodes. The key is empty if the
// record cannot be decoded.
func (e *Event) Key() string {
	if k, ok := e.values[keyField].(string); ok {
		return k
	}
	if e.source == nil || e.source.key == nil {
		return ""
	}
	k, err := e.source.key(e)
	if err != nil {
		return ""
	}
	return k
}

// SendID returns an Outgoing.DedupID for the n-th record, from 0, that the processor
// sends for this event. It is the same in every attempt, by every owner, and after `dead
// retry`; it differs for any other event, processor or n. Two records with the same n are
// one if they go to the same partition. The ID is made of stream, processor, partition,
// entry ID and n; without a processor if the event was delivered to none.
func (e *Event) SendID(n int) string {
	processor := ""
	if e.source != nil {
		processor = e.source.processor
	}
	return e.Stream + "/" + processor + "/" + e.name() + "/" + strconv.Itoa(n)
}

// name returns the event's name in logs, errors and commands, as an entry ID is unique
// only within its partition.
func (e *Event) name() string { return entryid.EventID(e.Partition, e.ID) }

// Appended returns when Redis appended the event, by Redis' clock, to the millisecond. It
// is the zero time if the ID was not made from a clock.
func (e *Event) Appended() time.Time {
	ms, _, _ := strings.Cut(e.ID, "-")
	return moment(ms)
}

// Enqueued returns when the event was sent, by Redis' clock, to the millisecond: the time
// of the call that delayed it, else that of its append.
func (e *Event) Enqueued() time.Time {
	if t := e.stamp(store.SentField); !t.IsZero() {
		return t
	}
	return e.Appended()
}

// Due returns when a delayed event was due, to the millisecond. It is the zero time if
// the event was not delayed.
func (e *Event) Due() time.Time { return e.stamp(store.DueField) }

// stamp returns the time in a field of milliseconds, the zero time if there is none.
func (e *Event) stamp(field string) time.Time {
	text, _ := e.values[field].(string)
	return moment(text)
}

// moment returns the time of milliseconds, the zero time for a text that is no number.
func moment(text string) time.Time {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// A Batch has the events of one loop iteration: one event, or as many as Take put
// together. It may be kept.
type Batch struct {
	Processor string   // name of the processor
	Stream    string   // name of the stream
	Partition int      // number of the partition, from 0
	Epoch     int64    // of the ownership, as in Events
	Events    []*Event // never empty, in order
}

// A Handler processes a batch. After nil its events are acked.
//
// ctx is the context of the iteration; in a loop it is Events.Context. It ends when the
// partition is lost (the cause is ErrLost), when the grace period of a release or
// shutdown is over (ErrReleased, ErrShutdown), or after ProcessorOptions.Timeout
// (ErrTimeout).
type Handler func(ctx context.Context, b *Batch) error

// A Middleware wraps a Handler. The result is called once per batch, by one goroutine per
// partition. next returns the real error of the user's function.
//
// A Middleware may return nil without calling next: the events are acked unprocessed. It
// may call next with a batch of fewer of the same events: those left out are acked with
// the others. After an error it may call next again, which calls the user's function
// anew: the function's variables start over, as after a crash. A Middleware may call next
// from another goroutine: the iteration lasts until next returns, even if the Middleware
// returned before. A call of next that begins after the Middleware has returned is
// refused with an error.
type Middleware func(next Handler) Handler

func chain(h Handler, middleware []Middleware) Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}

// A DecodeError says that the codec could not decode an event. The event
// reached no loop; middleware and the policy decide about it.
type DecodeError struct {
	Event *Event // as read
	Codec string // name of the stream's codec
	Err   error  // what the codec said
}

// Error names the stream and the event.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("stream %s: decode event %s as %s: %v", e.Event.Stream, e.Event.name(), e.Codec, e.Err)
}

// Unwrap returns the codec's error.
func (e *DecodeError) Unwrap() error { return e.Err }
