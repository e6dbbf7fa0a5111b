package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// played is a run of lines, each "worker text", a second apart.
func played(sent int, lines ...string) run {
	r := run{sent: sent, panes: [2]pane{{worker: "a"}, {worker: "b"}}}
	for i, l := range lines {
		worker, text, _ := strings.Cut(l, " ")
		p := &r.panes[strings.Index("ab", worker)]
		p.lines = append(p.lines, line{time.Duration(i) * time.Second, text})
	}
	return r
}

func TestCheck(t *testing.T) {
	whole := []string{"a owns partition 0", "a ada 1", "a bob 1", "a cyd 1", "a eve 1"}
	for _, tt := range []struct {
		name  string
		lines []string
		found string // in the sentence
		err   string
	}{
		{"taken over", []string{"b ada 2", "a bob 2", "b cyd 2", "b eve 2"}, "1 to 2 of each", ""},
		{"repeated by the next owner", []string{"b ada 1", "b ada 2", "a bob 2", "a cyd 2", "a eve 2"}, "ack: ada 1.", ""},
		{"repeated by the same owner", []string{"a ada 1"}, "", "order 1 of ada after order 1"},
		{"missing", []string{"b ada 3"}, "", "order 3 of ada after order 1"},
		{"out of order", []string{"a ada 2", "a ada 1"}, "", "order 1 of ada after order 2"},
		{"not to the end", []string{"a ada 2", "a bob 2", "a cyd 2"}, "", "the last order of eve is 1, of 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := check(played(2, append(whole, tt.lines...)...))
			if !strings.Contains(found, tt.found) || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, %v; want %q, %q", found, err, tt.found, tt.err)
			}
		})
	}
}

func TestPictureIsSmallAndHasNoScript(t *testing.T) {
	svg, err := os.ReadFile("../../docs/images/takeover.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(svg) > 60_000 {
		t.Errorf("it has %d bytes", len(svg))
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && (start.Name.Local == "script" || start.Name.Local == "foreignObject") {
			t.Errorf("it has a %s", start.Name.Local)
		}
	}
	for _, want := range []string{"signal: killed", "kill -9 ", "none is out of order", "prefers-color-scheme: dark", "prefers-reduced-motion"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("it has no %q", want)
		}
	}
}
