package runnel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
)

// SendAt is Send for records that become events at t, by Redis' clock: see Outgoing.At.
// It returns the IDs for Cancel and Reschedule.
func (s *Stream[T]) SendAt(ctx context.Context, t time.Time, records ...T) ([]Sent, error) {
	return s.sendLater(ctx, Outgoing[T]{At: t}, records)
}

// SendAfter is SendAt with the time d from now, by Redis' clock.
func (s *Stream[T]) SendAfter(ctx context.Context, d time.Duration, records ...T) ([]Sent, error) {
	return s.sendLater(ctx, Outgoing[T]{After: d}, records)
}

func (s *Stream[T]) sendLater(ctx context.Context, like Outgoing[T], records []T) ([]Sent, error) {
	out := make([]Outgoing[T], len(records))
	for i, r := range records {
		out[i] = like
		out[i].Record = r
	}
	return s.SendEvents(ctx, out...)
}

// Cancel removes the delayed event of a Sent.ID. It reports whether the event was still
// delayed: if not, the event has been appended to its partition, was cancelled, or never
// existed. The event's Outgoing.DedupID stays used: a record sent under it within the
// window is a duplicate. After a connection error Cancel may be called again; false then
// can mean that the first call cancelled the event.
func (s *Stream[T]) Cancel(ctx context.Context, id string) (bool, error) {
	partition, id, to, err := s.delayed(id)
	if err != nil || to == nil {
		return false, err
	}
	return to.Cancel(ctx, s.name, partition, id)
}

// Reschedule changes when a delayed event is due, by its Sent.ID. The event keeps its ID,
// and so its place among events due at the same time. Reschedule reports whether the
// event was still delayed; if not, nothing is changed. It may be repeated.
func (s *Stream[T]) Reschedule(ctx context.Context, id string, t time.Time) (bool, error) {
	partition, id, to, err := s.delayed(id)
	if err == nil {
		err = checkDue(t)
	}
	if err != nil || to == nil {
		return false, err
	}
	return to.Reschedule(ctx, s.name, partition, id, t)
}

// delayed parses an ID of Sent. to is nil for an entry's ID: that event was never
// delayed.
func (s *Stream[T]) delayed(sent string) (partition int, id string, to appview.Sender, err error) {
	o, err := s.settings()
	if err != nil {
		return 0, "", nil, err
	}
	partition, id, ok := store.ParseDelayedID(sent)
	switch {
	case ok && partition < o.Partitions:
	case !strings.Contains(sent, "/") && strings.Contains(sent, "-"):
		return 0, "", nil, nil
	default:
		return 0, "", nil, fmt.Errorf(`stream %s: %q is no ID of a delayed event, such as "3/0000000000000042"`, s.name, sent)
	}
	if to, err = s.app.sender(); err != nil {
		err = fmt.Errorf("stream %s: %w", s.name, err)
	}
	return partition, id, to, err
}

// latest is the latest time at which an event can be due: its milliseconds are exact in
// every representation.
var latest = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func checkDue(t time.Time) error {
	switch {
	case t.IsZero():
		return errors.New("an event cannot be due at the zero time")
	case t.After(latest):
		return fmt.Errorf("an event cannot be due at %v, after the year 9998", t)
	}
	return nil
}
