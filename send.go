package runnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
)

// Outgoing is a record with the options of its send.
type Outgoing[T any] struct {
	Record  T
	Key     string            // instead of the key function's, if not empty
	Headers map[string]string // travel with the event; see Event.Headers

	// DedupID makes the send idempotent: within StreamOptions.DedupWindow, of all records
	// with this ID for the same partition, and so for the same key, only the first is
	// appended. In a handler, use event.SendID(0) to send once however often the event is
	// processed. An event's ID alone does not suffice: events of several partitions can
	// have the same one.
	DedupID string

	// At is when the record becomes an event, by Redis' clock, rounded up to a
	// millisecond. Until then the record waits beside its partition, and does not count
	// for MaxLen. Once it is due, never earlier, the partition's owner appends it.
	// Records are appended in the order of their times; those with the same time in the
	// order in which they were sent. While the partition is full they go on waiting. A
	// record that is due already is appended at once, if no other is ahead of it.
	At time.Time
	// After is At as a duration from now. Zero or negative: not delayed.
	After time.Duration
}

// Sent is where an event was appended; for a duplicate, where the first one was. It is
// the zero value if the event was not appended.
type Sent struct {
	Partition int
	ID        string // Redis entry ID; of a delayed event its partition and number, "3/0000000000000042"
	Duplicate bool   // the same Outgoing.DedupID was sent before
}

// A SendError lists the records of a call that were not appended, or not replicated; the
// others were.
type SendError struct {
	Stream string
	Failed []SendFailure // by index
}

// A SendFailure is one record that was not appended, or possibly not, or that may get
// lost: then Err is ErrNotReplicated, and Sent is where it was appended.
type SendFailure struct {
	Index     int // in the call's arguments
	Partition int
	Err       error
	Unknown   bool // it may be appended: the connection broke or ctx's deadline passed on the way, or it was not replicated
}

// Error returns the number of failures and the first one.
func (e *SendError) Error() string {
	f, unknown := e.Failed[0], 0
	for _, f := range e.Failed {
		if f.Unknown {
			unknown++
		}
	}
	msg := fmt.Sprintf("stream %s: send to partition %d: %v (record %d; %d not sent", e.Stream, f.Partition, f.Err, f.Index, len(e.Failed)-unknown)
	if errors.Is(f.Err, ErrStreamFull) { // which names stream and partition
		msg = fmt.Sprintf("send: %v (record %d; %d not sent", f.Err, f.Index, len(e.Failed)-unknown)
	}
	if unknown > 0 {
		msg += fmt.Sprintf(", %d unknown", unknown)
	}
	return msg + ")"
}

// Unwrap returns the errors of all failures.
func (e *SendError) Unwrap() []error {
	out := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		out[i] = f.Err
	}
	return out
}

// ErrNotTried is the error of a record that was not sent because an earlier one of the
// same call and partition failed.
var ErrNotTried = store.ErrNotTried

// Send appends records, in one pipeline; records of one key keep their order. It blocks
// until Redis has answered. Small concurrent calls share a round trip, each with its own
// outcome. If ctx ends before a call is under way, none of its records is sent. The first
// call also writes or checks the stream's metadata.
//
// Send repeats nothing: after a failed call, *SendError lists the records that were not
// appended. After the first failure in a partition no later record of the call is
// appended to that partition. A record that cannot be encoded fails the whole call before
// anything is sent.
//
// With Options.Durability Send also waits for replicas; a record that they did not
// confirm is a failure, with ErrNotReplicated.
//
// Of the records of one partition, up to 1 000 or 4 MiB or the stream's MaxLen are
// appended together. If they do not fit, none of them is appended, and Overflow decides
// whether Send fails, waits, or makes room.
func (s *Stream[T]) Send(ctx context.Context, records ...T) error {
	out := make([]Outgoing[T], len(records))
	for i, r := range records {
		out[i].Record = r
	}
	_, err := s.SendEvents(ctx, out...)
	return err
}

// SendEvents is Send for records with the options of Outgoing. It returns where each
// record was appended.
func (s *Stream[T]) SendEvents(ctx context.Context, out ...Outgoing[T]) ([]Sent, error) {
	switch {
	case len(out) == 0:
		return nil, nil
	case len(s.app.opts.SendHooks) > 0:
		return s.hooked(ctx, out, s.send)
	}
	return s.send(ctx, out)
}

