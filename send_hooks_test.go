// Hooks of sends add headers and learn the outcome; without any they cost nothing.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// outcome is what a hook was told.
type outcome struct {
	stream  string
	records int
	sent    []runnel.Sent
	err     error
}

// outcomes notes what hooks are told.
type outcomes struct {
	mu  sync.Mutex
	all []outcome
}

// adding is a hook that adds headers to every record.
func (o *outcomes) adding(headers map[string]string) runnel.SendHook {
	return func(_ context.Context, s *runnel.Sending) func([]runnel.Sent, error) {
		for i := range s.Records {
			s.AddHeaders(i, headers)
		}
		stream, records := s.Stream, s.Records
		return func(sent []runnel.Sent, err error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.all = append(o.all, outcome{stream, records, sent, err})
		}
	}
}

// one returns the only outcome.
func (o *outcomes) one(t *testing.T) outcome {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) != 1 {
		t.Fatalf("hooks were told %+v, want one outcome", o.all)
	}
	return o.all[0]
}

func wantHeaders(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// hooked is an app with the stream of tens on a server of its own.
func hooked(t *testing.T, hooks ...runnel.SendHook) (*runnel.Stream[item], *redis.Client) {
	t.Helper()
	srv := redistest.Start(t)
	app := runnel.New("contract", &runnel.Options{RedisURL: srv.URL(), SendHooks: hooks})
	t.Cleanup(func() { app.Close() })
	return tens(app), srv.Client(t)
}

// stored are the headers of an entry.
func stored(t *testing.T, rdb *redis.Client, s runnel.Sent) map[string]string {
	t.Helper()
	found := rdb.XRange(t.Context(), fmt.Sprint("__strm:contract.items.", s.Partition), s.ID, s.ID).Val()
	if len(found) != 1 {
		t.Fatalf("nothing at %+v", s)
	}
	headers := map[string]string{}
	for name, value := range found[0].Values {
		if h, ok := strings.CutPrefix(name, "__h."); ok {
			headers[h] = value.(string)
		}
	}
	return headers
}

func TestHooksAddHeadersAndLearnTheOutcome(t *testing.T) {
	var told outcomes
	given := map[string]string{"trace": "hook", "more": "hook"}
	s, rdb := hooked(t, told.adding(given))
	own := map[string]string{"trace": "own", "mine": "own"}
	out := []runnel.Outgoing[item]{{Record: item{10}}, {Record: item{20}, Headers: own}, {Record: item{11}, DedupID: "a"}, {Record: item{11}, DedupID: "a"}}
	sent, err := s.SendEvents(t.Context(), out...)
	if err != nil {
		t.Fatal(err)
	}
	wantHeaders(t, "no headers", stored(t, rdb, sent[0]), given)
	wantHeaders(t, "own headers", stored(t, rdb, sent[1]), map[string]string{"trace": "own", "mine": "own", "more": "hook"})
	wantHeaders(t, "the caller's map", own, map[string]string{"trace": "own", "mine": "own"})
	wantHeaders(t, "the hook's map", given, map[string]string{"trace": "hook", "more": "hook"})
	if out[0].Headers != nil {
		t.Errorf("the caller's record has headers %v now", out[0].Headers)
	}
	got := told.one(t)
	if got.stream != "items" || got.records != 4 || got.err != nil || fmt.Sprint(got.sent) != fmt.Sprint(sent) || !got.sent[3].Duplicate {
		t.Errorf("the hook was told %+v, SendEvents returned %v", got, sent)
	}
}

func TestHooksLearnOfErrors(t *testing.T) {
	srv := redistest.Start(t)
	for _, tt := range []struct {
		name string
		send func(s *runnel.Stream[item]) error
		want error
	}{
		{"a mistake", func(s *runnel.Stream[item]) error {
			_, err := s.SendEvents(t.Context(), runnel.Outgoing[item]{Record: item{1}, At: time.Now(), After: 1})
			return err
		}, nil},
		{"a full stream", func(s *runnel.Stream[item]) error { return s.Send(t.Context(), items(1, 2, 3)...) }, runnel.ErrStreamFull},
		{"an ended context", func(s *runnel.Stream[item]) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return s.Send(ctx, item{1})
		}, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told outcomes
			app := runnel.New("contract", &runnel.Options{RedisURL: srv.URL(), SendHooks: []runnel.SendHook{told.adding(nil)}})
			defer app.Close()
			s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1, MaxLen: 2})
			err := tt.send(s)
			if got := told.one(t); err == nil || got.err != err || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("the hook was told %v, Send returned %v, want %v", got.err, err, tt.want)
			}
		})
	}
}

