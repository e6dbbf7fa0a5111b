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
	Epoch       int64  // of the ownership that delivered it: a fencing token for writes to other systems
	Attempt     int    // 1 for the first call of the handler with this event in this ownership, then 2, …; with a Retry over all ownerships
	Redelivered bool   // an earlier owner may have begun it

	values map[string]any
	source *eventSource
	index  int // in the batch it was delivered with
}

// eventSource is what the events of one stream and processor have in common.
type eventSource struct {
	processor string                       // "" for none
	key       func(*Event) (string, error) // by the stream's key function
}

// keyOf returns the key of an entry; false where it cannot be decoded.
func (s *eventSource) keyOf(entry redisconn.Entry) (key string, ok bool) {
	if k, ok := entry.Values[keyField].(string); ok {
		return k, true
	}
	e := &Event{source: s}
	newEvent(e, entry)
	var err error
	func() {
		defer recoverInto(&err)
		key, err = s.key(e)
	}()
	return key, err == nil
}

// Names of the fields of an entry that are ours. Other fields are the user's.
const (
	payloadField = store.PayloadField
	jsonField    = store.JSONField
	ownPrefix    = "__"
	keyField     = store.KeyField
	headerPrefix = store.HeaderPrefix
)

func newEvent(e *Event, entry redisconn.Entry) {
	e.ID, e.values = entry.ID, entry.Values
}

// Data returns the payload as the codec wrote it, without copying: it must not
// be changed. It is nil for an entry of native fields.
func (e *Event) Data() []byte {
	data, _, _ := e.payload()
	return data
}

// payload returns the payload, and whether it stands in the field "json".
func (e *Event) payload() (data []byte, isJSON, ok bool) {
	if s, ok := e.values[payloadField].(string); ok {
		return viewOf(s), false, true
	}
	if s, ok := e.values[jsonField].(string); ok {
		return viewOf(s), true, true
	}
	return nil, false, false
}

// viewOf views s as bytes that nobody may change.
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

// Headers returns a copy of the headers that the event was sent with, nil if
// there were none.
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

// Header returns one of the headers that the event was sent with, "" if it was
// sent without.
func (e *Event) Header(name string) string {
	value, _ := e.values[headerPrefix+name].(string)
	return value
}

// Key returns the key that the event was sent with: the explicit one, else what
// the stream's key function says of the record, which is decoded for it. It is
// empty where the record cannot be decoded.
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

// SendID returns an Outgoing.DedupID for the n-th thing, from 0, that the processor sends
// for this event: the same one in every attempt, by every owner, and by `dead retry`,
// and another one than for any other event, processor or n. Two things under one n are
// one where they go to the same partition. It is made of stream, processor, partition,
// entry ID and n; of an event that no processor was given it names no processor.
func (e *Event) SendID(n int) string {
	processor := ""
	if e.source != nil {
		processor = e.source.processor
	}
	return e.Stream + "/" + processor + "/" + e.name() + "/" + strconv.Itoa(n)
}

// name is what the event is called in logs and errors, and by the commands: an entry ID
// is unique within its partition only.
func (e *Event) name() string { return entryid.EventID(e.Partition, e.ID) }

// Appended returns when Redis appended the event, by its clock, to the
// millisecond. It is the zero time if the ID was not made from a clock.
func (e *Event) Appended() time.Time {
	ms, _, _ := strings.Cut(e.ID, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// Enqueued returns when the event was sent, by Redis' clock, to the millisecond:
// of a delayed one when it was delayed, else when it was appended.
func (e *Event) Enqueued() time.Time {
	if t := e.stamp(store.SentField); !t.IsZero() {
		return t
	}
	return e.Appended()
}

// Due returns when a delayed event was due, to the millisecond; the zero time for
// one that was not delayed.
func (e *Event) Due() time.Time { return e.stamp(store.DueField) }

// stamp is a field of milliseconds, the zero time where there is none.
func (e *Event) stamp(field string) time.Time {
	text, _ := e.values[field].(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// A Batch is what one loop iteration received: one event, or as many as Take
// put together. It may be kept.
type Batch struct {
	Processor string   // name of the processor
	Stream    string   // name of the stream
	Partition int      // number of the partition, from 0
	Epoch     int64    // of the ownership, as in its events
	Events    []*Event // never empty, in order
}

// A Handler processes a batch. After nil its events are acked.
//
// ctx is that of the iteration: it ends when the partition is lost (the cause is ErrLost), when the
// grace period of a release or shutdown is over (ErrReleased, ErrShutdown), or when
// ProcessorOptions.Timeout is (ErrTimeout). In a loop it is Events.Context.
type Handler func(ctx context.Context, b *Batch) error

// A Middleware wraps a Handler. What it wraps is called once per batch, by one
// goroutine per partition, and gets the real error of the user's function.
//
// It may return nil without calling next (the events are acked unprocessed),
// call next with a batch of fewer of the same events (those left out are acked
// with the others), and call next again after an error, which calls the user's
// function anew: its variables start over, as after a crash. A Middleware
// may call next from another goroutine: the iteration lasts until next returns, even if the
// Middleware returned before. A call of next that begins after the Middleware has
// returned is refused with an error.
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
	Event *Event // as it was read
	Codec string // name of the stream's codec
	Err   error  // what the codec said
}

// Error names the stream and the event.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("stream %s: decode event %s as %s: %v", e.Event.Stream, e.Event.name(), e.Codec, e.Err)
}

// Unwrap returns what the codec said.
func (e *DecodeError) Unwrap() error { return e.Err }
