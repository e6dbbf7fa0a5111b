package worker

import (
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

// halted stores at which event the worker halts, for those who look later: the process ends, and
// its log may be gone. It takes no longer than lastWords, and what cannot be stored by then is not.
func (p *partition) halted(err error) {
	var at *EventError
	if !errors.As(err, &at) || at.Stream != p.keys.Stream || at.Partition != p.keys.Number || !p.leaseValid() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), lastWords)
	defer cancel()
	if err := p.parked.i.w.client.Halted(ctx, p.keys, p.claim, p.parked.failure(at.ID, at.Err)); err != nil {
		p.log.Warn("cause of the halt not stored", "err", err)
	}
}
