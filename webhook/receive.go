package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/verdict"
)

// An Event says what happened to a resource. The same type is published and received.
type Event struct {
	Topic string `json:"topic"`
	Type  string `json:"type"` // create, update, delete or noop
	URL   string `json:"url"`  // of the resource
	// T is when it happened, in milliseconds: of a published event zero for the time at which Redis gets it.
	T time.Time `json:"t"`
	// Data is what else there is to say, nil for nothing: of a published event what encoding/json can encode, of a
	// received one a json.RawMessage, which Decode reads.
	Data any `json:"data,omitempty"`
	// DedupID makes a publication idempotent, as that of runnel.Outgoing. It is not delivered.
	DedupID string `json:"-"`
}

// Decode decodes the Data of a received event into v, as json.Unmarshal does. Without Data it leaves v alone.
func (e Event) Decode(v any) error {
	switch data := e.Data.(type) {
	case nil:
		return nil
	case json.RawMessage:
		return json.Unmarshal(data, v)
	}
	return fmt.Errorf("decode an event's data: a %T was not received", e.Data)
}

// A Batch is what one request has delivered. In JSON it is what the command `webhook listen` prints, not the body of the request.
type Batch struct {
	// ID is the same whenever the same batch comes again, and then its events are the same.
	ID string `json:"batch"`
	// Attempt counts the requests with this batch from 1, and Epoch rises with each owner of the subscription: a batch
	// of a smaller epoch than one that came before is a late one. Neither is signed. They are 0 if the sender is not Runnel.
	Attempt int     `json:"attempt"`
	Epoch   int64   `json:"epoch"`
	Events  []Event `json:"events"` // in order, at least one
}

// ReceiveOptions say which requests Receive accepts. The zero value accepts those of anybody.
type ReceiveOptions struct {
	// Secrets are what requests may be signed with, each "whsec_" and 24 to 64 bytes in base64. None: signatures are not looked at.
	Secrets []string
	// UUID is what requests must have as their user in HTTP Basic, with the password x. "": any or none.
	UUID string
	// MaxBody is how large a request's body may be, in bytes. 0: 4 MiB.
	MaxBody int64
	// Seen reports whether the batch of an ID has been handled, so that it is answered without another call of the function.
	// It only asks. The function marks the ID, best in the transaction of its own effects: then nothing is lost if the
	// process dies, and nothing done twice. Two requests with one batch may come at once and both be told that it is new,
	// so the mark must be unique. nil: a batch that comes again is handled again.
	Seen func(ctx context.Context, id string) (bool, error)
}

const defaultMaxBody = 4 << 20

// Receive returns a handler that checks deliveries and calls fn with each batch, concurrently if they come at once. The
// context ends when the sender has gone.
//
// It answers 204 once fn has returned nil, and 500 with the text of its error, which the sender keeps in part: let it show
// no secret. After runnel.RetryAfter it answers 503 and when to come again. Either way the same batch comes again.
// What is refused does not reach fn: 401 has not the UUID, 403 is not signed, 400 is no batch, 405, 413, 415.
//
// It panics if fn is nil or an option is wrong.
func Receive(opts ReceiveOptions, fn func(ctx context.Context, b *Batch) error) http.Handler {
	rc := &receiver{ReceiveOptions: opts, fn: fn}
	for i, text := range opts.Secrets {
		key, err := parseSecret(text)
		if err != nil {
			panic(fmt.Sprintf("webhook: Receive: Secrets[%d]: %v", i, err))
		}
		rc.keys = append(rc.keys, key)
	}
	switch {
	case fn == nil:
		panic("webhook: Receive: there is no function")
	case opts.MaxBody < 0:
		panic(fmt.Sprintf("webhook: Receive: MaxBody is %d", opts.MaxBody))
	case strings.Contains(opts.UUID, ":"):
		panic("webhook: Receive: UUID has a colon")
	case opts.MaxBody == 0:
		rc.MaxBody = defaultMaxBody
	}
	return rc
}

// basicPassword is what Routemaster sends as the password, too: the secret is the user.
const basicPassword = "x"

