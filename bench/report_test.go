package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// known is a report of one case whose values are chosen.
func known(pairs int, values ...float64) Report {
	o := Outcome{
		Case: "drain", About: "What it is.", Notes: []string{"chosen: this"}, Rounds: pairs, Seconds: 12, Began: time.Unix(0, 0), Commit: "abc", Kernel: "k1",
		Columns: []Column{rateColumn},
		Sides:   []SideOutcome{{Name: "Raw"}, {Name: "nothing"}},
	}
	var rounds []Round
	for _, v := range values {
		r := Result{"rate": v * 1000}
		o.Sides[0].Results = append(o.Sides[0].Results, r)
		o.Sides[1].Results = append(o.Sides[1].Results, Result{})
		rounds = append(rounds, Round{"Raw": r, "by hand": {"rate": 1000}})
	}
	o.Claims = []Finding{
		ratio("rate", "Raw", "by hand", atLeast(20)).find(rounds),
		ratio("rate", "Raw", "by hand", atMost(20)).find(rounds),
		ratio("rate", "Raw", "nothing", atLeast(1)).find(rounds),
	}
	return Report{Pairs: pairs, Command: "go run .", Began: time.Unix(0, 0), Minutes: 1, Outcomes: []Outcome{o}}
}

func TestReportSaysWhatWasFound(t *testing.T) {
	r := known(15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	text := r.markdown()
	for _, want := range []string{
		"| drain | Raw / by hand | 8 × | 4 – 12 | ≥ 20 | **missed** |",
		"| drain | Raw / by hand | 8 × | 4 – 12 | ≤ 20 | held |",
		"| drain | Raw / nothing | none |  | ≥ 1 | open |",
		"| Raw | 8 | 1 – 15 |", "| nothing | | |",
		"of 15 values, one of each round, from the 4th smallest to the 4th largest, which contains the true median with 96.5 %",
		"Rounds: 15, in 12 s; 1970-01-01 00:00 UTC, commit abc, k1.", "- chosen: this", "1970-01-01 00:00 UTC",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"values":[1,2,3,`) {
		t.Errorf("%v: %s", err, data)
	}
}

// A run of some cases leaves what was found in the others.
func TestResultsOfOtherCasesAreKept(t *testing.T) {
	dir := t.TempDir()
	some := []Case{{Name: "drain"}, {Name: "idle"}}
	if kept, err := keep(dir, Machine{}, some); kept != nil || err != nil {
		t.Errorf("without results: %v, %v", kept, err)
	}
	before := known(15, 1, 2, 3)
	before.Machine = Machine{CPU: "one", Commit: "abc"}
	for _, name := range []string{"latency", "idle", "peers"} {
		o := before.Outcomes[0]
		o.Case = name
		before.Outcomes = append(before.Outcomes, o)
	}
	if err := before.write(dir); err != nil {
		t.Fatal(err)
	}
	kept, err := keep(dir, Machine{CPU: "one", Commit: "def", Kernel: "k2"}, some)
	if err != nil || len(kept) != 4 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if kept[1].Commit != "abc" || kept[1].Kernel != "k1" || kept[1].Columns[0] != rateColumn || len(kept[1].Sides[0].Results) != 3 {
		t.Errorf("%+v", kept[1])
	}
	r := Report{Outcomes: kept}
	r.put(Outcome{Case: "drain", Commit: "def", Kernel: "k2"})
	var got []string
	for _, o := range r.Outcomes {
		got = append(got, o.Case+" "+o.Commit+" "+o.Kernel)
	}
	if want := []string{"drain def k2", "peers abc k1", "latency abc k1", "idle abc k1"}; !slices.Equal(got, want) {
		t.Errorf("the cases are %q, want %q", got, want)
	}
	if kept, err := keep(dir, Machine{CPU: "one"}, cases); len(kept) != 4 || err != nil {
		t.Errorf("when all cases run on the same machine, and may be broken off: %v, %v", kept, err)
	}
	if _, err := keep(dir, Machine{CPU: "another"}, some); err == nil {
		t.Error("results of another machine were kept")
	}
	if kept, err := keep(dir, Machine{CPU: "another"}, cases); kept != nil || err != nil {
		t.Errorf("when all cases run: %v, %v", kept, err)
	}
}

func TestReportOfTooFewRounds(t *testing.T) {
	r := known(2, 1, 3)
	r.Quick, r.Outcomes[0].Error = true, "the server went away"
	text := r.markdown()
	for _, want := range []string{"A quick run", "| 2 × | (1 – 3) | ≥ 20 | open |", "**It ended early:** the server went away"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "missed") || strings.Contains(text, "true median") {
		t.Errorf("two rounds tell too much:\n%s", text)
	}
}
