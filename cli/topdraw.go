package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/runnel-go/runnel/internal/words"
)

// Styles of text. Where the terminal shows no colors, or NO_COLOR is set, the library
// leaves the colors out: nothing is told by color alone.
const (
	styleTitle  = "\x1b[1m"
	styleChosen = "\x1b[7m"
	styleFaint  = "\x1b[2m"
	styleOdd    = "\x1b[33m"
	styleBad    = "\x1b[31m"
	styleEnd    = "\x1b[m"

	// footRows is how many lines the foot of the screen has for details.
	footRows = 3
)

func styled(style, text string) string {
	if style == "" || text == "" {
		return text
	}
	return style + text + styleEnd
}

// draw is the screen: at most as many lines as it is high, none wider than it is.
func (m *topModel) draw() []string {
	if m.width < 1 || m.height < 1 {
		return nil
	}
	head := []string{fit(m.header(), m.width), styled(styleFaint, fit(m.crumb(), m.width))}
	if old := m.old(); old != "" {
		head[1] = styled(styleBad, fit(old+"  "+m.crumb(), m.width))
	}
	foot := m.foot()
	if m.height < len(head)+len(foot)+2 { // a row and the titles go first
		head = nil
	}
	foot = foot[max(len(foot)-max(m.height-2, 1), 0):]
	lines := append(head, m.body(m.height-len(head)-len(foot))...)
	for len(lines) < m.height-len(foot) {
		lines = append(lines, "")
	}
	return append(lines, foot...)[:m.height]
}

// room is how many rows of the table fit.
func (m *topModel) room() int {
	foot := len(m.foot())
	head := 2
	if m.height < head+foot+2 {
		head = 0
	}
	return m.height - head - min(foot, max(m.height-2, 1)) - 1
}

func (m *topModel) header() string {
	a := m.sample.App
	leader := words.Dash(a.Leader)
	if a.LeaderErr != "" {
		leader = "?"
	}
	return fmt.Sprintf("app %s  redis %s  leader %s  every %s", a.App, a.Redis, leader, m.every)
}

// old says how old the numbers are, if that is older than they should be.
func (m *topModel) old() string {
	if age := m.now.Sub(m.at); m.broken != nil || age > 2*m.every+2*time.Second {
		return fmt.Sprintf("%s OLD", words.Short(max(age.Round(time.Second), time.Second)))
	}
	return ""
}

// crumb says what the table is of.
func (m *topModel) crumb() string {
	t := m.table()
	var text string
	if p, _, _ := m.shown(); m.level == levelProcessors {
		text = words.Plural(len(m.rows), "processor")
	} else if p == nil {
		return fmt.Sprintf("processor %s/%s is gone", m.stream, m.processor)
	} else {
		text = fmt.Sprintf("%s/%s, generation %d: %s", m.stream, m.processor, p.Generation, words.Plural(len(m.rows), "partition"))
		if m.level == levelMembers {
			text = fmt.Sprintf("%s/%s, generation %d: %s", m.stream, m.processor, p.Generation, words.Plural(len(m.rows), "member"))
		}
	}
	if t.filter != "" {
		text += fmt.Sprintf(" with %q", t.filter)
	}
	text += " by " + t.order.String()
	if room := m.room(); len(m.rows) > room && room > 0 {
		text += fmt.Sprintf(", %d to %d", t.top+1, min(t.top+room, len(m.rows)))
	}
	return text
}

// body is the table, or the help.
func (m *topModel) body(height int) []string {
	if m.help {
		return cut(strings.Split(topHelp, "\n"), m.width, height)
	}
	heads := m.heads()
	chosen, widths := layout(heads, m.rows, m.width)
	title := func(i int) string { return heads[i].title }
	lines := []string{styled(styleTitle, layLine(heads, chosen, widths, m.width, title))}
	t := m.table()
	for at := t.top; at < len(m.rows) && len(lines) < height; at++ {
		r := &m.rows[at]
		text := layLine(heads, chosen, widths, m.width, func(i int) string { return r.cells[i] })
		style := [...]string{calm: "", odd: styleOdd, bad: styleBad}[r.mood]
		if at == t.at {
			style += styleChosen
		}
		lines = append(lines, styled(style, text))
	}
	if len(m.rows) == 0 {
		lines = append(lines, fit(m.nothing(), m.width))
	}
	return lines[:min(len(lines), max(height, 0))]
}

