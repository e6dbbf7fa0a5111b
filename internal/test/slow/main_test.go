package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

func TestSuspectsAreLeaves(t *testing.T) {
	for _, tt := range []struct {
		name, events string
		want         []string
		fails        bool
	}{
		{"none", `{"Action":"pass","Package":"p","Test":"A","Elapsed":4.9} {"Action":"pass","Package":"p","Elapsed":80}`, nil, false},
		{"one", `{"Action":"pass","Package":"p","Test":"A","Elapsed":5.1}`, []string{"p A"}, false},
		{"the sum of subtests", `{"Action":"pass","Package":"p/q","Test":"A/b","Elapsed":3} {"Action":"pass","Package":"p/q","Test":"A","Elapsed":6}`, nil, false},
		{"a subtest", `{"Action":"pass","Package":"p/q","Test":"A/b","Elapsed":6} {"Action":"pass","Package":"p/q","Test":"A","Elapsed":6}`, []string{"p/q A/b"}, false},
		{"nothing", ``, nil, true},
		{"no JSON", `FAIL`, nil, true},
	} {
		r, err := read(strings.NewReader(tt.events), io.Discard)
		if got := r.suspects(); !slices.Equal(got, tt.want) || (err != nil) != tt.fails {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
	}
}

// What failed is shown with all that it said, and of a package that passed the last line.
func TestWhatIsShown(t *testing.T) {
	const passed = `{"Action":"output","Package":"p","Test":"A","Output":"=== RUN A\n"} {"Action":"pass","Package":"p","Test":"A"}
		{"Action":"output","Package":"p","Output":"PASS\n"} {"Action":"output","Package":"p","Output":"ok p 1s\n"} {"Action":"pass","Package":"p"}`
	for _, tt := range []struct {
		name, more, want string
		failed           bool
	}{
		{"all passed", ``, "", false},
		{"a test failed", `{"Action":"output","Package":"q","Test":"B","Output":"B says why\n"} {"Action":"fail","Package":"q","Test":"B"}
			{"Action":"output","Package":"q","Output":"FAIL q\n"} {"Action":"fail","Package":"q"}`, "B says why\nFAIL q\n", true},
		{"a package does not build", `{"Action":"build-output","ImportPath":"r","Output":"r.go:1: undefined\n"} {"Action":"build-fail","ImportPath":"r"}`, "r.go:1: undefined\n", true},
	} {
		var shown strings.Builder
		r, err := read(strings.NewReader(passed+tt.more), &shown)
		if err != nil || r.failed != tt.failed || shown.String() != "ok p 1s\n"+tt.want {
			t.Errorf("%s: failed %v, shown %q, %v", tt.name, r.failed, shown.String(), err)
		}
	}
}

func TestIsSlow(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name      string
		wall, cpu time.Duration
		want      bool
	}{
		{"quick", s, s, false},
		{"beside two others", 15 * s, 4 * s, false},
		{"waits", 6 * s, 100 * time.Millisecond, true},
		{"computes", 11 * s, 11 * s, true},
	} {
		if got := isSlow(tt.wall, tt.cpu); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestAlone(t *testing.T) {
	tier.Slow(t)
	wall, cpu, err := alone("github.com/runnel-go/runnel/internal/test/slow TestThatWaits/6_s", t.TempDir())
	if err != nil || !isSlow(wall, cpu) {
		t.Errorf("took %v, of CPU %v: %v", wall, cpu, err)
	}
}

func TestThatWaits(t *testing.T) {
	tier.Slow(t)
	t.Run("6 s", func(*testing.T) { time.Sleep(6 * time.Second) })
}
