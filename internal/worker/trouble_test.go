package worker

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

// A trouble that comes and goes is told of once in a while, with how often it came; one
// that stays is told of when it begins, once a minute, and when it is over.
func TestTroubleLogsABoundedNumberOfLines(t *testing.T) {
	broken := errors.New("connection reset")
	tests := []struct {
		name string
		play func(*trouble)
		want []string
	}{
		{"once", func(tr *trouble) {
			tr.note(context.Background(), broken)
			tr.over()
		}, []string{"WARN trouble", "INFO works again"}},
		{"twice, with a while between", func(tr *trouble) {
			for range 2 {
				tr.note(context.Background(), broken)
				time.Sleep(time.Second)
				tr.over()
				time.Sleep(time.Minute)
			}
		}, []string{"WARN trouble", "INFO works again", "WARN trouble", "INFO works again"}},
		{"for long", func(tr *trouble) {
			for range 150 {
				tr.note(context.Background(), broken)
				time.Sleep(time.Second)
			}
			tr.over()
		}, []string{"WARN trouble", "WARN trouble", "WARN trouble", "INFO works again"}},
		{"20 times a second, for 25 seconds", func(tr *trouble) {
			for range 500 {
				tr.note(context.Background(), broken)
				time.Sleep(25 * time.Millisecond)
				tr.over()
				time.Sleep(25 * time.Millisecond)
			}
			for range 20 { // reads that are answered
				time.Sleep(time.Second)
				tr.over()
			}
		}, []string{"WARN trouble", "INFO works again", "WARN trouble breaks=200", "INFO works again", "WARN trouble breaks=200", "INFO works again", "INFO works again breaks=99"}},
		{"again soon, and then for long", func(tr *trouble) {
			tr.note(context.Background(), broken)
			tr.over()
			for range 15 {
				time.Sleep(time.Second)
				tr.note(context.Background(), broken)
			}
			tr.over()
		}, []string{"WARN trouble", "INFO works again", "WARN trouble", "INFO works again"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				tt.play(newTrouble(slog.New(slog.NewTextHandler(&b, nil)), "reads", nil))
				if got := told(b.String()); !slices.Equal(got, tt.want) {
					t.Errorf("logged %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// told is what lines are about: their level, and how often the trouble came.
func told(text string) (out []string) {
	for line := range strings.Lines(text) {
		word := "INFO works again"
		if strings.Contains(line, "level=WARN") {
			word = "WARN trouble"
		}
		if _, breaks, ok := strings.Cut(line, " breaks="); ok {
			word += " breaks=" + strings.Fields(breaks)[0]
		}
		out = append(out, word)
	}
	return out
}
