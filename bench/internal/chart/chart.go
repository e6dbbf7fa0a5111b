// Package chart draws intervals against their bars as SVG, for light and dark pages.
package chart

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"text/template"
)

// A Row is one interval. 1 is what it is held against, and more is better.
type Row struct {
	Group             string // shown where it differs from that of the row before
	Label             string
	Low, Median, High float64 // positive
	Text              string  // beside the interval
	Verdict           string  // "held", "open", "missed" or "": chooses the colour
}

// A Section is rows under a title.
type Section struct {
	Title string
	Rows  []Row
}

// Measures of the drawing.
const (
	width      = 940
	plotFrom   = 330
	plotTo     = 640
	textAt     = 660
	rowHeight  = 24
	headHeight = 56
	margin     = 16
)

//go:embed chart.svg.tmpl
var source string

var drawing = template.Must(template.New("chart").Funcs(template.FuncMap{"xml": escape}).Parse(source))

func escape(text string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(text))
	return b.String(), err
}

// The shapes of the template.
type (
	picture struct {
		Width, Height, PlotFrom, PlotTo, TextAt int
		Sections                                []block
	}
	block struct {
		Title                 string
		TitleY, TickY, Top, Y int // Y is the end
		Ticks                 []tick
		Rows                  []line
	}
	tick struct {
		X    float64
		Text string
		One  bool
	}
	line struct {
		Row
		Y, TextY  int
		X1, X2, X float64
		NewGroup  bool
		RowY      int
	}
)

// Write draws the sections that have rows. A row must not have values that are
// zero, negative, or no numbers.
func Write(w io.Writer, sections ...Section) error {
	p := picture{Width: width, PlotFrom: plotFrom, PlotTo: plotTo, TextAt: textAt}
	y := margin
	for _, s := range sections {
		if len(s.Rows) == 0 {
			continue
		}
		b, err := lay(s, y)
		if err != nil {
			return err
		}
		p.Sections = append(p.Sections, b)
		y = b.Y + margin
	}
	p.Height = y
	if err := drawing.Execute(w, p); err != nil {
		return fmt.Errorf("draw the chart: %w", err)
	}
	return nil
}

func lay(s Section, y int) (block, error) {
	from, to := 0.5, 2.0
	for _, r := range s.Rows {
		for _, v := range []float64{r.Low, r.Median, r.High} {
			if !(v > 0) || math.IsInf(v, 0) {
				return block{}, fmt.Errorf("draw the chart: %s %s: the value %v", r.Group, r.Label, v)
			}
			from, to = min(from, v), max(to, v)
		}
	}
	from, to = from/1.08, to*1.08
	at := func(v float64) float64 {
		x := plotFrom + (plotTo-plotFrom)*math.Log(v/from)/math.Log(to/from)
		return math.Round(x*10) / 10
	}
	b := block{Title: s.Title, TitleY: y + 16, TickY: y + headHeight - 10, Top: y + headHeight - 4}
	for _, v := range ticks(from, to) {
		b.Ticks = append(b.Ticks, tick{X: at(v), Text: fmt.Sprintf("%.3g", v), One: v == 1})
	}
	y += headHeight
	group := ""
	for _, r := range s.Rows {
		b.Rows = append(b.Rows, line{
			Row: r, Y: y + rowHeight/2, TextY: y + rowHeight/2 + 4,
			X1: at(r.Low), X2: at(r.High), X: at(r.Median), NewGroup: r.Group != group, RowY: y,
		})
		group = r.Group
		y += rowHeight
	}
	b.Y = y + 4
	return b, nil
}

// ticks are powers of two, or of a larger power of two where these would be many.
func ticks(from, to float64) (out []float64) {
	step := 1.0
	for math.Log2(to/from)/step > 7 {
		step++
	}
	for i := math.Ceil(math.Log2(from) / step); i*step <= math.Log2(to); i++ {
		out = append(out, math.Exp2(i*step))
	}
	return out
}
