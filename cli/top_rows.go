package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/words"
)

// A head is a column of one of top's tables. In a narrow window the columns of the highest rank are
// left out.
type head struct {
	title string
	rank  int
	left  bool // flush left
}

// A topRow is a line of one of top's tables.
type topRow struct {
	id     string   // the same from look to look
	cells  []string // as many as there are heads
	detail []string // shown below the table
	mood   mood

	stream, processor string
	partition         int // -1: no partition

	lag, age int64 // for sorting
	rate     float64
}

// A mood is how much attention a row needs.
type mood int

const (
	calm mood = iota
	odd       // something is held back, or not there
	bad
)

const trendTitle = "TREND"

var processorHeads = []head{
	{"PROCESSOR", 0, true}, {"APPENDED/S", 5, false}, {"DONE/S", 3, false}, {"LAG", 1, false}, {trendTitle, 7, true}, {"AGE", 2, false},
	{"OWNED", 6, false}, {"MEMBERS", 8, false}, {"PENDING", 9, false}, {"DELAYED", 15, false}, {"PARKED", 11, false}, {"DEAD", 10, false},
	{"LOST", 14, false}, {"QUARANTINED", 12, false}, {"HELD", 13, false}, {"STATE", 4, true},
}

// processorRows are the processors of all streams, by name. trend, if not nil, draws the lag of a
// processor at the last looks.
func processorRows(sample *inspect.Sample, trend func(id string) string) (rows []topRow) {
	for i, st := range sample.App.Streams {
		for j := range st.Processors {
			rows = append(rows, processorRow(sample, i, j, trend))
		}
	}
	return rows
}

func processorRow(sample *inspect.Sample, i, j int, trend func(id string) string) topRow {
	st := &sample.App.Streams[i]
	p, rates := &st.Processors[j], sample.Rates[i].Processors[j]
	t, id, drawn := p.Totals, p.Stream+"/"+p.Processor, ""
	if trend != nil {
		drawn = trend(id)
	}
	alive, held := 0, map[string]int{}
	for _, m := range p.Members {
		if m.Alive {
			alive++
		}
	}
	for _, s := range p.Partitions {
		held[s.Held]++
	}
	lag := words.AtLeast(t.Lag, t.LagMore || t.Unknown > 0)
	if t.Unknown == len(p.Partitions) {
		lag = "?"
	}
	withheld := strconv.Itoa(len(p.Partitions) - held[""])
	if sample.App.RulesErr != "" {
		withheld = "?"
	}
	state, mood := processorState(p, alive, held)
	return topRow{
		id: id, stream: p.Stream, processor: p.Processor, partition: -1,
		lag: t.Lag, age: t.Age, rate: orNone(rates.Done), mood: mood, detail: processorDetail(sample.App, p),
		cells: []string{
			id, rateOf(sample.Rates[i].Appended), rateOf(rates.Done), lag, drawn, ageOf(t.Age, t.Lag > 0),
			fmt.Sprintf("%d/%d", t.Owned, len(p.Partitions)), fmt.Sprintf("%d/%d", alive, len(p.Members)),
			known(t.Pending, "-"), number(t.Delayed), number(t.Parked), number(t.Dead), number(t.Lost),
			strconv.Itoa(t.Quarantined), withheld, state,
		},
	}
}

// processorState lists what is unusual about a processor, the worst first.
func processorState(p *inspect.ProcessorState, alive int, held map[string]int) (string, mood) {
	worst := calm
	var parts []string
	for _, one := range []struct {
		n    int64
		mood mood
		what string
	}{
		{int64(p.Totals.Quarantined), bad, "quarantined"},
		{int64(p.Totals.Unknown), bad, "unknown"},
		{p.Totals.Dead, bad, "dead"},
		{p.Totals.Lost, bad, "lost"},
		{int64(p.Totals.Forgotten), bad, "forgotten"},
		{int64(held["block"]), odd, "blocked"},
		{int64(held["pause"]), odd, "paused"},
		{p.Totals.Parked, odd, "parked"},
		{p.Totals.Outputs, calm, "in outboxes"},
		{int64(len(p.Members) - alive), odd, "members dead"},
		{int64(len(p.Partitions) - p.Totals.Owned), odd, "without owner"},
	} {
		if one.n > 0 {
			parts, worst = append(parts, fmt.Sprint(one.n, " ", one.what)), max(worst, one.mood)
		}
	}
	if len(parts) == 0 {
		return "ok", calm
	}
	return strings.Join(parts, ", "), worst
}

// processorDetail are the rules that hold back some of a processor, then its drains and pins.
func processorDetail(a *inspect.AppState, p *inspect.ProcessorState) []string {
	out := rulesOf(a, rules.Processor(p.Stream, p.Processor))
	for _, l := range steering(p) {
		out = append(out, l.what+l.gone)
	}
	return out
}

// rulesOf are the rules in force that overlap a scope.
func rulesOf(a *inspect.AppState, scope rules.Scope) (out []string) {
	if a.RulesErr != "" {
		return []string{"what is paused or blocked cannot be read: " + words.Summary(a.RulesErr)}
	}
	for _, r := range a.Rules {
		of, err := rules.ParseScope(r.Scope)
		if err == nil && (of.Contains(scope) || scope.Contains(of)) {
			out = append(out, ruleText(r))
		}
	}
	return out
}

// rateOf is a number of events per second, "-" if unknown.
func rateOf(rate *float64) string {
	switch {
	case rate == nil:
		return "-"
	case *rate == 0:
		return "0"
	case *rate < 10:
		return strconv.FormatFloat(*rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(*rate, 'f', 0, 64)
}

// orNone is a rate for sorting, with unknown ones last.
func orNone(rate *float64) float64 {
	if rate == nil {
		return -1
	}
	return *rate
}

// sparks draws numbers relative to the largest.
func sparks(numbers []int64) string {
	const steps = "▁▂▃▄▅▆▇█"
	levels := []rune(steps)
	if len(numbers) == 0 {
		return ""
	}
	out, largest := make([]rune, len(numbers)), max(slices.Max(numbers), 1)
	for i, n := range numbers {
		out[i] = levels[int(float64(n)/float64(largest)*float64(len(levels)-1))]
	}
	return string(out)
}
