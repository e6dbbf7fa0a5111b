package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/words"
)

// Styles of text. The library leaves out colors where the terminal has none or NO_COLOR is set, so
// color is never the only sign.
const (
	styleTitle  = "\x1b[1m"
	styleChosen = "\x1b[7m"
	styleFaint  = "\x1b[2m"
	styleOdd    = "\x1b[33m"
	styleBad    = "\x1b[31m"
	styleEnd    = "\x1b[m"

	// footRows is the number of lines for details at the foot of the screen.
	footRows = 3
)

func styled(style, text string) string {
	if style == "" || text == "" {
		return text
	}
	return style + text + styleEnd
}

// A topView draws a topModel.
type topView struct{ *topModel }

// draw returns the lines of the screen, which fit its height and width.
func (v topView) draw() []string {
	if v.width < 1 || v.height < 1 {
		return nil
	}
	head := []string{fit(v.header(), v.width), styled(styleFaint, fit(v.crumb(), v.width))}
	if old := v.old(); old != "" {
		head[1] = styled(styleBad, fit(old+"  "+v.crumb(), v.width))
	}
	foot := v.foot()
	if v.height < len(head)+len(foot)+2 { // a row and the titles are more important
		head = nil
	}
	foot = foot[max(len(foot)-max(v.height-2, 1), 0):]
	lines := append(head, v.body(v.height-len(head)-len(foot))...)
	for len(lines) < v.height-len(foot) {
		lines = append(lines, "")
	}
	return append(lines, foot...)[:v.height]
}

// room is the number of rows of the table that fit.
func (v topView) room() int {
	foot := len(v.foot())
	head := 2
	if v.height < head+foot+2 {
		head = 0
	}
	return v.height - head - min(foot, max(v.height-2, 1)) - 1
}

func (v topView) header() string {
	a := v.sample.App
	leader := words.Dash(a.Leader)
	if a.LeaderErr != "" {
		leader = "?"
	}
	return fmt.Sprintf("app %s  redis %s  leader %s  every %s", a.App, a.Redis, leader, v.every)
}

// old is the age of the numbers, "" if they are as new as they should be.
func (v topView) old() string {
	if age := v.now.Sub(v.at); v.broken != nil || age > 2*v.every+2*time.Second {
		return fmt.Sprintf("%s OLD", words.Short(max(age.Round(time.Second), time.Second)))
	}
	return ""
}

// crumb names what the table shows.
func (v topView) crumb() string {
	t := v.table()
	var text string
	if p, _, _ := v.shown(); v.level == levelProcessors {
		text = words.Plural(len(v.rows), "processor")
	} else if p == nil {
		return fmt.Sprintf("processor %s/%s is gone", v.stream, v.processor)
	} else {
		noun := [...]string{levelPartitions: "partition", levelMembers: "member"}[v.level]
		text = fmt.Sprintf("%s/%s, generation %d: %s", v.stream, v.processor, p.Generation, words.Plural(len(v.rows), noun))
	}
	if t.filter != "" {
		text += fmt.Sprintf(" with %q", t.filter)
	}
	text += " by " + t.order.String()
	if room := v.room(); len(v.rows) > room && room > 0 {
		text += fmt.Sprintf(", %d to %d", t.top+1, min(t.top+room, len(v.rows)))
	}
	return text
}

// body is the table, or the help.
func (v topView) body(height int) []string {
	if v.help {
		return cut(strings.Split(topHelp, "\n"), v.width, height)
	}
	heads := v.heads()
	chosen, widths := layout(heads, v.rows, v.width)
	title := func(i int) string { return heads[i].title }
	lines := []string{styled(styleTitle, layLine(heads, chosen, widths, v.width, title))}
	t := v.table()
	for at := t.top; at < len(v.rows) && len(lines) < height; at++ {
		r := &v.rows[at]
		text := layLine(heads, chosen, widths, v.width, func(i int) string { return r.cells[i] })
		style := [...]string{calm: "", odd: styleOdd, bad: styleBad}[r.mood]
		if at == t.at {
			style += styleChosen
		}
		lines = append(lines, styled(style, text))
	}
	if len(v.rows) == 0 {
		lines = append(lines, fit(v.nothing(), v.width))
	}
	return lines[:min(len(lines), max(height, 0))]
}

func (v topView) heads() []head {
	return [...][]head{levelProcessors: processorHeads, levelPartitions: partitionHeads, levelMembers: memberHeads}[v.level]
}

func (v topView) nothing() string {
	switch {
	case v.table().filter != "":
		return "nothing has this text; Esc shows all"
	case v.level == levelMembers:
		return "no worker runs it"
	case v.level == levelPartitions:
		return ""
	case len(v.sample.App.Streams) == 0:
		return noStreams
	}
	return "no processors: a processor is there once a worker has run it"
}

