package jobs

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/cron"
)

const (
	defaultCatchUp = 1000
	defaultLate    = time.Minute // of CatchUpNone

	// countedAtMost bounds how many times of a line are counted that are left out.
	countedAtMost = 100_000
)

// Times are the logical times of a trigger.
type Times struct {
	trigger *Trigger
	line    *cron.Schedule // nil: Every
	zone    *time.Location
}

// TimesOf returns the times of a trigger that Check has no fault with.
func TimesOf(t *Trigger) (*Times, error) {
	s := &Times{trigger: t}
	if t.Every != 0 {
		return s, nil
	}
	var err error
	if s.zone, err = zoneOf(t.TimeZone); err != nil {
		return nil, err
	}
	s.line, err = cron.Parse(t.Cron)
	return s, err
}

func zoneOf(name string) (*time.Location, error) {
	switch name {
	case "":
		return time.UTC, nil
	case "Local":
		return nil, fmt.Errorf("%q differs between machines", name)
	}
	return time.LoadLocation(name)
}

// Next returns the first logical time behind another one; the zero time if there is none.
func (s *Times) Next(after time.Time) time.Time {
	t := s.trigger
	if after.Before(t.Start) {
		after = t.Start.Add(-1)
	}
	var next time.Time
	if s.line == nil {
		next = t.Start.Add(time.Duration(s.index(after)) * time.Duration(t.Every))
	} else if next = s.line.Next(after.In(s.zone)); next.IsZero() {
		return next
	}
	if !t.End.IsZero() && !next.Before(t.End) {
		return time.Time{}
	}
	return next.UTC()
}

// FiresAt returns when a logical time fires.
func (s *Times) FiresAt(logical time.Time) time.Time {
	return logical.Add(time.Duration(s.trigger.Offset))
}

// A Plan is what becomes of the logical times that are due.
type Plan struct {
	Times   []time.Time // to fire, in this order
	Missed  bool        // they are caught up, beside what comes on schedule
	Omitted int64       // times that are left out
	More    bool        // and there are others: of a line so many are counted at most
	Newest  time.Time   // of all that are due: the trigger goes on behind it
}

// Plan returns what becomes of the times behind last that are due at now. A single one is on schedule. Several are
// missed, and caught up as the trigger says. Without a due time the plan is empty.
func (s *Times) Plan(last, now time.Time) Plan {
	t := s.trigger
	until := now.Add(-time.Duration(t.Offset))
	newest, _, _ := s.latest(last, until, 1)
	if len(newest) == 0 {
		return Plan{}
	}
	p := Plan{Newest: newest[0]}
	late, from := time.Duration(t.Late), last
	if t.CatchUp == CatchUpNone {
		late = cmp.Or(late, defaultLate)
	}
	if stale := until.Add(-late - 1); late != 0 && stale.After(last) {
		_, p.Omitted, p.More = s.latest(last, stale, 0)
		from = stale
	}
	times, before, more := s.latest(from, until, cmp.Or(t.MaxCatchUp, defaultCatchUp))
	p.Times, p.Omitted, p.More = times, p.Omitted+before, p.More || more
	p.Missed = t.CatchUp != CatchUpNone && int64(len(times))+p.Omitted > 1
	switch t.CatchUp {
	case CatchUpLatest:
		slices.Reverse(p.Times)
	case CatchUpRandom:
		slices.SortStableFunc(p.Times, func(a, b time.Time) int { return cmp.Compare(t.hash(a), t.hash(b)) })
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
// come before them; of a line these are counted up to countedAtMost, and more reports whether there are others.
func (s *Times) latest(after, until time.Time, most int) (times []time.Time, before int64, more bool) {
	if t := s.trigger; s.line == nil {
		from, to := s.index(after), s.index(until)
		before = max(0, to-from-int64(most))
		for n := from + before; n < to; n++ {
			times = append(times, t.Start.Add(time.Duration(n)*time.Duration(t.Every)).UTC())
		}
		return times, before, false
	}
	// Look back by more and more, until there are enough.
	begin := after
	for back := time.Hour; until.Add(-back).After(after); back *= 2 {
		if from := until.Add(-back); len(s.between(from, until, most+1)) > most {
			begin = from
			break
		}
	}
	times = s.between(begin, until, -1)
	times = times[max(0, len(times)-most):]
	end := until.Add(1)
	if len(times) > 0 {
		end = times[0]
	}
	for at := s.Next(after); !at.IsZero() && at.Before(end); at = s.Next(at) {
		if before == countedAtMost {
			return times, before, true
		}
		before++
	}
	return times, before, false
}

// index is how many times of an interval are up to a time.
func (s *Times) index(until time.Time) int64 {
	t := s.trigger
	if !t.End.IsZero() && !until.Before(t.End) {
		until = t.End.Add(-1)
	}
	if until.Before(t.Start) {
		return 0
	}
	return int64(until.Sub(t.Start)/time.Duration(t.Every)) + 1
}

// between returns the times behind from and up to until, the first ones if there are more than most; -1: all.
func (s *Times) between(from, until time.Time, most int) (times []time.Time) {
	for at := s.Next(from); !at.IsZero() && !at.After(until) && len(times) != most; at = s.Next(at) {
		times = append(times, at)
	}
	return times
}
