package worker

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/runnel-go/runnel/internal/entryid"
)

// An EventError is an error that a processor halts with, and the event that it is about.
type EventError struct {
	Stream    string
	Processor string
	Partition int
	ID        string // entry ID
	Err       error
}

// Error names the event once, as "event partition/ID".
func (e *EventError) Error() string {
	name, text := "event "+entryid.EventID(e.Partition, e.ID), e.Err.Error()
	if strings.Contains(text, name+" ") { // an event that cannot be decoded names itself
		return text
	}
	return name + ": " + text
}

// Unwrap returns the error of the event.
func (e *EventError) Unwrap() error { return e.Err }

// halted stores why the worker halts, and at which event, for operators who look later: the process ends,
// and its log may be gone. It gives up after lastWords.
func (s *redisStore) halted(err error) {
	p := s.t
	why := s.failure("", cmp.Or(errors.Unwrap(err), err)) // where it was is known
	if at := (*EventError)(nil); errors.As(err, &at) {
		if at.Stream != p.keys.Stream || at.Partition != p.keys.Number {
			return
		}
		why = s.failure(at.ID, at.Err)
	} else {
		why.Epoch = p.epoch
	}
	if !p.leaseValid() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), lastWords)
	defer cancel()
	if err := s.i.w.client.Halted(ctx, p.keys, p.claim, why); err != nil {
		p.log.Warn("cause of the halt not stored", "err", err)
	}
}
