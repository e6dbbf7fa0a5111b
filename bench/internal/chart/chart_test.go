package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

// element is what a test looks at: name, attributes, text.
type element struct {
	name, class, text string
	attributes        map[string]string
}

// parse reads the drawing, which must be well-formed.
func parse(t *testing.T, svg []byte) (out []element) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			e.class = e.attributes["class"]
			out = append(out, e)
		case xml.CharData:
			if len(out) > 0 {
				out[len(out)-1].text += string(token)
			}
		}
	}
}

func draw(t *testing.T, sections ...Section) []element {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, sections...); err != nil {
		t.Fatal(err)
	}
	return parse(t, b.Bytes())
}

func TestTheDrawingIsWellFormedAndSaysEverything(t *testing.T) {
	elements := draw(t,
		Section{Title: "a < b & c", Rows: []Row{
			{Group: "drain", Label: `"Raw" / <by hand>`, Low: 0.9, Median: 1, High: 1.2, Text: "1 ×", Verdict: "held"},
			{Group: "drain", Label: "second", Low: 0.1, Median: 0.2, High: 0.3, Text: "0.2 ×", Verdict: "missed"},
		}},
		Section{Title: "empty"},
		Section{Title: "more", Rows: []Row{{Group: "peers", Label: "third", Low: 40, Median: 50, High: 60, Text: "50 ×"}}},
	)
	texts := map[string]int{}
	for _, e := range elements {
		texts[strings.TrimSpace(e.text)]++
	}
	for _, want := range []string{"a < b & c", `"Raw" / <by hand>`, "second", "third", "1 ×", "held", "missed", "more"} {
		if texts[want] != 1 {
			t.Errorf("%q stands there %d times", want, texts[want])
		}
	}
	if texts["empty"] != 0 || texts["drain"] != 1 {
		t.Errorf("empty stands there %d times, drain %d times", texts["empty"], texts["drain"])
	}
}

// The median lies within its interval, to the right of the bar where it is better,
// and everything within the plot.
func TestPlacesFollowTheValues(t *testing.T) {
	rows := []Row{
		{Label: "better", Low: 1.5, Median: 2, High: 9},
		{Label: "worse", Low: 0.01, Median: 0.5, High: 0.9},
	}
	var medians, ones []float64
	for _, e := range draw(t, Section{Title: "x", Rows: rows}) {
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(e.attributes[name], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		switch e.class {
		case "one":
			ones = append(ones, number("x1"))
		case "median":
			medians = append(medians, number("cx"))
		case "range":
			if number("x1") < plotFrom || number("x2") > plotTo || number("x1") >= number("x2") {
				t.Errorf("an interval from %v to %v", number("x1"), number("x2"))
			}
		}
	}
	if len(ones) != 1 || len(medians) != 2 || medians[0] <= ones[0] || medians[1] >= ones[0] {
		t.Errorf("medians at %v, 1 at %v", medians, ones)
	}
}

func TestValuesThatCannotBeDrawn(t *testing.T) {
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := Write(io.Discard, Section{Rows: []Row{{Low: 1, Median: v, High: 1}}}); err == nil {
			t.Errorf("%v was drawn", v)
		}
	}
}
