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

// errorLength is the longest stored text of an error, in bytes.
const errorLength = 2000

// A report counts and logs the outcomes of events.
type report struct {
	log       *slog.Logger
	counts    *Counts
	partition int
}

// name returns the name of an event in the log.
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

// blocked reports that no new event begins, since so many are parked.
func (r *report) blocked(events int) {
	r.log.Warn("partition blocked", "events", events, "err", errFull, "help", help.PartitionBlocked)
}

var errFull = errors.New("parked events have reached MaxLen: no new events until there is room")

// ErrorText returns the stored text of an error.
func ErrorText(err error) string {
	text := err.Error()
	if len(text) > errorLength {
		text = text[:errorLength] + " …"
	}
	return strings.ToValidUTF8(text, "")
}
