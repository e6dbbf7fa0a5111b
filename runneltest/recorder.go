package runneltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// recorder takes what an app sends, instead of Redis.
type recorder struct {
	streams map[string]*appview.Stream

	mu      sync.Mutex
	sent    []appended
	fail    error
	last    map[store.StreamPartition]int // entries
	once    map[onceKey]string            // what was sent under an ID
	delayed int                           // number of the last delayed event
}

var _ appview.Sender = (*recorder)(nil)

type appended struct {
	stream *appview.Stream
	entry  redisconn.Entry
	at     time.Time // when a delayed event is due, else zero
	once   string    // Outgoing.DedupID

	emitted bool // with the ack of an iteration
}

func newRecorder(t testing.TB, reg *appview.View) *recorder {
	t.Helper()
	streams, err := reg.Streams()
	if err != nil {
		t.Fatalf("runneltest: app %s: %v", reg.App, err)
	}
	r := &recorder{streams: map[string]*appview.Stream{}, last: map[store.StreamPartition]int{}, once: map[onceKey]string{}}
	for _, s := range streams {
		r.streams[s.Name] = s
	}
	return r
}

// begin forgets what was recorded and lets appends fail with err.
func (r *recorder) begin(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.fail, r.delayed = nil, err, 0
	clear(r.last)
	clear(r.once)
}

// EnsureMeta accepts any metadata.
func (r *recorder) EnsureMeta(_ context.Context, _ string, m store.Meta) (store.Meta, error) {
	return m, nil
}

// Append records; what is delayed never becomes due during a run.
func (r *recorder) Append(ctx context.Context, appends []store.Append) []store.Appended {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]store.Appended, len(appends))
	for i, a := range appends {
		if err := errors.Join(r.fail, ctx.Err()); err != nil {
			out[i].Err = err
			continue
		}
		for n := range a.Records {
			id, duplicate := r.add(a, n)
			out[i].IDs, out[i].Duplicate = append(out[i].IDs, id), append(out[i].Duplicate, duplicate)
		}
	}
	return out
}

// add records the n-th record of a, unless its ID was sent before.
func (r *recorder) add(a store.Append, n int) (id string, duplicate bool) {
	once := onceKey{stream: a.Stream, partition: a.Partition}
	if a.IDs != nil {
		once.id = a.IDs[n]
	}
	if id, duplicate = r.once[once]; duplicate {
		return id, true
	}
	sent := appended{stream: r.streams[a.Stream], once: once.id}
	if a.Due == nil {
		p := store.StreamPartition{Stream: a.Stream, Partition: a.Partition}
		r.last[p]++
		id = fmt.Sprintf("%d-0", r.last[p])
		sent.entry = entryOf(id, a.Records[n])
	} else {
		r.delayed++
		id = store.DelayedID(a.Partition, fmt.Sprintf("%016d", r.delayed))
		now := time.Now()
		if sent.at = a.Due[n].At; sent.at.IsZero() {
			sent.at = now.Add(a.Due[n].After)
		}
		sent.entry = entryOf(id, a.Records[n])
		sent.entry.Values[store.SentField], sent.entry.Values[store.DueField] = millis(now), millis(sent.at)
	}
	r.sent = append(r.sent, sent)
	if once.id != "" {
		r.once[once] = id
	}
	return id, false
}

// onceKey is an Outgoing.DedupID.
type onceKey struct {
	stream    string
	partition int
	id        string
}

// sentRecord is a record that was sent.
type sentRecord struct {
	record  any
	id      string // Outgoing.DedupID
	key     string
	headers map[string]string
	at      time.Time
}

// emit records an output that is committed.
func (r *recorder) emit(o store.Output) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(store.Append{Stream: o.Stream, Partition: o.Partition, Records: [][]string{o.Fields}}, 0)
	r.sent[len(r.sent)-1].emitted = true
}

// of returns what was sent or emitted to a stream.
func (r *recorder) of(t testing.TB, stream string, emitted bool) []sentRecord {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []sentRecord
	for _, a := range r.sent {
		if a.stream.Name != stream || a.emitted != emitted {
			continue
		}
		record, err := a.stream.Decode(a.entry, a.stream.MaxRecord)
		if err != nil {
			t.Fatalf("runneltest: stream %s: decode what was sent: %v", stream, err)
		}
		s := sentRecord{record: record, id: a.once, at: a.at}
		for name, v := range a.entry.Values {
			value, _ := v.(string)
			if h, ok := strings.CutPrefix(name, store.HeaderPrefix); ok {
				if s.headers == nil {
					s.headers = map[string]string{}
				}
				s.headers[h] = value
			} else if name == store.KeyField {
				s.key = value
			}
		}
		out = append(out, s)
	}
	return out
}

// encode returns the values of the entry that out becomes. The stream's own
// Send makes them.
func encode[T any](r *recorder, s *runnel.Stream[T], out runnel.Outgoing[T]) (map[string]any, error) {
	r.begin(nil)
	if _, err := s.SendEvents(context.Background(), out); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[0].entry.Values, nil
}

func entryOf(id string, fields []string) redisconn.Entry {
	values := make(map[string]any, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		values[fields[i]] = fields[i+1]
	}
	return redisconn.Entry{ID: id, Values: values}
}
