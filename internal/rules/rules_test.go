package rules

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestScopesCoverWhatTheySay(t *testing.T) {
	for _, tt := range []struct {
		scope  Scope
		text   string
		covers string // of the partitions below
	}{
		{App(), "app", "a/p/0 a/p/1 a/q/0 b.c/p/0"},
		{Stream("a"), "stream:a", "a/p/0 a/p/1 a/q/0"},
		{Stream("b.c"), "stream:b.c", "b.c/p/0"},
		{Stream("b"), "stream:b", ""},
		{Processor("a", "p"), "processor:a/p", "a/p/0 a/p/1"},
		{Partition("a", "p", 1), "partition:a/p/1", "a/p/1"},
		{Partition("a", "p", 0), "partition:a/p/0", "a/p/0"},
		{Scope{}, "none", ""},
	} {
		var covered []string
		for _, p := range []struct {
			stream, processor string
			n                 int
		}{{"a", "p", 0}, {"a", "p", 1}, {"a", "q", 0}, {"b.c", "p", 0}} {
			if tt.scope.Covers(p.stream, p.processor, p.n) {
				covered = append(covered, fmt.Sprintf("%s/%s/%d", p.stream, p.processor, p.n))
			}
		}
		if got := strings.Join(covered, " "); got != tt.covers {
			t.Errorf("%s covers %q, want %q", tt.text, got, tt.covers)
		}
		if tt.scope.String() != tt.text {
			t.Errorf("String: %q, want %q", tt.scope, tt.text)
		}
		if again, err := ParseScope(tt.text); tt.scope.Check() == nil && (err != nil || again != tt.scope) {
			t.Errorf("ParseScope(%q) = %v, %v", tt.text, again, err)
		}
	}
}

func TestScopesOfAnotherFormAreRefused(t *testing.T) {
	for _, text := range []string{"", "none", "apps", "stream", "stream:", "stream:a/b", "processor:a", "processor:a/", "processor:/p",
		"partition:a/p", "partition:a/p/x", "partition:a/p/-1", "partition:a/p/01", "worker:a"} {
		if s, err := ParseScope(text); err == nil {
			t.Errorf("ParseScope(%q) = %v", text, s)
		}
	}
}

func TestScopesContainNarrowerOnes(t *testing.T) {
	scopes := []Scope{App(), Stream("a"), Processor("a", "p"), Partition("a", "p", 1)}
	for i, s := range scopes {
		for j, other := range scopes {
			if got := s.Contains(other); got != (i <= j) {
				t.Errorf("%s contains %s: %v", s, other, got)
			}
		}
		for _, other := range []Scope{Stream("b"), Processor("a", "q"), Partition("a", "p", 2)} {
			want := i == 0 || other.StreamName() == "a" && (i == 1 || i == 2 && other.ProcessorName() == "p")
			if got := s.Contains(other); got != want {
				t.Errorf("%s contains %s: %v, want %v", s, other, got, want)
			}
		}
		if (Scope{}).Contains(s) {
			t.Errorf("no scope contains %s", s)
		}
	}
}

