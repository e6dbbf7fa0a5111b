package schedulers

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
)

// timeHelp is how people write a logical time.
const timeHelp = "RFC 3339, a date, last, or a duration back such as -36h"

// parseTime reads a time; durations count from now.
func parseTime(text string) (time.Time, error) {
	if t, err := jobs.ParseTime(text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d <= 0 {
		return time.Now().Add(d).UTC(), nil
	}
	return time.Time{}, extension.Usagef("%q is no time: say %s", text, timeHelp)
}

// far is behind every logical time.
var far = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// beforeOf reads the time that something is before, far for none.
func beforeOf(text string) (time.Time, error) {
	if text == "" {
		return far, nil
	}
	return parseTime(text)
}

// when reads the logical time of a subject; "last" is the newest that there is.
func (o *subject) when(ctx context.Context, text string) (err error) {
	if text != "last" {
		o.at, err = parseTime(text)
		return err
	}
	tasks := []string{o.part}
	if o.part == "" {
		tasks = o.tasks()
	}
	cells, err := o.cells(ctx, tasks, far, 1)
	if err != nil {
		return err
	}
	for _, of := range cells {
		if len(of) > 0 && of[0].Time.After(o.at) {
			o.at = of[0].Time
		}
	}
	if o.at.IsZero() {
		return extension.Usagef("nothing of it has run yet, so it has no last time")
	}
	return nil
}

// show returns a logical time as people read it, short if it is a whole day.
func show(t time.Time) string {
	t = t.UTC()
	switch {
	case t.IsZero():
		return "-"
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	case t.Equal(t.Truncate(time.Minute)):
		return t.Format("2006-01-02T15:04Z")
	}
	return t.Format("2006-01-02T15:04:05.999Z")
}

// timeAt returns a time that is stored in ms, the zero time for 0.
func timeAt(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
