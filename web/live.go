package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
)

const (
	beatEvery     = 15 * time.Second // heartbeats of a silent stream
	writePatience = 10 * time.Second
)

// look looks at the app; the hub calls it, one call at a time.
func (d *dashboard) look(ctx context.Context) (*inspect.Sample, error) {
	if d.watch == nil {
		c, err := d.reg.Client()
		if err != nil {
			return nil, err
		}
		d.watch = inspect.NewWatch(c, "", false, d.opts.CountAtMost)
	}
	sample, err := d.watch.Look(ctx)
	if err != nil {
		return nil, err
	}
	if c, err := d.reg.Client(); err == nil {
		_ = extension.Recognize(ctx, d.own, c, sample.App) // an extension that fails takes nothing else with it
	}
	return sample, nil
}

// A greeting is the first event for a page.
type greeting struct {
	App     string `json:"app"`
	Every   int64  `json:"every"` // ms
	Actions bool   `json:"actions"`
	Now     int64  `json:"now"` // ms, by the clock of this process
	Memory  memory `json:"memory"`
}

// live sends the looks as server-sent events: hello once, then a sample, or trouble, at each look.
// With processor=STREAM/PROCESSOR the samples have the partitions of that processor.
func (d *dashboard) live(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	leave, err := d.hub.join()
	if err != nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	defer leave()
	s := &sender{w: w, rc: http.NewResponseController(w)}
	defer s.extend() // for the last write
	if err := errors.Join(s.rc.SetReadDeadline(time.Time{}), s.extend()); err != nil {
		refuse(w, http.StatusInternalServerError, errors.New("what serves the dashboard cannot keep a response open"))
		return
	}
	ended := d.ends.of(r)
	ctx, cancel := context.WithCancel(r.Context())
	var looking sync.WaitGroup
	looking.Go(func() { d.hub.lead(ctx) })
	defer looking.Wait()
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not buffer until the end
	hello, err := json.Marshal(greeting{d.app, d.opts.Every.Milliseconds(), d.opts.AllowActions, time.Now().UnixMilli(), d.hub.memory()})
	if err != nil || s.event("hello", hello) != nil {
		return
	}
	d.follow(ctx, s, r.URL.Query().Get("processor"), ended)
}

// follow sends frames until the request or the server ends, or a write fails.
func (d *dashboard) follow(ctx context.Context, s *sender, watched string, ended <-chan struct{}) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	var sent *frame
	for {
		f, next := d.hub.current()
		if f != nil && f != sent {
			sent = f
			name := "sample"
			if f.err != "" {
				name = "trouble"
			}
			text, err := f.encoded(watched)
			if err != nil || s.event(name, text) != nil {
				return
			}
		}
		select {
		case <-next:
		case <-beat.C:
			if s.send(": still here\n\n") != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-ended:
			return
		}
	}
}

type sender struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// extend sets the deadline of the next write, whatever the server's own limit.
func (s *sender) extend() error { return s.rc.SetWriteDeadline(time.Now().Add(writePatience)) }

func (s *sender) event(name string, data []byte) error {
	return s.send("event: " + name + "\ndata: " + string(data) + "\n\n")
}

func (s *sender) send(text string) error {
	if err := s.extend(); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	if err := s.rc.Flush(); err != nil {
		return err
	}
	return s.rc.SetWriteDeadline(time.Time{}) // HTTP/2 ends even an idle stream at its deadline
}

// ends has a channel per server, closed at its shutdown, as a shutdown by itself ends no request.
type ends struct {
	mu      sync.Mutex
	servers map[weak.Pointer[http.Server]]chan struct{} // weak: closed servers are forgotten
}

// of returns a channel that is closed when the server of a request shuts down; nil if unknown.
func (e *ends) of(r *http.Request) <-chan struct{} {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := weak.Make(server)
	if ended, is := e.servers[key]; is {
		return ended
	}
	ended := make(chan struct{})
	server.RegisterOnShutdown(sync.OnceFunc(func() { close(ended) }))
	if e.servers == nil {
		e.servers = map[weak.Pointer[http.Server]]chan struct{}{}
	}
	e.servers[key] = ended
	runtime.AddCleanup(server, e.forget, key)
	return ended
}

func (e *ends) forget(server weak.Pointer[http.Server]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.servers, server)
}
