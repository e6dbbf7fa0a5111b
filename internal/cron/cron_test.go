package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/runnel-go/runnel/internal/test/tier"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTimesWhereClocksChange(t *testing.T) {
	for _, tt := range []struct{ zone, line, from, want, what string }{
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z", "left out: at the end of the gap"},
		{"Europe/Berlin", "0,30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z", "two that fall together are one"},
		{"Europe/Berlin", "30 2,3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T01:30:00Z 2026-03-30T00:30:00Z", "one left out, one behind the gap"},
		{"Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T01:00:00Z", "right behind the gap"},
		{"Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z 2026-03-30T01:00:00Z", "one left out falls on the next"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z", "shown twice: the first"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "behind the first of two"},
		{"Europe/Berlin", "30 2,3 * * *", "2026-10-25T00:45:00Z", "2026-10-25T02:30:00Z", "between the two"},
		{"Europe/Berlin", "*/30 * * * *", "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:00:00Z 2026-10-25T01:30:00Z 2026-10-25T02:00:00Z", "a free hour: time that passes"},
		{"Europe/Berlin", "0 */2 * * *", "2026-03-28T22:00:00Z", "2026-03-28T23:00:00Z 2026-03-29T02:00:00Z", "a free hour: no 02:00 that day"},
		{"Europe/Berlin", "@hourly", "2026-10-25T00:10:00Z", "2026-10-25T01:00:00Z 2026-10-25T02:00:00Z", "hourly is free"},
		{"Europe/Berlin", "@daily", "2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z", "daily is fixed"},
		{"America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z", "shown twice"},
		{"America/New_York", "15 2 * * *", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z 2026-03-09T06:15:00Z", "left out"},
		{"Africa/Cairo", "0 0 * * *", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z 2026-04-24T21:00:00Z", "no midnight"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z", "a gap of half an hour"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00Z", "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z", "half an hour shown twice"},
		{"UTC", "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z", "leap days"},
		{"Europe/Berlin", "30 2 * * *", "2080-12-30T12:00:00Z", "2080-12-31T01:30:00Z 2081-01-01T01:30:00Z", "the last day of a leap year"},
		{"Europe/Berlin", "0 */12 * * *", "2080-12-30T12:00:00Z", "2080-12-30T23:00:00Z 2080-12-31T11:00:00Z 2080-12-31T23:00:00Z", "the last day of a leap year, and a free hour"},
		{"UTC", "CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z", "the line's own zone"},
		{"Pacific/Apia", "0 12 * * *", "2011-12-29T12:00:00Z", "2011-12-29T22:00:00Z 2011-12-30T10:00:00Z 2011-12-30T22:00:00Z", "no 30 December: noon at its end, and noon"},
	} {
		s, err := Parse(tt.line)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		at := moment(t, tt.from).In(zone(t, tt.zone))
		for range strings.Fields(tt.want) {
			at = s.Next(at)
			got = append(got, at.UTC().Format(time.RFC3339))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s %q, %s:\n%s, want\n%s", tt.zone, tt.line, tt.what, got, tt.want)
		}
	}
}

func TestBadLines(t *testing.T) {
	for _, line := range []string{"", "x", "* * * *", "61 * * * *", "0 0 31 2 *", "TZ=", "CRON_TZ=Nowhere/Land 0 0 * * *", "@never", "* * * * * *", "CRON_TZ="} {
		if s, err := Parse(line); err == nil {
			t.Errorf("%q: %+v", line, s)
		}
	}
}

// A minute of a zone, with what clocks show then.
type minute struct {
	at                       time.Time
	shown                    time.Time // as if it were UTC
	min, hour, day, mon, dow int
}

// changes returns all minutes of three days around each change of clocks within three years, in one
// run each, and some weeks without one.
func changes(z *time.Location, random *rand.Rand) (runs [][]minute) {
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	around := func(from, to time.Time) {
		var run []minute
		for at := from.Truncate(time.Minute); at.Before(to); at = at.Add(time.Minute) {
			l := at.In(z)
			run = append(run, minute{at, time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC),
				l.Minute(), l.Hour(), l.Day(), int(l.Month()), int(l.Weekday())})
		}
		runs = append(runs, run)
	}
	for at := begin.In(z); ; {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(begin.AddDate(3, 0, 0)) {
			break
		}
		around(end.Add(-36*time.Hour), end.Add(36*time.Hour))
		at = end
	}
	for range 2 {
		from := begin.Add(time.Duration(random.IntN(3*365*24)) * time.Hour)
		around(from, from.AddDate(0, 0, 7))
	}
	return runs
}

// A field of a random line, and the numbers that it has, as bits.
func field(random *rand.Rand, least, most int) (text string, has uint64, star bool) {
	switch random.IntN(4) {
	case 0:
		for n := least; n <= most; n++ {
			has |= 1 << n
		}
		return "*", has, true
	case 1:
		step := 1 + random.IntN(most)
		for n := least; n <= most; n += step {
			has |= 1 << n
		}
		return fmt.Sprint("*/", step), has, step == 1 // with a step the library's day is no star
	case 2:
		from := least + random.IntN(most-least+1)
		to := from + random.IntN(most-from+1)
		for n := from; n <= to; n++ {
			has |= 1 << n
		}
		return fmt.Sprint(from, "-", to), has, false
	}
	var list []string
	for range 1 + random.IntN(3) {
		n := least + random.IntN(most-least+1)
		has, list = has|1<<n, append(list, fmt.Sprint(n))
	}
	return strings.Join(list, ","), has, false
}

// The times of random lines are those that a look at each minute finds.
func TestTimesAgainstAScan(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Africa/Cairo",
		"Asia/Kolkata", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Chatham", "America/Havana"}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	runs := map[string][][]minute{}
	in := map[string]*time.Location{}
	for _, name := range zones {
		in[name] = zone(t, name)
		runs[name] = changes(in[name], random)
	}
	lines := 1_000
	if tier.Full() {
		lines = 10_000
	}
	for range lines {
		minText, mins, _ := field(random, 0, 59)
		hourText, hours, _ := field(random, 0, 23)
		dayText, days, anyDay := field(random, 1, 31)
		monText, mons, _ := field(random, 1, 12)
		dowText, dows, anyDow := field(random, 0, 6)
		if random.IntN(2) == 0 { // else few would come
			dayText, anyDay, monText, dowText, anyDow = "*", true, "*", "*", true
			days, mons, dows = 1<<32-1, 1<<13-1, 1<<7-1
		}
		line := strings.Join([]string{minText, hourText, dayText, monText, dowText}, " ")
		s, err := Parse(line)
		if err != nil {
			continue // it never comes
		}
		matches := func(m minute) bool {
			has := func(bits uint64, n int) bool { return bits>>n&1 == 1 }
			day := has(days, m.day) && has(dows, m.dow)
			if !anyDay && !anyDow {
				day = has(days, m.day) || has(dows, m.dow)
			}
			return has(mins, m.min) && has(hours, m.hour) && has(mons, m.mon) && day
		}
		name := zones[random.IntN(len(zones))]
		run := runs[name][random.IntN(len(runs[name]))]
		want := scan(run, matches, strings.HasPrefix(hourText, "*"))
		z := in[name]
		var got []time.Time
		for at := s.Next(run[0].at.In(z)); !at.IsZero() && !at.After(run[len(run)-1].at); at = s.Next(at) {
			got = append(got, at.UTC())
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("seed %d: %s %q from %v:\n%v\nwant\n%v", seed, name, line, run[0].at, got, want)
		}
	}
}

// scan finds the times behind the first minute of a run.
func scan(run []minute, matches func(minute) bool, free bool) (found []time.Time) {
	if free {
		for _, m := range run[1:] {
			if matches(m) {
				found = append(found, m.at)
			}
		}
		return found
	}
	latest := run[0].shown // nothing up to this is shown for the first time any more
	for _, m := range run[1:] {
		come := false
		if m.shown.After(latest) {
			come = matches(m)
			for left := latest.Add(time.Minute); left.Before(m.shown); left = left.Add(time.Minute) {
				come = come || matches(minute{min: left.Minute(), hour: left.Hour(), day: left.Day(), mon: int(left.Month()), dow: int(left.Weekday())})
			}
			latest = m.shown
		}
		if come {
			found = append(found, m.at)
		}
	}
	return found
}