func (s *Stream[T]) send(ctx context.Context, out []Outgoing[T]) ([]Sent, error) {
	o, err := s.settings()
	if err != nil {
		return nil, err
	}
	sorter, texts := store.NewSorter(s.name, len(out), s.processedUnder(ctx)), make([]string, 2*len(out))
	for i := range out {
		due, err := out[i].due()
		if err != nil {
			return nil, fmt.Errorf("stream %s: record %d: %w", s.name, i, err)
		}
		fields, partition, err := s.encoding.encode(o, out[i], texts[2*i:2*i:2*i+2])
		if err != nil {
			return nil, fmt.Errorf("stream %s: encode record %d: %w", s.name, i, err)
		}
		sorter.Add(i, partition, fields, out[i].DedupID, due)
	}
	to, err := s.sender(ctx)
	if err != nil {
		return nil, err
	}
	return s.collect(sorter.Results(to.Append(ctx, sorter.Appends())))
}

// due is when the record is due, nil for at once.
func (o *Outgoing[T]) due() (*store.Due, error) {
	switch {
	case o.At.IsZero() && o.After <= 0:
		return nil, nil
	case !o.At.IsZero() && o.After != 0:
		return nil, errors.New("both At and After are set")
	case !o.At.IsZero():
		return &store.Due{At: o.At}, checkDue(o.At)
	}
	return &store.Due{After: o.After}, nil
}

// processedUnder reports whether ctx belongs to a processor of the stream.
func (s *Stream[T]) processedUnder(ctx context.Context) bool {
	sc, ok := ctx.Value(scopeKey{}).(*scope)
	return ok && sc.in == s.app && sc.stream == s.name
}

// collect returns and counts the results of a call.
func (s *Stream[T]) collect(results []store.Sent) ([]Sent, error) {
	sent := make([]Sent, len(results))
	var failed []SendFailure
	var duplicates, unknown int64
	for i, r := range results {
		if r.ID != "" {
			sent[i] = Sent{Partition: r.Partition, ID: r.ID, Duplicate: r.Duplicate}
		}
		switch {
		case r.Err != nil:
			failed = append(failed, SendFailure{Index: i, Partition: r.Partition, Err: r.Err, Unknown: r.Unknown})
			if r.Unknown {
				unknown++
			}
		case r.Duplicate:
			duplicates++
		}
	}
	s.sent.Sent.Add(int64(len(sent)-len(failed)) - duplicates)
	s.sent.Duplicates.Add(duplicates)
	s.sent.Unknown.Add(unknown)
	s.sent.Refused.Add(int64(len(failed)) - unknown)
	if failed == nil {
		return sent, nil
	}
	return sent, &SendError{Stream: s.name, Failed: failed}
}

// sendJSON sends records of the command line with the app's types.
func (s *Stream[T]) sendJSON(ctx context.Context, records []appview.JSONRecord) []appview.JSONSent {
	results := make([]appview.JSONSent, len(records))
	var out []Outgoing[T]
	var index []int
	for i, r := range records {
		o, err := s.outgoing(r)
		if err != nil {
			results[i].Err, results[i].Refused = err, true
			continue
		}
		out, index = append(out, o), append(index, i)
	}
	sent, err := s.SendEvents(ctx, out...)
	for j, r := range sent {
		results[index[j]].Sent = store.Sent{Partition: r.Partition, ID: r.ID, Duplicate: r.Duplicate}
	}
	var se *SendError
	switch {
	case errors.As(err, &se):
		for _, f := range se.Failed {
			results[index[f.Index]].Err, results[index[f.Index]].Unknown = f.Err, f.Unknown
		}
	case err != nil:
		for _, i := range index {
			results[i].Err = err
		}
	}
	return results
}

// outgoing parses a record and tries to encode it, as a record that cannot be encoded
// would fail the whole call of SendEvents.
func (s *Stream[T]) outgoing(r appview.JSONRecord) (Outgoing[T], error) {
	o := Outgoing[T]{DedupID: r.ID}
	if err := decodeStrict(r.JSON, &o.Record); err != nil {
		return o, err
	}
	o.At, o.After = r.At, r.After
	if r.Key != nil {
		o.Key = *r.Key
	}
	settings, err := s.settings()
	if err != nil {
		return o, err
	}
	if _, _, err := s.encoding.encode(settings, o, nil); err != nil || r.Key != nil || settings.KeyField == "" || s.encoding.key(o.Record) != "" || hasField(r.JSON, settings.KeyField) {
		return o, err
	}
	return o, fmt.Errorf("the record has no field %q, which is the stream's key; add it, or give the key beside the record", settings.KeyField)
}

// hasField reports whether a JSON object has a field of this name, in upper or lower case.
func hasField(object []byte, name string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return true // the record parses its own JSON
	}
	for field := range fields {
		if strings.EqualFold(field, name) {
			return true
		}
	}
	return false
}
