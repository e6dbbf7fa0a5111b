package runneltest

import (
	"io"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/store"
)

// shelf keeps the parked events of a source, instead of Redis.
type shelf struct {
	s       *source
	states  map[string]store.RetryState // guarded by s.mu, as all of it
	entries map[string]redisconn.Entry
	dead    []DeadLetter
}

var _ retryqueue.Store = (*shelf)(nil)

func newShelf(s *source) *shelf {
	return &shelf{s: s, states: map[string]store.RetryState{}, entries: map[string]redisconn.Entry{}}
}

// Now begins at no particular time.
func (h *shelf) Now() int64 {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return h.s.now().Milliseconds()
}

func (h *shelf) Load() ([]store.RetryState, error) { return nil, nil }

func (h *shelf) Payload(id string) (redisconn.Entry, bool, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	e, ok := h.entries[id]
	return e, ok, h.over()
}

func (h *shelf) Park(ps []store.Parking) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if err := h.over(); err != nil {
		return err
	}
	for _, p := range ps {
		h.s.close(p.Entry.ID)
		h.states[p.Entry.ID], h.entries[p.Entry.ID] = p.State, p.Entry
	}
	return nil
}

func (h *shelf) Begin(s store.RetryState) (redisconn.Entry, bool, error) {
	ok, err := h.Write(s)
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return h.entries[s.ID], ok, err
}

func (h *shelf) Write(s store.RetryState) (bool, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if err := h.over(); err != nil {
		return false, err
	}
	h.states[s.ID] = s
	return true, nil
}

func (h *shelf) Done(id string) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if err := h.over(); err != nil {
		return err
	}
	h.remove(id)
	h.s.acked = append(h.s.acked, id)
	return nil
}

func (h *shelf) DeadLetter(d store.DeadLetter) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if err := h.over(); err != nil {
		return err
	}
	h.s.close(d.Entry.ID)
	h.remove(d.Entry.ID)
	h.dead = append(h.dead, DeadLetter{
		ID: d.Entry.ID, Key: d.Key, Attempts: d.Attempts, Reason: d.Reason, Error: d.Error,
		Took: d.Last.Sub(d.First).Round(time.Millisecond),
	})
	return nil
}

func (h *shelf) remove(id string) {
	delete(h.states, id)
	delete(h.entries, id)
}

// over is the error of a lost ownership.
func (h *shelf) over() error {
	if h.s.gone {
		return io.EOF
	}
	return nil
}

func (h *shelf) parked() []string {
	var ids []string
	for _, id := range h.s.order {
		if _, ok := h.states[id]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}
