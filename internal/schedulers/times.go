package schedulers

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
)

// timeHelp is how people write a logical time.
const timeHelp = "RFC 3339, a date, last, or a duration back such as -36h"

// parseTime reads a time; now is what durations count from.
func parseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d <= 0 {
		return now.Add(d).UTC(), nil
	}
	return time.Time{}, extension.Usagef("%q is no time: say %s", text, timeHelp)
}

// far is behind every logical time.
var far = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// timeOf reads the logical time of a task, or of a job for ""; "last" is the newest that there is.
func (s *scheduler) timeOf(ctx context.Context, job, task, text string) (time.Time, error) {
	if text != "last" {
		return parseTime(text, time.Now())
	}
	g, err := s.grid(ctx, job, far, 1)
	if err != nil {
		return time.Time{}, err
	}
	var last time.Time
	for _, row := range g.Tasks {
		if (task == "" || row.Task == task) && len(row.Cells) > 0 && row.Cells[0].Time.After(last) {
			last = row.Cells[0].Time
		}
	}
	if last.IsZero() {
		return last, extension.Usagef("nothing of it has run yet, so it has no last time")
	}
	return last, nil
}

// show returns a logical time as people read it, short if it is a whole day.
func show(t time.Time) string {
	t = t.UTC()
	if t.IsZero() {
		return "-"
	}
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	if t.Equal(t.Truncate(time.Minute)) {
		return t.Format("2006-01-02T15:04Z")
	}
	return t.Format("2006-01-02T15:04:05.999Z")
}