type receiver struct {
	ReceiveOptions
	keys [][]byte
	fn   func(ctx context.Context, b *Batch) error
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := rc.read(r)
	if err != nil {
		code, text := explain(err)
		switch code {
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", http.MethodPost)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", `Basic realm="webhook"`)
		}
		http.Error(w, text, code)
		return
	}
	seen := false
	if rc.Seen != nil && b.ID != "" {
		seen, err = rc.Seen(r.Context(), b.ID)
	}
	if !seen && err == nil {
		err = rc.fn(r.Context(), b)
	}
	switch said := verdict.Of(err); {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case said.Kind == verdict.Retry:
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(said.After.Seconds()), 'f', 0, 64))
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// read returns the batch in a request, if it comes from the sender.
func (rc *receiver) read(r *http.Request) (*Batch, error) {
	user, password, _ := r.BasicAuth()
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		return nil, refusef(http.StatusMethodNotAllowed, "batches are posted")
	case rc.UUID != "" && !sameSecret(user+":"+password, rc.UUID+":"+basicPassword):
		return nil, refusef(http.StatusUnauthorized, "user or password is wrong")
	case kind != "application/json":
		return nil, refusef(http.StatusUnsupportedMediaType, "the content type is not application/json")
	}
	body, err := textOf(r, rc.MaxBody)
	if err != nil {
		return nil, err
	}
	b := &Batch{ID: r.Header.Get(headerBatch)}
	if len(rc.keys) > 0 {
		b.ID = r.Header.Get(headerID) // the one that is signed
		if err := verify(rc.keys, r.Header, body, time.Now()); err != nil {
			return nil, err
		}
	}
	b.Attempt, _ = strconv.Atoi(r.Header.Get(headerAttempt))
	b.Epoch, _ = strconv.ParseInt(r.Header.Get(headerEpoch), 10, 64)
	b.Events, err = decodeEvents(body)
	return b, err
}

// plainEvent is Event without methods.
type plainEvent Event

// wireEvent is an event as a delivery has it, in this order. Fields that a later release adds are ignored.
type wireEvent struct {
	plainEvent
	T         *int64          `json:"t"`                  // milliseconds
	Timestamp time.Time       `json:"timestamp,omitzero"` // as Standard Webhooks has it
	Data      json.RawMessage `json:"data,omitempty"`
}

// receivedMost is how many events a batch has at most, as in subscriptions. A body of tiny ones would take
// forty times its size in memory.
const receivedMost = 10_000

// decodeEvents reads an array of events, or a single one.
func decodeEvents(body []byte) (events []Event, err error) {
	all, _, err := listOf(body)
	if err != nil || len(all) == 0 || len(all) > receivedMost {
		return nil, errNoBatch
	}
	for _, one := range all {
		var e Event
		if json.Unmarshal(one, &e) != nil || e.Type == "" {
			return nil, errNoBatch
		}
		events = append(events, e)
	}
	return events, nil
}

var errNoBatch = refusef(http.StatusBadRequest, "the body is no batch of events")

// UnmarshalJSON reads an event as subscribers get it. Its Data is a json.RawMessage.
func (e *Event) UnmarshalJSON(text []byte) error {
	var from wireEvent
	err := json.Unmarshal(text, &from)
	*e = Event(from.plainEvent)
	if e.T = from.Timestamp.UTC(); from.T != nil {
		e.T = time.UnixMilli(*from.T).UTC()
	}
	if len(from.Data) > 0 && string(from.Data) != "null" {
		e.Data = from.Data
	}
	return err
}

// MarshalJSON writes an event as subscribers get it.
func (e Event) MarshalJSON() (text []byte, err error) {
	ms := e.T.UnixMilli()
	w := wireEvent{plainEvent: plainEvent(e), T: &ms}
	var encoded bool
	if w.Data, encoded = e.Data.(json.RawMessage); !encoded {
		if w.Data, err = encode(e.Data); err != nil {
			return nil, err
		}
	}
	if string(w.Data) == "null" {
		w.Data = nil
	}
	return encode(w)
}
