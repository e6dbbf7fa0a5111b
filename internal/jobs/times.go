package jobs

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/cron"
)

// countedAtMost bounds how many times are counted that are left out.
const countedAtMost = 100_000

const defaultCatchUp = 1000

var defaultLate = map[CatchUp]time.Duration{CatchUpNone: time.Minute}

// Times are the logical times of a trigger.
type Times struct {
	*Trigger
	next func(after time.Time) time.Time // from its start on, whatever its end
}

// TimesOf returns the times of a trigger that Check has no fault with.
func TimesOf(t *Trigger) (*Times, error) {
	if every := time.Duration(t.Every); every != 0 {
		return &Times{t, func(after time.Time) time.Time { return t.Start.Add(after.Add(every).Sub(t.Start) / every * every) }}, nil
	}
	line, err := cron.Parse("CRON_TZ=" + cmp.Or(t.TimeZone, "UTC") + " " + t.Cron)
	return &Times{t, line.Next}, err
}

// ParseTime reads a logical time as people write it: RFC 3339, or a date.
func ParseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time, such as 2026-01-31 or 2026-01-31T08:00:00Z", text)
}

// Next returns the first logical time behind another one; the zero time if there is none.
func (s *Times) Next(after time.Time) time.Time {
	if after.Before(s.Start) {
		after = s.Start.Add(-1)
	}
	next := s.next(after)
	if !s.End.IsZero() && !next.Before(s.End) {
		return time.Time{}
	}
	return next.UTC()
}

// FiresAt returns when a logical time fires.
func (s *Times) FiresAt(logical time.Time) time.Time { return logical.Add(time.Duration(s.Offset)) }

// A Plan is what becomes of the logical times that are due.
type Plan struct {
	Times   []time.Time // to fire, in this order
	Missed  bool        // they are caught up, beside what comes on schedule
	Omitted int64       // times that are left out; of those beyond MaxCatchUp at most countedAtMost are counted
	Newest  time.Time   // of all that are due: the trigger goes on behind it
}

// Plan returns what becomes of the times behind last that are due at now. A single one is on schedule. Several are
// missed, and caught up as the trigger says. Without a due time the plan is empty.
func (s *Times) Plan(last, now time.Time) Plan {
	until := now.Add(-time.Duration(s.Offset))
	due, omitted := s.latest(last, until, cmp.Or(s.MaxCatchUp, defaultCatchUp))
	if len(due) == 0 {
		return Plan{}
	}
	all := len(due) + omitted
	p := Plan{Newest: due[len(due)-1], Missed: s.CatchUp != CatchUpNone && all > 1}
	late := cmp.Or(time.Duration(s.Late), defaultLate[s.CatchUp])
	p.Times = slices.DeleteFunc(due, func(at time.Time) bool { return late != 0 && until.Sub(at) > late })
	p.Omitted = int64(all - len(p.Times))
	switch s.CatchUp {
	case CatchUpLatest:
		slices.Reverse(p.Times)
	case CatchUpRandom:
		slices.SortStableFunc(p.Times, func(a, b time.Time) int { return cmp.Compare(s.hash(a), s.hash(b)) })
	}
	return p
}

// hash is the place of a logical time in a random order.
func (t *Trigger) hash(at time.Time) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", t.Name, at.UnixMilli())
	return h.Sum64()
}

// latest returns the latest logical times behind after and up to until, at most so many, the oldest first, and how many
// are omitted before them. Where these are too many to be counted it looks back from until, by more and more, until there
// are enough: after may be years ago.
func (s *Times) latest(after, until time.Time, most int) (times []time.Time, omitted int) {
	times = s.between(after, until, most+countedAtMost)
	if omitted = max(0, len(times)-most); omitted == countedAtMost {
		times = nil
		for back := time.Second; len(times) < most; back *= 2 {
			times = s.between(until.Add(-back), until, -1)
		}
	}
	return times[max(0, len(times)-most):], omitted
}

// between returns the times behind from and up to until, the first ones if there are more than most; -1: all.
func (s *Times) between(from, until time.Time, most int) (times []time.Time) {
	for at := s.Next(from); !at.IsZero() && !at.After(until) && len(times) != most; at = s.Next(at) {
		times = append(times, at)
	}
	return times
}
