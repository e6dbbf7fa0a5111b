package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/webhook"
)

// Hooks are receivers, each at the path of its name, that note what they take.
type hooks struct {
	*testing.T
	url string

	mu   sync.Mutex
	down map[string]bool
	ids  map[string]string   // by batch: its body
	took map[string][][]item // by receiver: batches
}

func newHooks(t *testing.T) *hooks {
	t.Helper()
	h := &hooks{T: t, down: map[string]bool{}, ids: map[string]string{}, took: map[string][][]item{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// at returns the callback of a receiver.
func (h *hooks) at(name string) string { return h.url + "/" + name }

// fail lets a receiver fail from now on, or not any more.
func (h *hooks) fail(name string, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down[name] = down
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, id := strings.Trim(r.URL.Path, "/"), r.Header.Get("Runnel-Batch")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender went away
	}
	items, err := itemsOf(body)
	if err != nil || len(items) == 0 || id == "" {
		h.Errorf("%s got %s: %v", name, body, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down[name] {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if was, again := h.ids[id]; !again {
		h.ids[id], h.took[name] = string(body), append(h.took[name], items)
	} else if was != string(body) {
		h.Errorf("%s: batch %s came with other events:\n\t%s\n\t%s", name, id, was, body)
	}
	w.WriteHeader(http.StatusNoContent)
}

// batches returns what a receiver has taken.
func (h *hooks) batches(name string) [][]item {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.took[name])
}

// numbers returns which events of a topic a receiver has taken, as they came.
func (h *hooks) numbers(name, topic string) (all []int64) {
	for _, batch := range h.batches(name) {
		for _, one := range batch {
			if one.topic == topic {
				all = append(all, one.n)
			}
		}
	}
	return all
}

// exactly waits until a receiver has taken so many events of a topic, and wants all of them in order, once each.
func (h *hooks) exactly(name, topic string, n int64) {
	h.Helper()
	redistest.Eventually(h, name+" has its events", func() bool { return int64(len(h.numbers(name, topic))) >= n }, func() string {
		return strconv.Itoa(len(h.numbers(name, topic))) + " of " + strconv.FormatInt(n, 10)
	})
	got := h.numbers(name, topic)
	for i, one := range got {
		if one != int64(i+1) {
			h.Fatalf("%s: event %d of %s is %d", name, i+1, topic, one)
		}
	}
	if int64(len(got)) != n {
		h.Errorf("%s has %d events of %s, want %d", name, len(got), topic, n)
	}
}

// A marked transport says in each request which worker makes it.
type marked struct {
	http.RoundTripper
	worker string
}

func (m marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Worker", m.worker)
	return m.RoundTripper.RoundTrip(r)
}

// Marks tell requests of workers apart.
type marks struct {
	mu    sync.Mutex
	count map[string]int             // requests, by worker
	had   map[string]map[string]bool // by callback: workers
	n     int                        // of apps so far
	http  *http.Transport
}

func newMarks(t *testing.T) *marks {
	m := &marks{count: map[string]int{}, had: map[string]map[string]bool{}, http: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(m.http.CloseIdleConnections)
	return m
}

// mark gives the next app its transport.
func (m *marks) mark(o *webhook.Options) {
	o.Transport = marked{m.http, strconv.Itoa(m.n)}
	m.n++
}

func (m *marks) note(r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	worker, path := r.Header.Get("Worker"), r.URL.Path
	m.count[worker]++
	if m.had[path] == nil {
		m.had[path] = map[string]bool{}
	}
	m.had[path][worker] = true
}

// of returns how many requests a worker has made, the first one is 1.
func (m *marks) of(worker int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count[strconv.Itoa(worker)]
}

// moved returns how many subscribers have had requests of several workers.
func (m *marks) moved() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, workers := range m.had {
		if len(workers) > 1 {
			n++
		}
	}
	return n
}
