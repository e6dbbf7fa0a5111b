package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const secret = "a token for actions"

type order struct {
	Customer string `json:"customer"`
	Note     string `json:"note,omitempty"`
}

// A shop is an app with a processor orders/printer that no worker runs, its Redis, and its
// dashboard.
type shop struct {
	t      *testing.T
	redis  *redistest.Server
	count  *redistest.Counter // of the dashboard's requests
	app    *runnel.App
	orders *runnel.Stream[order]
	c      *store.Client // of the test
	server *httptest.Server
}

func newShop(t *testing.T, partitions int, opts *Options) *shop {
	t.Helper()
	s := &shop{t: t, redis: redistest.Start(t, "--requirepass", "sesame"), count: redistest.CountingDialer(nil)}
	shared := redis.NewClient(&redis.Options{Addr: s.redis.Addr(), Password: "sesame", Dialer: s.count.Dial})
	t.Cleanup(func() { shared.Close() })
	s.app = runnel.New("shop", &runnel.Options{Redis: shared})
	t.Cleanup(func() { s.app.Close() })
	s.orders = runnel.NewStream(s.app, "orders", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: partitions, KeyField: "customer"})
	var err error
	s.c, err = store.Open(redisconn.Options{URL: s.redis.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	s.must(err)
	t.Cleanup(func() { s.c.Close() })
	streams, err := appview.Of(s.app).Streams()
	s.must(err)
	meta := streams[0].Meta
	meta.Processors = []string{"printer"}
	_, err = s.c.EnsureMeta(t.Context(), "orders", meta)
	s.must(err)
	s.server = httptest.NewServer(Handler(s.app, opts))
	t.Cleanup(s.server.Close)
	return s
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// request sends a request to the dashboard, with headers in pairs.
func (s *shop) request(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body))
	s.must(err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	s.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	s.must(err)
	return resp, string(text)
}

func get[T any](s *shop, path string) (v T) {
	s.t.Helper()
	resp, text := s.request(http.MethodGet, path, "")
	if err := json.Unmarshal([]byte(text), &v); err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d %s: %v", path, resp.StatusCode, text, err)
	}
	return v
}

func (s *shop) act(name, body string) (int, outcome) {
	s.t.Helper()
	resp, text := s.request(http.MethodPost, "/api/actions/"+name, body, "Content-Type", "application/json", actionHeader, "1", "Authorization", "Bearer "+secret)
	var out outcome
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.t.Fatalf("%s: %d %s", name, resp.StatusCode, text)
	}
	return resp.StatusCode, out
}

// did requests an action, and expects a code, and a text in the result or the error.
func (s *shop) did(name, body string, code int, text string) {
	s.t.Helper()
	got, out := s.act(name, body)
	said := out.Result
	if code != http.StatusOK {
		said = out.Error
	}
	if got != code || !strings.Contains(said, text) || code == http.StatusOK && out.Error+out.Audit != "" {
		s.t.Errorf("%s: %d %+v, want %d %s", name, got, out, code, text)
	}
}

type watching struct {
	t     *testing.T
	lines *bufio.Scanner
	end   func()
}

func (s *shop) watch(query string) *watching {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/api/live"+query, nil)
	s.must(err)
	resp, err := http.DefaultClient.Do(r)
	s.must(err)
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		s.t.Fatalf("%d %s", resp.StatusCode, got)
	}
	w := &watching{s.t, bufio.NewScanner(resp.Body), func() {
		cancel()
		resp.Body.Close()
	}}
	w.lines.Buffer(nil, 8<<20)
	s.t.Cleanup(w.end)
	return w
}

// next returns the next event, "" at the end.
func (w *watching) next() (name string, data []byte) {
	w.t.Helper()
	for w.lines.Scan() {
		line := w.lines.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data = []byte(strings.TrimPrefix(line, "data: "))
		case line == "" && name != "":
			return name, data
		}
	}
	return "", nil
}

// await reads on until is accepts an event of this name.
func await[T any](w *watching, name string, is func(v T) bool) (v T) {
	w.t.Helper()
	for {
		got, data := w.next()
		if got == "" {
			w.t.Fatalf("the stream ended before the %s: %v", name, w.lines.Err())
		}
		if got != name {
			continue
		}
		v = *new(T)
		if err := json.Unmarshal(data, &v); err != nil {
			w.t.Fatalf("%s: %v", data, err)
		}
		if is(v) {
			return v
		}
	}
}

func anything[T any](T) bool { return true }

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	redistest.Eventually(t, what, is)
}

// An owner owns a partition of orders/printer, and can make dead letters of its events.
type owner struct {
	s       *shop
	place   store.Partition
	tenure  store.Claim
	entries []redisconn.Entry
}

// own sends orders to the only partition, and takes it over.
func (s *shop) own(customers ...string) *owner {
	s.t.Helper()
	ctx := s.t.Context()
	for i, name := range customers {
		s.must(s.orders.Send(ctx, order{Customer: name, Note: fmt.Sprint("note ", i)}))
	}
	o := &owner{s: s, place: s.c.Partition("orders", "printer", 0), tenure: store.Claim{Executor: "aaaaaaaaaaaaaaaa", Number: 1}}
	s.must(s.c.Lock(ctx, o.place, o.tenure, time.Hour, 0))
	_, err := s.c.Takeover(ctx, o.place, o.tenure, "", 0)
	s.must(err)
	r := s.c.NewReader()
	defer r.Close()
	got, err := r.Read(ctx, store.GroupName("printer", o.tenure.Executor), "c", []string{o.place.Log}, len(customers), 0)
	s.must(err)
	if len(got) > 0 {
		o.entries = got[0].Entries
	}
	return o
}

func (o *owner) bury(i int, key, text string) {
	o.s.t.Helper()
	o.s.must(o.s.c.DeadLetter(o.s.t.Context(), o.place, o.tenure, store.DeadLetter{
		Entry: o.entries[i], Key: key, Attempts: 3, First: time.Now(), Last: time.Now(), Error: text, Reason: "failed", Epoch: 7,
	}))
}

func (o *owner) park(i int, key string) {
	o.s.t.Helper()
	state := store.RetryState{Lane: "k" + key, Key: key, Attempts: 2, Last: time.Now().UnixMilli(), Error: "no ink", At: time.Now().Add(time.Hour).UnixMilli()}
	o.s.must(o.s.c.Park(o.s.t.Context(), o.place, o.tenure, 0, []store.Parking{{Entry: o.entries[i], State: state}}))
}