func TestScopesOfBadNamesAreRefused(t *testing.T) {
	for _, s := range []Scope{{}, Stream(""), Stream("a/b"), Stream("a b"), Processor("a", "p.q"), Processor("a", ""), Partition("a", "p", -1)} {
		if s.Check() == nil {
			t.Errorf("%s passes", s)
		}
	}
	for _, s := range []Scope{App(), Stream("a.b"), Processor("a.b", "p-1"), Partition("a", "p", 0)} {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	const good = `{"v":1,"who":"ada","why":"","at":1,"until":0}`
	for name, fields := range map[string]map[string]string{
		"version":      {"pause app": `{"v":2}`},
		"no version":   {"pause app": `{"who":"ada"}`},
		"no JSON":      {"pause app": `ada`},
		"kind":         {"stop app": good},
		"scope":        {"pause everything": good},
		"no scope":     {"pause": good},
		"generation":   {"generation": "many"},
		"one of three": {"pause app": good, "block app": good, "other": good},
	} {
		if s, err := Parse(fields); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	s, err := Parse(map[string]string{"generation": "7", "pause app": good, "block stream:a": good})
	if err != nil || s.Generations.Pauses != 7 || len(s.Rules) != 2 || s.Rules[0].Kind != Block {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := Parse(nil); err != nil || len(s.Rules) != 0 {
		t.Errorf("no hash: %+v, %v", s, err)
	}
}

func TestWhatHoldsAPartitionBack(t *testing.T) {
	s := Set{Rules: []Rule{
		{Kind: Block, Scope: Stream("a"), Who: "root", Until: noon.Add(time.Hour)},
		{Kind: Pause, Scope: App(), Who: "ada", Until: noon.Add(time.Minute)},
		{Kind: Pause, Scope: Partition("a", "p", 3), Who: "bob"},
	}}
	for _, tt := range []struct {
		stream    string
		partition int
		after     time.Duration
		want      string
	}{
		{"a", 3, 0, "root ada bob"},
		{"a", 2, 0, "root ada"},
		{"b", 3, 0, "ada"},
		{"a", 3, time.Minute, "root bob"}, // a rule ends at its Until, not after it
		{"b", 3, time.Minute, ""},
		{"a", 2, time.Hour, ""},
		{"a", 3, time.Hour, "bob"},
	} {
		var who []string
		for _, r := range s.Holding(tt.stream, "p", tt.partition, noon.Add(tt.after)) {
			who = append(who, r.Who)
		}
		if got := strings.Join(who, " "); got != tt.want {
			t.Errorf("%s/p/%d after %v: held by %q, want %q", tt.stream, tt.partition, tt.after, got, tt.want)
		}
	}
	for _, tt := range []struct {
		after time.Duration
		want  time.Time
	}{{0, noon.Add(time.Minute)}, {time.Minute, noon.Add(time.Hour)}, {time.Hour, time.Time{}}} {
		if got := s.NextEnd(noon.Add(tt.after)); !got.Equal(tt.want) {
			t.Errorf("after %v the next end is %v, want %v", tt.after, got, tt.want)
		}
	}
	if n := len(s.InForce(noon.Add(time.Minute))); n != 2 {
		t.Errorf("%d rules in force after a minute, want 2", n)
	}
}

func TestARuleSaysWhoUntilWhenAndWhy(t *testing.T) {
	r := Rule{Kind: Pause, Scope: Processor("a", "p"), Who: "ada@mill", Why: "the printer is out of paper", Until: noon}
	if got, want := r.String(), "pause of processor:a/p by ada@mill until 2026-01-01T12:00:00Z: the printer is out of paper"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := r.Field(), "pause processor:a/p"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Blocks stand under a key of their own. Among the pauses stand those that an earlier
// release has set, which hold, and copies for its workers, which others pass over.
func TestBlocksAmongThePauses(t *testing.T) {
	const stored, copied = `{"v":1,"who":"ada","at":1}`, `{"v":1,"who":"ada","at":1,"copy":true}`
	s, err := Parse(map[string]string{"generation": "7", "pause stream:a": stored, "block stream:b": stored, "block stream:c": copied, "block stream:d": copied})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.WithBlocks(map[string]string{"generation": "3", "block stream:c": stored, "block stream:e": stored}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range s.Rules {
		names = append(names, r.Field())
	}
	if got, want := strings.Join(names, ", "), "block stream:b, block stream:c, block stream:e, pause stream:a"; got != want {
		t.Errorf("rules %q, want %q", got, want)
	}
	for _, tt := range []struct {
		scope                 string
		pauses, blocks, early bool // in effect where the pauses alone, the blocks alone are known, and in an earlier release
	}{
		{"a", true, false, true},
		{"b", true, false, true}, // the block of an earlier release
		{"c", false, true, true}, // with a copy
		{"d", false, false, true},
		{"e", false, true, false}, // without a copy
	} {
		for g, want := range map[Generations]bool{{7, 2}: tt.pauses, {6, 3}: tt.blocks, {7, -1}: tt.early, {6, -1}: false} {
			if got := s.InEffect(g, Processor(tt.scope, "p"), noon); got != want {
				t.Errorf("stream %s is held back in an executor that knows %+v: %v", tt.scope, g, got)
			}
		}
	}
	if _, err := s.WithBlocks(map[string]string{"pause app": stored}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a pause among the blocks: %v", err)
	}
}
