package runneltest

import (
	"io"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/store"
)

// shelf keeps the parked events of a source, in place of Redis. It stores nothing for a lost
// ownership.
type shelf struct {
	s       *source
	entries map[string]redisconn.Entry // by ID
}

var _ retryqueue.Store = (*shelf)(nil)

// Now begins at no particular time.
func (h *shelf) Now() int64 { return h.s.now().Milliseconds() }

func (h *shelf) Load() ([]store.RetryState, error) { return nil, nil }

func (h *shelf) Payload(id string) (redisconn.Entry, bool, error) {
	e, ok := h.entries[id]
	return e, ok, h.over()
}

func (h *shelf) Park(ps []store.Parking) error {
	if err := h.over(); err != nil {
		return err
	}
	for _, p := range ps {
		h.s.buffer.Moved([]string{p.Entry.ID})
		h.entries[p.Entry.ID] = p.Entry
	}
	return nil
}

func (h *shelf) Begin(s store.RetryState) (redisconn.Entry, bool, error) { return h.Payload(s.ID) }

func (h *shelf) Write(store.RetryState) (bool, error) {
	err := h.over()
	return err == nil, err
}

func (h *shelf) Done(id string, _ *store.RetryState) error {
	if err := h.over(); err != nil {
		return err
	}
	delete(h.entries, id)
	h.s.result.Acked = append(h.s.result.Acked, id)
	return nil
}

func (h *shelf) DeadLetter(d store.DeadLetter) error {
	if err := h.over(); err != nil {
		return err
	}
	h.s.buffer.Moved([]string{d.Entry.ID})
	delete(h.entries, d.Entry.ID)
	h.s.result.Dead = append(h.s.result.Dead, DeadLetter{
		ID: d.Entry.ID, Key: d.Key, Attempts: d.Attempts, Reason: d.Reason, Error: d.Error,
		Took: d.Last.Sub(d.First).Round(time.Millisecond),
	})
	return nil
}

// over is the error of a lost ownership.
func (h *shelf) over() error {
	if !h.s.Holds() {
		return io.EOF
	}
	return nil
}

// parked returns the IDs of the parked events, in the order of the script.
func (h *shelf) parked() []string {
	var ids []string
	for _, a := range h.s.script {
		if _, ok := h.entries[a.entry.ID]; ok {
			ids = append(ids, a.entry.ID)
		}
	}
	return ids
}
