package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/bench/internal/stats"
	"github.com/runnel-go/runnel/internal/keys"
)

// TestMain makes the test binary a child process if it was started as one.
func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := childMain(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestOnePairOfDrain(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	err := benchMain(t.Context(), []string{"-quick", "-pairs", "1", "-events", "3000", "-cases", "drain", "-out", dir}, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var r Report
	if err := json.Unmarshal(file(t, dir, "results.json"), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Outcomes) != 1 || len(r.Outcomes[0].Sides) == 0 || len(r.Outcomes[0].Claims) == 0 {
		t.Fatalf("%+v", r)
	}
	for _, s := range r.Outcomes[0].Sides {
		if rates := s.values("rate"); len(rates) != 1 || rates[0] <= 0 {
			t.Errorf("%s: rates %v", s.Name, rates)
		}
	}
	named := map[string]bool{}
	for _, f := range r.Outcomes[0].Claims {
		if named[f.Name] || len(f.Values) != 1 || f.Values[0] <= 0 {
			t.Errorf("claim %s: %v, named before: %v", f.Name, f.Values, named[f.Name])
		}
		named[f.Name] = true
		if f.Verdict == stats.Missed {
			t.Errorf("%s: one round says %s", f.Name, f.Verdict)
		}
	}
	text := string(file(t, dir, "results.md"))
	for _, want := range []string{"Raw / by hand", "≥ 0.85", "redis-server", "go run . -quick", r.Machine.Kernel} {
		if !strings.Contains(text, want) {
			t.Errorf("results.md does not say %q", want)
		}
	}
}

func file(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUnknownCase(t *testing.T) {
	err := benchMain(t.Context(), []string{"-cases", "drain,nothing"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("got %v", err)
	}
}

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	names := caseNames()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(cases) {
		t.Errorf("%q", names)
	}
	for _, c := range cases {
		if c.About == "" || c.Plan == nil {
			t.Errorf("%s is not complete", c.Name)
		}
	}
}

// A round in which a side measured nothing does not count.
func TestClaimsOfRounds(t *testing.T) {
	rounds := []Round{
		{"a": {"rate": 4}, "b": {"rate": 2}},
		{"a": {"rate": 9}, "b": {"rate": 3}},
		{"a": {"rate": 1}, "b": {}},
	}
	f := ratio("rate", "a", "b", atLeast(2)).find(rounds)
	if !slices.Equal(f.Values, []float64{2, 3}) || f.Summary.Median != 2.5 || f.Verdict != stats.Held {
		t.Errorf("got %+v", f)
	}
	if f := ratio("rate", "a", "b", stats.Bar{}).find(rounds); f.Bar != nil || f.Verdict != "" {
		t.Errorf("without a bar: got %+v", f)
	}
}

func TestSidesTakeTurnsInGoingFirst(t *testing.T) {
	var order []string
	side := func(name string) Side {
		return Side{Name: name, Run: func(context.Context, Task) (Result, error) {
			order = append(order, name)
			return Result{"rate": 1}, nil
		}}
	}
	b := startBench(t)
	for i := range 3 {
		if _, err := b.round(t.Context(), []Side{side("a"), side("b")}, i%2 == 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := ordinal(2) + ordinal(4); got != "2nd4th" {
		t.Errorf("ordinals: got %s", got)
	}
	if got := strings.Join(order, ""); got != "abbaab" {
		t.Errorf("got %s, want abbaab", got)
	}
}

func startBench(t *testing.T) *Bench {
	t.Helper()
	b := &Bench{log: io.Discard}
	stop, err := b.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return b
}

func TestFilledStreamsAreEven(t *testing.T) {
	b := startBench(t)
	task := Task{Stream: "x", Codec: "json", Partitions: 4, Events: 1000, Size: 1 << 10}
	if err := fill(t.Context(), b.rdb, task); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		log := keys.Keys{App: appName, Layout: keys.Standalone}.Partition("x", i)
		if n := b.rdb.XLen(t.Context(), log).Val(); n != 250 {
			t.Errorf("%s has %d events, want 250", log, n)
		}
	}
}

func TestNameStandsForThoseThatContinueIt(t *testing.T) {
	chosen, err := chooseCases("stage-put, produce,produce")
	var got []string
	for _, c := range chosen {
		got = append(got, c.Name)
	}
	if want := []string{"produce", "produce-payloads", "stage-put"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
