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
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// recorder takes what an app appends, instead of Redis.
type recorder struct {
	byLog, byName map[string]*appview.Stream

	mu      sync.Mutex
	sent    []appended
	fail    error
	last    map[string]int     // entries by log
	once    map[onceKey]string // what was sent under an ID
	delayed int                // number of the last delayed event
}

type appended struct {
	stream *appview.Stream
	entry  redisconn.Entry
	at     time.Time // when a delayed event is due, else zero
	once   string    // Outgoing.DedupID
}

func newRecorder(t testing.TB, reg *appview.View) *recorder {
	t.Helper()
	streams, err := reg.Streams()
	if err != nil {
		t.Fatalf("runneltest: app %s: %v", reg.App, err)
	}
	r := &recorder{byLog: map[string]*appview.Stream{}, byName: map[string]*appview.Stream{}, last: map[string]int{}, once: map[onceKey]string{}}
	for _, s := range streams {
		r.byName[s.Name] = s
		k := keys.Keys{App: reg.App, Layout: layoutOf(s.Meta.Layout)}
		for p := range s.Meta.Partitions {
			r.byLog[k.Partition(s.Name, p)] = s
		}
	}
	return r
}

func layoutOf(name string) keys.Layout {
	if name == keys.Cluster.String() {
		return keys.Cluster
	}
	return keys.Standalone
}

// begin forgets what was recorded and lets appends fail with err.
func (r *recorder) begin(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.fail, r.delayed = nil, err, 0
	clear(r.last)
	clear(r.once)
}

// Append records; it implements worker.Appender.
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
	r.last[a.Log]++
	id = fmt.Sprintf("%d-0", r.last[a.Log])
	r.sent = append(r.sent, appended{stream: r.byLog[a.Log], entry: entryOf(id, a.Records[n]), once: once.id})
	r.remember(once, id)
	return id, false
}

// onceKey is an Outgoing.DedupID.
type onceKey struct {
	stream    string
	partition int
	id        string
}

// remember notes what was sent under an ID, if there is one.
func (r *recorder) remember(once onceKey, id string) {
	if once.id != "" {
		r.once[once] = id
	}
}

// sentRecord is a record that was sent.
type sentRecord struct {
	record  any
	id      string // Outgoing.DedupID
	key     string
	headers map[string]string
	at      time.Time
}

// of returns what was sent to a stream.
func (r *recorder) of(t testing.TB, stream string) []sentRecord {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []sentRecord
	for _, a := range r.sent {
		if a.stream.Name != stream {
			continue
		}
		record, err := a.stream.Decode(a.entry, a.stream.MaxRecord)
		if err != nil {
			t.Fatalf("runneltest: stream %s: decode what was sent: %v", stream, err)
		}
		s := sentRecord{record: record, id: a.once, at: a.at}
		for name, v := range a.entry.Values {
			value, _ := v.(string)
			if h, ok := strings.CutPrefix(name, "__h."); ok {
				if s.headers == nil {
					s.headers = map[string]string{}
				}
				s.headers[h] = value
			} else if name == "__key" {
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

// turns lets runs over one app follow one another: what it appends goes to one
// recorder at a time.
var turns = struct {
	mu   sync.Mutex
	apps map[*runnel.App]*turn
}{apps: map[*runnel.App]*turn{}}

type turn struct {
	mu    sync.Mutex
	users int // guarded by turns.mu
}

func lockApp(app *runnel.App) (unlock func()) {
	turns.mu.Lock()
	w := turns.apps[app]
	if w == nil {
		w = new(turn)
		turns.apps[app] = w
	}
	w.users++
	turns.mu.Unlock()
	w.mu.Lock()
	return func() {
		w.mu.Unlock()
		turns.mu.Lock()
		defer turns.mu.Unlock()
		if w.users--; w.users == 0 {
			delete(turns.apps, app)
		}
	}
}