// foot is the part below the table: details of the selected row or a question, then the state line,
// then the keys.
func (v topView) foot() []string {
	var lines, state []string
	style, text := v.state()
	for _, l := range cut(wrapped(text, v.width), v.width, footRows) {
		state = append(state, styled(style, l))
	}
	if len(state) == 0 {
		state = []string{""}
	}
	switch {
	case v.help:
	case v.ask != nil:
		for _, text := range v.question() {
			lines = append(lines, wrapped(text, v.width)...)
		}
	default:
		lines = make([]string, footRows+1-len(state)) // a constant height, so that the table does not move
		copy(lines, v.details())
	}
	return append(append(lines, state...), styled(styleFaint, fit(v.keys(), v.width)))
}

// details is what the table leaves out about the selected row.
func (v topView) details() []string {
	r := v.row()
	if r == nil {
		return nil
	}
	heads := v.heads()
	chosen, widths := layout(heads, v.rows, v.width)
	var left, lines []string
	if last := len(heads) - 1; v.level == levelProcessors && ansi.StringWidth(r.cells[last]) > widths[last] {
		left = append(left, r.cells[last])
	}
	for i, h := range heads {
		if h.title != trendTitle && !slices.Contains(chosen, i) {
			left = append(left, strings.ToLower(h.title)+" "+r.cells[i])
		}
	}
	for _, text := range append(slices.Clone(r.detail), strings.Join(left, ", ")) {
		if text != "" {
			lines = append(lines, wrapped(text, v.width)...)
		}
	}
	return lines
}

// state is the state line: the text being typed, the answers to a question, the outcome of an act, or
// the age of the numbers.
func (v topView) state() (style, text string) {
	switch {
	case v.input != nil:
		return styleTitle, v.input.label + v.input.text + "_"
	case v.ask != nil && v.ask.verb == verbPause:
		return styleTitle, "y: do it, w: say why, n: leave it"
	case v.ask != nil:
		return styleTitle, "y: do it, n: leave it"
	case v.note != "" && v.wrong:
		return styleBad, v.note
	case v.broken != nil:
		return styleBad, "no new numbers, it goes on by itself: " + oneLine(v.broken)
	case v.old() != "":
		return styleOdd, "waiting for Redis"
	case v.busy != nil:
		return styleOdd, v.busy.String() + " …"
	}
	return "", v.note
}

func (v topView) keys() string {
	switch {
	case v.input != nil:
		return "Enter keep  Esc as before"
	case v.help:
		return "any key goes back"
	}
	keys := [...]string{levelProcessors: "Enter partitions", levelPartitions: "Tab members  Esc back", levelMembers: "Tab partitions  Esc back"}[v.level]
	if !v.readOnly {
		keys += [...]string{levelProcessors: "  p pause  r resume", levelPartitions: "  p pause  r resume  e release", levelMembers: ""}[v.level]
	}
	if keys += "  s sort  / filter  ? help"; len(keys)+8 <= v.width {
		keys += "  q quit"
	}
	return keys
}

// question describes what a yes does.
func (v topView) question() []string {
	a := v.ask
	what := a.String()[len(a.verb)+1:]
	switch a.verb {
	case verbPause:
		out := []string{"pause " + what + ": functions finish the iteration that they run, then it takes no event until it is resumed"}
		if old := v.pause(a); old != nil {
			out = append(out, "it takes the place of the "+ruleText(*old))
		}
		return append(out, "recorded as: "+rules.Rule{Kind: rules.Pause, Scope: a.scope(), Who: a.who, Why: a.why}.String())
	case verbResume:
		out := []string{"resume " + what + ": it goes on where it stopped"}
		for _, r := range v.sample.App.Rules {
			of, err := rules.ParseScope(r.Scope)
			switch {
			case err != nil || !of.Contains(a.scope()) && !a.scope().Contains(of):
			case r.Kind == rules.Pause && of == a.scope():
				out = append(out, "removes the "+ruleText(r))
			default:
				out = append(out, "stays in force: "+ruleText(r))
			}
		}
		return out
	}
	q := v.quarantine(a)
	if q == nil {
		return []string{"release " + what + ": its quarantine has ended meanwhile"}
	}
	return []string{
		"release " + what + ": it goes on with event " + words.Dash(q.Event) + ", which is tried again",
		"it is quarantined for: " + words.Reason(q.Event, q.Reason),
	}
}

const topHelp = `Up Down k j          choose a row
PgUp PgDn Home End   further
Enter                the partitions of a processor
Tab                  its members, and back
Esc                  back; without a filter first, if there is one
s                    sort by name, lag, age or rate
/                    only rows with a text
p r                  pause or resume the processor or partition
e                    release the quarantined partition
q Ctrl-C             end

APPENDED/S, DONE/S: events per second since the look before
OWNED: partitions with an owner, of all; MEMBERS: that are alive, of all
TREND: the lag at the last looks; -: not known; >N: at least N`
