package retryqueue

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

// errorLength is how much is kept of an error's text, in bytes.
const errorLength = 2000

// A report tells operators what becomes of events: it counts and logs.
type report struct {
	log       *slog.Logger
	counts    *Counts
	partition int
}

// name is what an event is called in the log.
func (r *report) name(id string) string { return entryid.EventID(r.partition, id) }

func (r *report) postponed(ctx context.Context, f *Failure, attempts int, wait int64) {
	r.counts.Retried.Add(1)
	r.log.WarnContext(ctx, "attempt failed, another one follows", "event", r.name(f.Entry.ID), "attempt", attempts, "after", time.Duration(wait)*time.Millisecond, "err", f.Err)
}

func (r *report) dropped(ctx context.Context, f *Failure) {
	r.counts.Dropped.Add(1)
	r.log.WarnContext(ctx, "event dropped: the function said so", "event", r.name(f.Entry.ID), "err", f.Err)
}

func (r *report) skipped(id string) {
	r.counts.Skipped.Add(1)
	r.log.Warn("event skipped: an operator said so", "event", r.name(id))
}

func (r *report) suspected(id string, attempts int) {
	r.log.Warn("event parked: its worker died or lost the partition while it was processed, or before its ack was sent; it runs alone next", "event", r.name(id), "attempt", attempts)
}

func (r *report) dead(ctx context.Context, s *store.RetryState) {
	r.counts.Dead.Add(1)
	r.log.ErrorContext(ctx, "event is a dead letter now", "event", r.name(s.ID), "attempt", s.Counted(), "kind", s.Reason, "err", s.Error)
}

// blocked says that no new event begins; so many are parked.
func (r *report) blocked(events int) {
	r.log.Warn("partition blocked", "events", events, "err", errFull)
}

var errFull = errors.New("as many events are parked as the partition may be long: it takes no new ones until there is room")

// ErrorText returns what is kept of an error.
func ErrorText(err error) string {
	text := err.Error()
	if len(text) > errorLength {
		text = text[:errorLength] + " …"
	}
	return strings.ToValidUTF8(text, "")
}