func (m *topModel) heads() []head {
	return [...][]head{levelProcessors: processorHeads, levelPartitions: partitionHeads, levelMembers: memberHeads}[m.level]
}

func (m *topModel) nothing() string {
	switch {
	case m.table().filter != "":
		return "nothing has this text; Esc shows all"
	case m.level == levelMembers:
		return "no worker runs it"
	case m.level == levelPartitions:
		return ""
	case len(m.sample.App.Streams) == 0:
		return "no streams: a stream is there once its app has sent to it or run a worker"
	}
	return "no processors: a processor is there once a worker has run it"
}

// foot is what stands below the table: what is known of the selected row, or what is
// asked, then the state of things, then the keys.
func (m *topModel) foot() []string {
	var lines, state []string
	style, text := m.state()
	for _, l := range cut(wrapped(text, m.width), m.width, footRows) {
		state = append(state, styled(style, l))
	}
	if len(state) == 0 {
		state = []string{""}
	}
	switch {
	case m.help:
	case m.ask != nil:
		for _, text := range m.question() {
			lines = append(lines, wrapped(text, m.width)...)
		}
	default:
		lines = make([]string, footRows+1-len(state)) // always as high: what is above stays where it is
		copy(lines, m.details())
	}
	return append(append(lines, state...), styled(styleFaint, fit(m.keys(), m.width)))
}

// details are what the table leaves out of the selected row.
func (m *topModel) details() []string {
	r := m.row()
	if r == nil {
		return nil
	}
	heads := m.heads()
	chosen, widths := layout(heads, m.rows, m.width)
	var left, lines []string
	if last := len(heads) - 1; m.level == levelProcessors && ansi.StringWidth(r.cells[last]) > widths[last] {
		left = append(left, r.cells[last])
	}
	for i, h := range heads {
		if h.title != trendTitle && !slices.Contains(chosen, i) {
			left = append(left, strings.ToLower(h.title)+" "+r.cells[i])
		}
	}
	for _, text := range append(slices.Clone(r.detail), strings.Join(left, ", ")) {
		if text != "" {
			lines = append(lines, wrapped(text, m.width)...)
		}
	}
	return lines
}

// state is the line that says how things are: what is typed or asked, what became of
// it, or how old the numbers are.
func (m *topModel) state() (style, text string) {
	switch {
	case m.input != nil:
		return styleTitle, m.input.label + m.input.text + "_"
	case m.ask != nil && m.ask.verb == verbPause:
		return styleTitle, "y: do it, w: say why, n: leave it"
	case m.ask != nil:
		return styleTitle, "y: do it, n: leave it"
	case m.note != "" && m.wrong:
		return styleBad, m.note
	case m.broken != nil:
		return styleBad, "no new numbers, it goes on by itself: " + oneLine(m.broken)
	case m.old() != "":
		return styleOdd, "waiting for Redis"
	case m.busy != nil:
		return styleOdd, m.busy.String() + " …"
	}
	return "", m.note
}

func (m *topModel) keys() string {
	switch {
	case m.input != nil:
		return "Enter keep  Esc as before"
	case m.help:
		return "any key goes back"
	}
	keys := [...]string{levelProcessors: "Enter partitions", levelPartitions: "Tab members  Esc back", levelMembers: "Tab partitions  Esc back"}[m.level]
	if !m.readOnly {
		keys += [...]string{levelProcessors: "  p pause  r resume", levelPartitions: "  p pause  r resume  e release", levelMembers: ""}[m.level]
	}
	if keys += "  s sort  / filter  ? help"; len(keys)+8 <= m.width {
		keys += "  q quit"
	}
	return keys
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
