package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
)

// A verb is something that top can do.
type verb string

const (
	verbPause   verb = "pause"
	verbResume  verb = "resume"
	verbRelease verb = "release"
)

// A topAct is a change to make in Redis.
type topAct struct {
	verb              verb
	stream, processor string
	partition         int // -1: all of them
	why               string
	who               string
}

// String names the act, as in "pause orders/printer partition 3".
func (a *topAct) String() string {
	text := fmt.Sprintf("%s %s/%s", a.verb, a.stream, a.processor)
	if a.partition >= 0 {
		text += fmt.Sprint(" partition ", a.partition)
	}
	return text
}

func (a *topAct) scope() rules.Scope {
	if a.partition >= 0 {
		return rules.Partition(a.stream, a.processor, a.partition)
	}
	return rules.Processor(a.stream, a.processor)
}

// typing is a text that the user is typing at the foot of the screen.
type typing struct {
	label string
	text  string
	was   string // the text again after Esc
	set   func(text string)
}

// press handles a key, named as in bubbletea; typed is its text. It returns the change to make in
// Redis, nil for none, and whether top ends.
func (m *topModel) press(key, typed string) (act *topAct, quit bool) {
	switch {
	case key == "ctrl+c":
		return nil, true
	case m.input != nil:
		m.typed(key, typed)
		return nil, false
	case m.ask != nil:
		return m.answered(key), false
	case m.help:
		m.help = false
		return nil, false
	}
	m.note, m.wrong = "", false
	switch key {
	case "q":
		return nil, true
	case "?":
		m.help = true
	case "s":
		m.sort()
	case "/":
		m.filter()
	case "p":
		m.want(verbPause)
	case "r":
		m.want(verbResume)
	case "e":
		m.want(verbRelease)
	default:
		m.navigate(key)
	}
	m.scroll() // a note may change how many rows fit
	return nil, false
}

func (m *topModel) navigate(key string) {
	page := max(topView{m}.room(), 1)
	switch key {
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup", "ctrl+b":
		m.move(-page)
	case "pgdown", "ctrl+f", "space":
		m.move(page)
	case "home", "g":
		m.move(-len(m.rows))
	case "end", "G":
		m.move(len(m.rows))
	case "enter":
		if r := m.row(); m.level == levelProcessors && r != nil {
			m.enter(r.stream, r.processor)
		}
	case "tab":
		if m.level != levelProcessors {
			m.show(levelPartitions + levelMembers - m.level)
		}
	case "esc":
		if m.table().filter != "" {
			m.table().filter = ""
			m.arrange()
		} else {
			m.show(levelProcessors)
		}
	}
}

// sort changes to the next sorting of the table.
func (m *topModel) sort() {
	if m.level == levelMembers {
		m.note = "members are sorted by name"
		return
	}
	t := m.table()
	t.order = (t.order + 1) % sortings
	m.arrange()
}

func (m *topModel) filter() {
	t := m.table()
	m.input = &typing{label: "only rows with: ", text: t.filter, was: t.filter, set: func(text string) {
		t.filter = text
		m.arrange()
	}}
}

func (m *topModel) typed(key, text string) {
	in := m.input
	switch key {
	case "enter", "esc":
		if key == "esc" {
			in.text = in.was
		}
		m.input = nil
		in.set(in.text)
		return
	case "backspace":
		if r := []rune(in.text); len(r) > 0 {
			in.text = string(r[:len(r)-1])
		}
	case "ctrl+u":
		in.text = ""
	default:
		in.text += printable(text)
	}
	if in.label != whyLabel {
		in.set(in.text)
	}
}

const whyLabel = "why: "

// want asks for confirmation of an act on the selected row.
func (m *topModel) want(v verb) {
	r := m.row()
	switch {
	case m.readOnly:
		m.note, m.wrong = fmt.Sprintf("%s: not with --%s", v, flagReadOnly), true
		return
	case m.busy != nil:
		m.note, m.wrong = fmt.Sprintf("wait: %s is not done yet", m.busy), true
		return
	case r == nil || m.level == levelMembers:
		m.note, m.wrong = fmt.Sprintf("%s what? choose a processor or a partition", v), true
		return
	}
	act := &topAct{verb: v, stream: r.stream, processor: r.processor, partition: r.partition, who: m.who}
	if refusal := m.refusal(act); refusal != "" {
		m.note, m.wrong = refusal, true
		return
	}
	if v == verbPause {
		act.why = "top"
	}
	m.ask = act
}

// refusal is why an act would change nothing, "" if it would.
func (m *topModel) refusal(a *topAct) string {
	switch a.verb {
	case verbRelease:
		switch q := m.quarantine(a); {
		case a.partition < 0:
			return "release is for one partition that is quarantined: enter the processor and choose it"
		case q == nil:
			return fmt.Sprintf("partition %d is not quarantined; r ends a pause", a.partition)
		}
	case verbResume:
		if m.pause(a) != nil || m.sample.App.RulesErr != "" {
			return ""
		}
		text := fmt.Sprintf("there is no pause of %s", a.scope())
		if held := rulesOf(m.sample.App, a.scope()); len(held) > 0 {
			text += "; there is a " + strings.Join(held, ", and a ")
		}
		return text
	}
	return ""
}

// pause is the pause of exactly the scope of an act, nil if there is none.
func (m *topModel) pause(a *topAct) *inspect.RuleState {
	all := m.sample.App.Rules
	i := slices.IndexFunc(all, func(r inspect.RuleState) bool {
		return r.Kind == rules.Pause && r.Scope == a.scope().String()
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

func (m *topModel) quarantine(a *topAct) *inspect.QuarantineState {
	p, _, _ := m.shown()
	if p == nil || a.partition < 0 || a.partition >= len(p.Partitions) {
		return nil
	}
	return p.Partitions[a.partition].Quarantine
}

// answered handles a key while an act waits for confirmation.
func (m *topModel) answered(key string) *topAct {
	act := m.ask
	switch {
	case key == "y":
		m.ask, m.busy = nil, act
		return act
	case key == "w" && act.verb == verbPause:
		m.input = &typing{label: whyLabel, text: act.why, was: act.why, set: func(text string) { act.why = strings.TrimSpace(text) }}
	case key == "n" || key == "esc" || key == "q":
		m.ask = nil
		m.note = "nothing was changed"
	}
	return nil
}
