package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

const (
	maxViewers   = 64
	lookPatience = 10 * time.Second
)

var errViewers = errors.New("too many pages watch this dashboard")

// A hub has one of those who watch look at the app, and all of them see it. Its methods
// may be called concurrently.
type hub struct {
	every time.Duration
	look  func(context.Context) (*inspect.Sample, error)

	turn chan struct{} // held by who looks

	mu      sync.Mutex
	viewers int
	looked  time.Time     // when the last look began
	seen    time.Time     // when the last one that succeeded did
	took    time.Duration // the last look
	frame   *frame        // the last, nil before the first
	next    chan struct{} // closed when there is another one
	past    past
}

func newHub(every time.Duration, look func(context.Context) (*inspect.Sample, error)) *hub {
	return &hub{every: every, look: look, turn: make(chan struct{}, 1), next: make(chan struct{})}
}

// join takes part until the returned function is called, which it must be.
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

// current is the last frame, if it is not an old one, and what is closed when there is
// another.
func (h *hub) current() (*frame, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frame != nil && time.Since(h.frame.seen) > 2*h.pause() {
		return nil, h.next
	}
	return h.frame, h.next
}

// memory is what was seen lately.
func (h *hub) memory() memory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.past.memory()
}

// pause is the time from look to look, at least: where a look takes long, half of the
// time is for others.
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
		timer := time.NewTimer(h.wait())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
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

// wait is the time until the next look.
func (h *hub) wait() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pause() - time.Since(h.looked)
}

// begin begins a look, which counts also where it is cut off: who comes and goes does not
// have the app looked at more often.
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
		if gap { // nobody watched, or Redis was away: a mean over that time is not the rate of now
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
