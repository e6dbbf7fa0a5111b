package schedule

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	logLines = 2000           // kept of a run, about
	logKept  = 24 * time.Hour // behind the last line
)

// A Line is one of the log of a run.
type Line struct {
	ID      string    `json:"id"`      // grows from line to line
	Attempt string    `json:"attempt"` // generation.attempt
	From    string    `json:"from"`    // stdout, stderr or log
	At      time.Time `json:"at"`
	Text    string    `json:"text"`
}

func (s *Scheduler) logKey(n int, p Place) string {
	return s.key("slog", n) + fmt.Sprintf("%s@%d", p.Task, p.Time)
}

// Log appends lines to the log of a task at a time, at most PerCall.
func (s *Scheduler) Log(ctx context.Context, n int, p Place, lines []Line) error {
	c := s.call("log", n, obj{"most": logLines, "kept": logKept}, s.logKey(n, p))
	for _, l := range lines { // as they are: what a command writes may be no text
		c.Args = append(c.Args, l.Attempt, l.From, l.At.UnixMilli(), l.Text)
	}
	s.client.Run(ctx, c)
	return c.Err
}

// Lines returns lines of a log behind an ID, "" for all, at most some thousands.
func (v View) Lines(ctx context.Context, n int, p Place, behind string) ([]Line, error) {
	from := "-"
	if behind != "" {
		from = "(" + behind
	}
	entries, err := v.s.client.Retrying.XRangeN(ctx, v.s.logKey(n, p), from, "+", 2*logLines).Result()
	if err != nil {
		return nil, err
	}
	lines := make([]Line, len(entries))
	for i, e := range entries {
		text := func(field string) string { value, _ := e.Values[field].(string); return value }
		ms, _ := strconv.ParseInt(text("t"), 10, 64)
		lines[i] = Line{e.ID, text("a"), text("o"), time.UnixMilli(ms).UTC(), text("l")}
	}
	return lines, nil
}
