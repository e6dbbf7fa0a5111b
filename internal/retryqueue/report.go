package retryqueue

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
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
	r.log.WarnContext(ctx, "attempt failed", "event", r.name(f.Entry.ID), "attempt", attempts, "wait", time.Duration(wait)*time.Millisecond, "err", f.Err, "help", help.AttemptFailed)
}

func (r *report) dropped(ctx context.Context, f *Failure) {
	r.counts.Dropped.Add(1)
	r.log.WarnContext(ctx, "event dropped", "event", r.name(f.Entry.ID), "err", f.Err)
}

func (r *report) skipped(id string) {
	r.counts.Skipped.Add(1)
	r.log.Warn("event skipped", "event", r.name(id))
}

func (r *report) suspected(id string, attempts int) {
	r.log.Warn("event parked after a crash", "event", r.name(id), "attempt", attempts, "help", help.EventEndsWorkers)
}

func (r *report) dead(ctx context.Context, s *store.RetryState) {
	r.counts.Dead.Add(1)
	r.log.ErrorContext(ctx, "dead letter", "event", r.name(s.ID), "attempt", s.Counted(), "kind", s.Reason, "err", s.Error, "help", help.DeadLetters)
}

// blocked says that no new event begins; so many are parked.
func (r *report) blocked(events int) {
	r.log.Warn("partition blocked", "events", events, "err", errFull, "help", help.PartitionBlocked)
}

var errFull = errors.New("parked events have reached MaxLen: no new events until there is room")

// ErrorText returns what is kept of an error.
func ErrorText(err error) string {
	text := err.Error()
	if len(text) > errorLength {
		text = text[:errorLength] + " …"
	}
	return strings.ToValidUTF8(text, "")
}
