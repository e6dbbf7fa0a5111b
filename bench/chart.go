package main

import (
	"bytes"

	"github.com/runnel-go/runnel/bench/internal/chart"
	"github.com/runnel-go/runnel/bench/internal/stats"
)

// svg draws what has a bar as multiples of it, then the other ratios.
func (r Report) svg() ([]byte, error) {
	span := "median and 95 % interval"
	if _, coverage := stats.Rank(r.Pairs); coverage < stats.Coverage {
		span = "median and range; too few rounds for an interval"
	}
	barred := chart.Section{Title: "How many times better than its bar (1 = the bar): " + span}
	plain := chart.Section{Title: "Other ratios (1 = as fast as by hand): " + span}
	for _, o := range r.Outcomes {
		for _, f := range o.Claims {
			switch {
			case f.Summary.N == 0 || f.Summary.Min <= 0:
			case f.Bar != nil:
				barred.Rows = append(barred.Rows, f.chartRow(o.Case, *f.Bar))
			case f.Chart:
				plain.Rows = append(plain.Rows, f.chartRow(o.Case, stats.Bar{At: 1}))
			}
		}
	}
	var b bytes.Buffer
	err := chart.Write(&b, barred, plain)
	return b.Bytes(), err
}

func (f Finding) chartRow(group string, bar stats.Bar) chart.Row {
	low, high := bar.Margin(f.Summary.Low), bar.Margin(f.Summary.High)
	text := f.median()
	if f.Bar != nil {
		text += " (bar " + f.bar() + ")"
	}
	return chart.Row{
		Group: group, Label: f.Name, Low: min(low, high), Median: bar.Margin(f.Summary.Median), High: max(low, high),
		Text: text, Verdict: string(f.Verdict),
	}
}
