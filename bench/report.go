package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

// A Report is everything that was found, and on what.
type Report struct {
	Machine  Machine   `json:"machine"`
	Command  string    `json:"command"`
	Quick    bool      `json:"quick"`
	Pairs    int       `json:"pairs"`
	Began    time.Time `json:"began"`
	Minutes  float64   `json:"minutes"` // all cases together
	Outcomes []Outcome `json:"cases"`
}

// write writes results.md and results.json into a directory.
func (r Report) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	for name, text := range map[string][]byte{
		"results.md":   []byte(r.markdown()),
		"results.json": append(data, '\n'),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// keep returns what earlier runs on the same machine found. With results of another one it is an error not to choose all cases.
func keep(dir string, m Machine, chosen []Case) ([]Outcome, error) {
	text, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	all := len(chosen) == len(cases)
	var before Report
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	switch {
	case err != nil && all:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the results of the other cases: %w", err)
	}
	for i := range before.Outcomes {
		o := &before.Outcomes[i]
		o.Kernel = cmp.Or(o.Kernel, before.Machine.Kernel)
	}
	before.Machine.Commit, before.Machine.Kernel = m.Commit, m.Kernel // which each case tells
	switch {
	case reflect.DeepEqual(before.Machine, m):
		return before.Outcomes, nil
	case all:
		return nil, nil
	}
	return nil, fmt.Errorf("%s holds the results of another machine or other versions: run all cases, or use -out", dir)
}

// put adds what was found in a case, in place of what was known of it.
func (r *Report) put(o Outcome) {
	r.Outcomes = append(slices.DeleteFunc(r.Outcomes, func(known Outcome) bool { return known.Case == o.Case }), o)
	place := func(o Outcome) int { return slices.IndexFunc(cases, func(c Case) bool { return c.Name == o.Case }) }
	slices.SortStableFunc(r.Outcomes, func(a, b Outcome) int { return cmp.Compare(place(a), place(b)) })
	r.Minutes = time.Since(r.Began).Minutes()
}

func (r Report) markdown() string {
	var b strings.Builder
	b.WriteString("# Results\n\nWritten by `make bench`; [README.md](README.md) says what is measured and how to read it.\n\n")
	if r.Quick {
		b.WriteString("**A quick run: too few rounds to tell anything.**\n\n")
	}
	r.Machine.markdown(&b)
	fmt.Fprintf(&b, "\n```console\n$ cd bench && %s\n```\n\nThe last run began at %s and took %s minutes; each case says when it was run, of which commit and on which kernel.\n\n## In brief\n\n",
		r.Command, r.Began.UTC().Format("2006-01-02 15:04 MST"), number(r.Minutes))
	if k, coverage := stats.Rank(r.Pairs); coverage >= stats.Coverage {
		fmt.Fprintf(&b, "Intervals are of the median: of %d values, one of each round, from the %s smallest to the %s largest, "+
			"which contains the true median with %.1f %%.\n\n", r.Pairs, ordinal(k), ordinal(k), 100*coverage)
	}
	r.brief(&b)
	for _, o := range r.Outcomes {
		o.markdown(&b)
	}
	return b.String()
}

// brief is a table of what has a bar.
func (r Report) brief(b *strings.Builder) {
	b.WriteString("| case | | median | 95 % interval | bar | verdict |\n|---|---|--:|--:|--:|---|\n")
	for _, o := range r.Outcomes {
		for _, f := range o.Claims {
			if f.Bar != nil {
				fmt.Fprintf(b, "| %s | %s\n", o.Case, f.row())
			}
		}
	}
}

func (o Outcome) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", o.Case, o.About)
	if o.Error != "" {
		fmt.Fprintf(b, "\n**It ended early:** %s\n", o.Error)
	}
	if len(o.Columns) > 0 && o.Rounds > 0 {
		o.table(b)
	}
	if len(o.Claims) > 0 && o.Rounds > 0 {
		b.WriteString("\n| | median | 95 % interval | bar | verdict |\n|---|--:|--:|--:|---|\n")
		for _, f := range o.Claims {
			fmt.Fprintf(b, "| %s\n", f.row())
		}
	}
	fmt.Fprintf(b, "\nRounds: %d, in %.0f s; %s, commit %s, %s.\n", o.Rounds, o.Seconds, o.Began.UTC().Format("2006-01-02 15:04 MST"), o.Commit, o.Kernel)
	if len(o.Notes) > 0 {
		b.WriteString("\n")
		for _, n := range o.Notes {
			fmt.Fprintf(b, "- %s\n", n)
		}
	}
}

// table shows the figures of each side: median, and minimum to maximum.
func (o Outcome) table(b *strings.Builder) {
	b.WriteString("\n| |")
	for _, c := range o.Columns {
		fmt.Fprintf(b, " %s | min – max |", c.Title)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|--:|", len(o.Columns)) + "\n")
	for _, s := range o.Sides {
		fmt.Fprintf(b, "| %s |", s.Name)
		for _, c := range o.Columns {
			sum := stats.Sum(s.values(c.Figure))
			if sum.N == 0 {
				b.WriteString(" | |")
				continue
			}
			fmt.Fprintf(b, " %s | %s – %s |", number(sum.Median*c.Scale), number(sum.Min*c.Scale), number(sum.Max*c.Scale))
		}
		b.WriteString("\n")
	}
}

// row is a row of a table, from its name on.
func (f Finding) row() string {
	verdict := string(f.Verdict)
	if f.Verdict == stats.Missed {
		verdict = "**missed**"
	}
	return fmt.Sprintf("%s | %s | %s | %s | %s |", f.Name, f.median(), f.interval(), f.bar(), verdict)
}

func (f Finding) median() string {
	if f.Summary.N == 0 {
		return "none"
	}
	return strings.TrimSpace(number(f.Summary.Median) + " " + f.Unit)
}

// interval is that of the median, if there are enough values for it.
func (f Finding) interval() string {
	switch {
	case f.Summary.N == 0:
		return ""
	case !f.Summary.Known():
		return fmt.Sprintf("(%s – %s)", number(f.Summary.Min), number(f.Summary.Max))
	}
	return fmt.Sprintf("%s – %s", number(f.Summary.Low), number(f.Summary.High))
}

func (f Finding) bar() string {
	switch {
	case f.Bar == nil:
		return ""
	case f.Bar.AtMost:
		return "≤ " + number(f.Bar.At)
	}
	return "≥ " + number(f.Bar.At)
}

func (f Finding) text() string {
	text := f.median() + ", " + f.interval()
	if f.Bar != nil {
		text += ", bar " + f.bar()
	}
	return text
}

func ordinal(n int) string {
	if n < 4 {
		return [...]string{"", "1st", "2nd", "3rd"}[n]
	}
	return fmt.Sprint(n, "th")
}

// number has three digits, or all before the point.
func number(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
