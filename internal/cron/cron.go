// Package cron tells the times of crontab lines, also where clocks change. The parser is that of robfig/cron;
// the rules for clocks are those of Debian's cron, widened to changes of any length:
//
//   - A line with a fixed hour ("30 2 * * *") counts by what clocks show: a time that is left out comes
//     at the end of the gap, several that fall together there are one, and of a time that is shown twice the first
//     counts. So it comes once a day, whatever the clock does.
//   - A line with a free hour ("*", "*/2") counts by the time that passes: it comes at each moment at which clocks
//     show a time of it, as often as they show it.
package cron

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// A Schedule has the times of a line.
type Schedule struct {
	every cron.Schedule      // of "@every"; else nil
	shown *cron.SpecSchedule // what clocks show at its times, as times of UTC
	zone  *time.Location     // of the line itself; nil: whichever Next is asked in
	free  bool               // its hour
}

// Parse parses a line of five fields (minute, hour, day of month, month, day of week), "@daily" and the like, or
// "@every 90s"; "CRON_TZ=Europe/Berlin " before it is its zone. A line that matches no time from now on is an error.
func Parse(line string) (s *Schedule, err error) {
	defer func() {
		if recover() != nil { // the library panics at some lines
			s, err = nil, fmt.Errorf("malformed times %q", line)
		}
	}()
	parsed, err := cron.ParseStandard(line)
	if err != nil {
		return nil, err
	}
	s = &Schedule{every: parsed}
	if fields, ok := parsed.(*cron.SpecSchedule); ok {
		words := strings.Fields(line) // there may be a zone before them
		free := slices.Contains(words, "@hourly") || len(words) > 4 && strings.ContainsAny(words[len(words)-4][:1], "*?")
		s = &Schedule{shown: fields, free: free}
		if fields.Location != time.Local {
			s.zone = fields.Location
		}
		fields.Location = time.UTC
	}
	if s.Next(time.Now().UTC()).IsZero() {
		return nil, fmt.Errorf("the times %q never come", line)
	}
	return s, nil
}

// Next returns the first time behind another one, in its zone or that of the line; the zero time if there is none
// within five years.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.every != nil {
		return s.every.Next(after)
	}
	from := after.Round(0).In(cmp.Or(s.zone, after.Location()))
	behind := asUTC(from)
	if begins, _ := from.ZoneBounds(); !s.free {
		behind = later(behind, asUTC(begins.Add(-1))) // what clocks have shown before they were set back does not count again
	}
	for shown := s.shown.Next(behind); !shown.IsZero(); {
		// From here to the next change of clocks, what they show and the time run alike.
		_, end := from.ZoneBounds()
		if !end.IsZero() && !end.After(from) { // on the last day of leap years ZoneBounds says that they are over
			end = from.Add(24 * time.Hour)
		}
		if at := from.Add(shown.Sub(asUTC(from))); end.IsZero() || at.Before(end) {
			return later(at, from) // it is before from if the change has left it out
		}
		if from = end; s.free {
			shown = s.shown.Next(asUTC(end).Add(-1))
		}
	}
	return time.Time{}
}

// asUTC returns what clocks show at a time, as a time of UTC.
func asUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
