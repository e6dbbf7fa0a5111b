package cli

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestFailuresAreGrouped(t *testing.T) {
	var f failures
	for _, l := range []struct {
		n    int
		text string
	}{{3, "x"}, {4, "y"}, {5, "x"}, {6, "x"}, {9, "x"}} {
		f.add(line{file: "f", number: l.n}, l.text)
	}
	var out bytes.Buffer
	newReport(&out, true).failed(f)
	if want := "f: lines 3, 5-6, 9: x\nf: line 4: y\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1767225600, 0)
	r := newReport(&out, false)
	r.far.terminal, r.far.began, r.far.now = true, now.Add(-4*time.Second), func() time.Time { return now }
	r.read, r.all = 25, 100
	r.progress(counts{Sent: 2, Failed: 1})
	r.progress(counts{Sent: 3, Failed: 1}) // too soon
	r.refused(line{number: 7}, errors.New("bad"))
	if want := "\r\x1b[Ksent 2, failed 1 (25 %), 1/s, 12s left\r\x1b[Kline 7: bad\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
