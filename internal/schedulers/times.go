package schedulers

import (
	"context"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/jobs"
)

// timeHelp is how people write a logical time.
const timeHelp = "RFC 3339, a date, last, or a duration back such as -36h"

// parseTime reads a time, of which a duration counts from now; what is missing is as given.
func parseTime(text string, missing time.Time) (time.Time, error) {
	if text == "" {
		return missing, nil
	}
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

// when reads the logical time of a subject; "last" is the newest that there is.
func (o *subject) when(ctx context.Context, text string) (err error) {
	if text != "last" {
		o.at, err = parseTime(text, o.at)
		return err
	}
	cells, err := o.cells(ctx, far, 1)
	for _, of := range cells {
		if of[0].Time.After(o.at) {
			o.at = of[0].Time
		}
	}
	if err == nil && o.at.IsZero() {
		err = extension.Usagef("nothing of it has run yet, so it has no last time")
	}
	return err
}

// show returns a logical time as people read it and write it, a whole day as a date.
func show(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return strings.TrimSuffix(t.UTC().Format(time.RFC3339Nano), "T00:00:00Z")
}

// timeAt returns a time that is stored in ms, the zero time for 0.
func timeAt(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
