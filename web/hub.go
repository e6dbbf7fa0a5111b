package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/monotime"
)

const (
	maxViewers   = 64
	lookPatience = 10 * time.Second
)

var errViewers = errors.New("too many pages watch this dashboard")

// A hub lets one of its watchers look at the app for all of them. It is safe for concurrent use.
type hub struct {
	every time.Duration
	look  func(context.Context) (*inspect.Sample, error)

	turn chan struct{} // held by the looking watcher

	mu      sync.Mutex
	viewers int
	looked  time.Time     // when the last look began
	seen    time.Time     // when the last successful look ended
	took    time.Duration // the last look
	frame   *frame        // the last one, nil before the first
	next    chan struct{} // closed by the next frame
	past    past
}

func newHub(every time.Duration, look func(context.Context) (*inspect.Sample, error)) *hub {
	return &hub{every: every, look: look, turn: make(chan struct{}, 1), next: make(chan struct{})}
}

// join adds a watcher. The caller must call the returned function to remove it.
func (h *hub) join() (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers == maxViewers {
		return nil, errViewers
	}
	h.viewers++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.viewers--
	}, nil
}

// current returns the last frame, unless it is outdated, and a channel that the next frame closes.
func (h *hub) current() (*frame, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frame != nil && time.Since(h.frame.seen) > 2*h.pause() {
		return nil, h.next
	}
	return h.frame, h.next
}

func (h *hub) memory() memory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.past.memory()
}

// pause returns the minimal time from look to look: looks take at most half of the time.
func (h *hub) pause() time.Duration { return max(h.every, 2*h.took) }

// lead waits for the turn, and looks until ctx ends.
func (h *hub) lead(ctx context.Context) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return
	}
	for {
		if !monotime.Sleep(ctx, h.wait()) {
			return
		}
		began := h.begin()
		limited, cancel := context.WithTimeout(ctx, lookPatience)
		s, err := h.look(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		h.publish(began, s, err)
	}
}

func (h *hub) wait() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pause() - time.Since(h.looked)
}

// begin begins a look, which counts even if it is cut off: watchers that come and go cause no more
// looks.
func (h *hub) begin() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = time.Now()
	return h.looked
}

func (h *hub) publish(began time.Time, s *inspect.Sample, err error) {
	f := &frame{seen: time.Now(), sample: s}
	if err != nil {
		f.err = err.Error()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	gap := began.Sub(h.seen) > 3*h.pause()
	h.looked, h.took = began, f.seen.Sub(began)
	if err == nil {
		h.seen = began
		if gap { // no watcher, or no Redis: a mean over that time is not the current rate
			for i := range s.Rates {
				s.Rates[i] = unknown(s.Rates[i])
			}
		}
		f.moves = h.past.add(s)
	}
	h.frame = f
	close(h.next)
	h.next = make(chan struct{})
}

func unknown(r inspect.StreamRates) inspect.StreamRates {
	out := inspect.StreamRates{Stream: r.Stream}
	for _, p := range r.Processors {
		out.Processors = append(out.Processors, inspect.ProcessorRates{Processor: p.Processor, Partitions: make([]*float64, len(p.Partitions))})
	}
	return out
}
