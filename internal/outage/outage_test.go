package outage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Intermittent errors are logged once in a while, with their number. A lasting outage is logged
// when it begins, once a minute, and when it ends.
func TestTroubleLogsABoundedNumberOfLines(t *testing.T) {
	broken := errors.New("connection reset")
	tests := []struct {
		name string
		play func(*Outage)
		want []string
	}{
		{"once", func(tr *Outage) {
			tr.Failed(context.Background(), broken)
			tr.Recovered()
		}, []string{"WARN error", "INFO recovered"}},
		{"twice, with a while between", func(tr *Outage) {
			for range 2 {
				tr.Failed(context.Background(), broken)
				time.Sleep(time.Second)
				tr.Recovered()
				time.Sleep(time.Minute)
			}
		}, []string{"WARN error", "INFO recovered", "WARN error", "INFO recovered"}},
		{"for long", func(tr *Outage) {
			for range 150 {
				tr.Failed(context.Background(), broken)
				time.Sleep(time.Second)
			}
			tr.Recovered()
		}, []string{"WARN error", "WARN error", "WARN error", "INFO recovered"}},
		{"20 times a second, for 25 seconds", func(tr *Outage) {
			for range 500 {
				tr.Failed(context.Background(), broken)
				time.Sleep(25 * time.Millisecond)
				tr.Recovered()
				time.Sleep(25 * time.Millisecond)
			}
			for range 20 { // reads that are answered
				time.Sleep(time.Second)
				tr.Recovered()
			}
		}, []string{"WARN error", "INFO recovered", "WARN error breaks=200", "INFO recovered", "WARN error breaks=200", "INFO recovered", "INFO recovered breaks=99"}},
		{"again soon, and then for long", func(tr *Outage) {
			tr.Failed(context.Background(), broken)
			tr.Recovered()
			for range 15 {
				time.Sleep(time.Second)
				tr.Failed(context.Background(), broken)
			}
			tr.Recovered()
		}, []string{"WARN error", "INFO recovered", "WARN error", "INFO recovered"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				tt.play(New(slog.New(slog.NewTextHandler(&b, nil)), "reads", nil))
				if got := told(b.String()); !slices.Equal(got, tt.want) {
					t.Errorf("logged %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// told reduces lines to their level and number of outages.
func told(text string) (out []string) {
	for line := range strings.Lines(text) {
		word := "INFO recovered"
		if strings.Contains(line, "level=WARN") {
			word = "WARN error"
		}
		if _, breaks, ok := strings.Cut(line, " breaks="); ok {
			word += " breaks=" + strings.Fields(breaks)[0]
		}
		out = append(out, word)
	}
	return out
}
