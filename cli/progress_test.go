package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// At a terminal, a command that takes longer than two seconds shows its progress, rate and
// remaining time; no other does.
func TestProgressTellsRateShareAndTimeLeft(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1767225600, 0)
	p := newProgress(&out)
	p.now, p.began = func() time.Time { return now }, now
	for _, tt := range []struct {
		terminal bool
		after    time.Duration
		done     int64
		want     string
	}{
		{true, time.Second, 100, ""}, // it may be over soon
		{false, 5 * time.Second, 500, ""},
		{true, 0, 500, "\r\x1b[Kreplayed 500 of 2000 (25 %), 83/s, 18s left"},
		{true, 100 * time.Millisecond, 600, ""}, // too soon after the last
		{true, 13900 * time.Millisecond, 2000, "\r\x1b[Kreplayed 2000 of 2000 (100 %), 100/s"},
	} {
		now, p.terminal = now.Add(tt.after), tt.terminal
		out.Reset()
		p.of("replayed", tt.done, 2000)
		if out.String() != tt.want {
			t.Errorf("%d done: %q, want %q", tt.done, out.String(), tt.want)
		}
	}
	now = now.Add(time.Second)
	out.Reset()
	p.of("dead letters looked at:", 400, 0)
	if got, want := out.String(), "\r\x1b[Kdead letters looked at: 400, 19/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	now = now.Add(time.Second)
	out.Reset()
	p.at("sent 42, failed 0", 42, 0) // of an unknown number
	p.clear()
	p.clear()
	if got, want := out.String(), "\r\x1b[Ksent 42, failed 0, 2/s\r\x1b[K"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPartsTellProgressAndEndAtAnError(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1767225600, 0)
	p := newProgress(&out)
	p.terminal, p.began, p.now = true, now, func() time.Time { now = now.Add(3 * time.Second); return now }
	p.done() // with the last progress
	refused := errors.New("refused")
	done, err := inParts(t.Context(), p, "dropped", make([]int, 2*partsAtOnce+1), func(_ context.Context, part []int) ([]int, error) {
		if len(part) < partsAtOnce {
			return part[:0], refused
		}
		return part, nil
	})
	if len(done) != 2*partsAtOnce || !errors.Is(err, refused) {
		t.Errorf("%d done, %v", len(done), err)
	}
	if got := out.String(); strings.Count(got, "dropped ") != 2 || !strings.Contains(got, "dropped 500 of 1001 (50 %), 167/s") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("%q", got)
	}
}