// Hooks are called in their order, and each sees what those before it added.
func TestHooksFollowOneAnother(t *testing.T) {
	var n notes
	hook := func(name string) runnel.SendHook {
		return func(_ context.Context, s *runnel.Sending) func([]runnel.Sent, error) {
			n.add(fmt.Sprint(name, " sees ", s.Headers(0)))
			s.AddHeaders(0, map[string]string{"by": name, name: "1"})
			return func([]runnel.Sent, error) { n.add(name + " is done") }
		}
	}
	silent := func(context.Context, *runnel.Sending) func([]runnel.Sent, error) { return nil }
	s, rdb := hooked(t, hook("a"), silent, hook("b"))
	sent, err := s.SendEvents(t.Context(), runnel.Outgoing[item]{Record: item{10}})
	if err != nil {
		t.Fatal(err)
	}
	wantHeaders(t, "both", stored(t, rdb, sent[0]), map[string]string{"by": "a", "a": "1", "b": "1"})
	if got, want := strings.Join(n.all(), ", "), "a sees map[], b sees map[a:1 by:a], b is done, a is done"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := s.SendEvents(t.Context()); err != nil || len(n.all()) != 4 {
		t.Errorf("a call without records: %v, %v", n.all(), err)
	}
}

// Delayed events carry the headers to the processor, in the simulated cluster as
// anywhere, and hooks of concurrent calls do not meet.
func TestHooksOfDelayedAndConcurrentSends(t *testing.T) {
	var told outcomes
	var n notes
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		app := runnel.New("contract", o)
		tens(app).Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			n.add(fmt.Sprint(i.N, " ", e.Header("trace"), " ", e.Header("none"), e.Headers()))
			return nil
		}), nil)
		return app
	}, func(c *runneltest.Cluster) {
		o := c.Options("sender")
		o.SendHooks = []runnel.SendHook{told.adding(map[string]string{"trace": "t"})}
		app := runnel.New("contract", o)
		defer app.Close()
		s := tens(app)
		ready(c, "a")
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := s.SendAfter(c.Context(), time.Minute, item{10 + i}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		c.Wait(func() bool { return len(n.all()) == 20 })
	})
	for i := range 20 {
		if want := fmt.Sprint(10+i, " t map[trace:t]"); !n.has(want) {
			t.Errorf("no %q in %q", want, n.all())
		}
	}
	if len(told.all) != 20 {
		t.Errorf("told of %d calls, want 20", len(told.all))
	}
}

// runneltest's senders are told of like others.
func TestHooksInTestsOfProcessors(t *testing.T) {
	var told outcomes
	app := runnel.New("contract", &runnel.Options{SendHooks: []runnel.SendHook{told.adding(map[string]string{"trace": "t"})}})
	s := tens(app)
	copies := runnel.NewStream(app, "copies", keyOfItem, nil)
	s.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		wantHeaders(t, "event", e.Headers(), map[string]string{"trace": "t"})
		return copies.Send(ctx, i)
	}), nil)
	got := runneltest.Process(t, s, "p", item{10})
	wantAcked(t, got, "1-0")
	for _, out := range runneltest.SentEvents(t, got, copies) {
		wantHeaders(t, "copy", out.Headers, map[string]string{"trace": "t"})
	}
	if len(told.all) != 2 || told.all[1].stream != "copies" {
		t.Errorf("told of %+v", told.all)
	}
}

// So are those of the command line with the app's types.
func TestHooksOfTheCommandLine(t *testing.T) {
	var told outcomes
	s, rdb := hooked(t, told.adding(map[string]string{"trace": "t"}))
	streams, err := appview.Of(s.App()).Streams()
	if err != nil {
		t.Fatal(err)
	}
	got := streams[0].SendJSON(t.Context(), []appview.JSONRecord{{JSON: []byte(`{"n":10}`)}, {JSON: []byte(`{"bad":1}`)}})
	if len(got) != 2 || got[0].Err != nil || got[1].Err == nil {
		t.Fatalf("sent %+v", got)
	}
	wantHeaders(t, "record", stored(t, rdb, runnel.Sent{Partition: got[0].Partition, ID: got[0].ID}), map[string]string{"trace": "t"})
	if told := told.one(t); told.records != 1 {
		t.Errorf("the hook was told %+v", told)
	}
}

func TestANilHookPanics(t *testing.T) {
	wantPanic(t, "nil SendHook", func() { runnel.New("contract", &runnel.Options{SendHooks: []runnel.SendHook{nil}}) })
}

// nowhere takes what an app sends and costs nothing for each record.
type nowhere struct {
	appview.Sender
	out []store.Appended
}

func (n *nowhere) EnsureMeta(_ context.Context, _ string, m store.Meta) (store.Meta, error) {
	return m, nil
}

func (n *nowhere) Append(context.Context, []store.Append) []store.Appended { return n.out }

// fixed is a codec without pools, whose allocations the race detector would vary.
type fixed struct{}

func (fixed) Name() string               { return "fixed" }
func (fixed) Encode(any) ([]byte, error) { return []byte("x"), nil }
func (fixed) Decode([]byte, any) error   { return nil }

// Without hooks a call of Send allocates what it did before there were any.
func TestSendWithoutHooksAllocatesNothingForThem(t *testing.T) {
	s := runnel.NewStream(runnel.New("cost", nil), "items", keyOfItem, &runnel.StreamOptions{Partitions: 1, Codec: fixed{}})
	appview.Of(s.App()).Intercept(&nowhere{out: []store.Appended{{IDs: []string{"1-0", "2-0"}}}})
	out := []runnel.Outgoing[item]{{Record: item{1}}, {Record: item{2}}}
	send := func() {
		if _, err := s.SendEvents(t.Context(), out...); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, send); n > 10 {
		t.Errorf("%v allocations for a call of two records, want 10 at most", n)
	}
}
