package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/webhook"
)

// A rig is a cluster in fake time whose apps have one bus, and receivers by host.
type rig struct {
	*testing.T
	c    *runneltest.Cluster
	bus  *webhook.Bus // outside of the workers
	opts webhook.Options

	mu       sync.Mutex
	requests []*request
	answers  map[string]func(r *request) int // by host; nil: 204
	told     strings.Builder
}

// A request is one that a receiver has had.
type request struct {
	at      time.Time
	host    string
	id      string
	attempt int
	epoch   int64
	status  int
	body    string
	events  []got
	ctx     context.Context
}

// got is an event as a receiver has it.
type got struct {
	Topic, Type, URL string
	T                int64
}

// RoundTrip is the transport of all workers: it hands a request to its receiver.
func (r *rig) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	one := &request{at: time.Now(), host: q.URL.Host, id: q.Header.Get("Runnel-Batch"), body: string(body), status: http.StatusNoContent, ctx: q.Context()}
	one.attempt, _ = strconv.Atoi(q.Header.Get("Runnel-Attempt"))
	one.epoch, _ = strconv.ParseInt(q.Header.Get("Runnel-Epoch"), 10, 64)
	if err := json.Unmarshal(body, &one.events); err != nil {
		r.Errorf("%s got %s: %v", one.host, body, err)
	}
	r.mu.Lock()
	answer := r.answers[one.host]
	r.mu.Unlock()
	if answer != nil {
		one.status = answer(one)
	}
	r.mu.Lock()
	r.requests = append(r.requests, one)
	r.mu.Unlock()
	if one.status == 0 {
		<-q.Context().Done()
		return nil, q.Context().Err()
	}
	return &http.Response{StatusCode: one.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

// Write notes a log line.
func (r *rig) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told.Write(line)
}

// inRig runs fn with a rig.
func inRig(t *testing.T, opts *webhook.Options, fn func(r *rig)) {
	t.Helper()
	r := &rig{T: t, answers: map[string]func(*request) int{}}
	if opts != nil {
		r.opts = *opts
	}
	r.opts.Transport = r
	if r.opts.Partitions == 0 {
		r.opts.Partitions = 4
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		if os.Getenv("RUNNEL_SIM_LOG") == "" {
			o.Logger = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}
		app := runnel.New("shop", o)
		webhook.New(app, "bus", &r.opts)
		return app
	}, func(c *runneltest.Cluster) {
		r.c = c
		app := runnel.New("shop", c.Options("outside"))
		defer app.Close()
		r.bus = webhook.New(app, "bus", &r.opts)
		fn(r)
	})
}

// start starts a worker and waits until it has what it should.
func (r *rig) start(name string) *runneltest.Worker {
	w := r.c.Start(name)
	r.c.Wait(func() bool { return w.App().Ready() == nil })
	return w
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// answer sets how a host answers: with a status, 0 for none.
func (r *rig) answer(host string, how func(*request) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[host] = how
}

// subscribe subscribes a client, whose receiver has the host of its name.
func (r *rig) subscribe(client string, most int, timeout time.Duration, topics ...string) {
	r.Helper()
	r.must(r.bus.Subscribe(r.c.Context(), webhook.Subscription{Client: client, Callback: "https://" + client + ".example/hook", Topics: topics, Max: most, Timeout: timeout}))
}

// publish publishes events with the URLs https://x/<topic>/first and so on.
func (r *rig) publish(topic string, first, n int) {
	r.Helper()
	var events []webhook.Event
	for i := range n {
		events = append(events, webhook.Event{Topic: topic, Type: webhook.Update, URL: fmt.Sprintf("https://x/%s/%d", topic, first+i)})
	}
	_, err := r.bus.Publish(r.c.Context(), "shop", events...)
	r.must(err)
}

// of returns the requests that a host has had.
func (r *rig) of(client string) (all []*request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.requests {
		if one.host == client+".example" {
			all = append(all, one)
		}
	}
	return all
}

// had returns the URLs that a host has answered with success, by topic in order.
func (r *rig) had(client, topic string) (urls []string) {
	for _, one := range r.of(client) {
		for _, e := range one.events {
			if one.status/100 == 2 && e.Topic == topic {
				urls = append(urls, strings.TrimPrefix(e.URL, "https://x/"+topic+"/"))
			}
		}
	}
	return urls
}

// sizes returns the sizes of the batches that a host has had.
func (r *rig) sizes(client string) (n []int) {
	for _, one := range r.of(client) {
		n = append(n, len(one.events))
	}
	return n
}
