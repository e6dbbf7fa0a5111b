package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

func ids(rows []topRow) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.id)
	}
	return strings.Join(out, " ")
}

func TestTopSortsAndFilters(t *testing.T) {
	for _, tt := range []struct{ keys, rows string }{
		{"", "mails/mailer orders/printer orders/audit"},
		{"s", "orders/printer mails/mailer orders/audit"},     // lag
		{"s s", "orders/printer mails/mailer orders/audit"},   // age
		{"s s s", "orders/printer mails/mailer orders/audit"}, // rate: unknown ones last, by name
		{"s s s s", "mails/mailer orders/printer orders/audit"},
		{"/ O R D E R S", "orders/printer orders/audit"},
		{"/ a u d enter", "orders/audit"},
		{"/ a u d backspace backspace", "mails/mailer orders/printer orders/audit"},
		{"/ a u d esc", "mails/mailer orders/printer orders/audit"},
		{"/ a u d enter esc", "mails/mailer orders/printer orders/audit"},
		{"down enter", "0 1 2 3"},
		{"down enter s", "3 1 2 0"},
		{"down enter s s", "1 2 3 0"},
		{"down enter s s s", "1 0 2 3"},
		{"down enter / q u a r", "2"},
		{"down enter tab", "aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbb"},
		{"down enter tab s", "aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbb"},
		{"down enter tab tab", "0 1 2 3"},
		{"down enter tab esc", "mails/mailer orders/printer orders/audit"},
		{"tab", "mails/mailer orders/printer orders/audit"},
	} {
		m := topAt(80, 24)
		m.pressed(tt.keys)
		if got := ids(m.rows); got != tt.rows {
			t.Errorf("%q: %s, want %s", tt.keys, got, tt.rows)
		}
	}
}

func TestTopQuits(t *testing.T) {
	for keys, want := range map[string]bool{"q": true, "ctrl+c": true, "/ q": false, "/ ctrl+c": true, "p q": false, "p ctrl+c": true, "? q": false, "? q q": true, "esc": false} {
		m := topAt(80, 24)
		if _, quit := m.pressed(keys); quit != want {
			t.Errorf("%q: %v", keys, quit)
		}
	}
}

// An act needs a y, and acts on the row of its question.
func TestTopActsOnlyAfterAYes(t *testing.T) {
	for _, tt := range []struct {
		keys string
		want string // verb, what and why; "" for nothing
	}{
		{"down p", ""},
		{"down p n", ""},
		{"down p enter", ""},
		{"down p esc", ""},
		{"down p y", "pause orders/printer: top"},
		{"down p w ctrl+u i n k enter y", "pause orders/printer: ink"},
		{"down p w i n k esc y", "pause orders/printer: top"},
		{"down p w y enter n", ""},
		{"down enter down p y", "pause orders/printer partition 1: top"},
		{"down u y", ""},
		{"down enter end r y", "resume orders/printer partition 3: "},
		{"down enter down down e y", "release orders/printer partition 2: "},
		{"down enter e y", ""},
		{"down r y", ""},
		{"down e y", ""},
		{"down enter tab p y", ""},
	} {
		m := topAt(80, 24)
		act, _ := m.pressed(tt.keys)
		got := ""
		if act != nil {
			got = act.String() + ": " + act.why
		}
		if got != tt.want || act != nil && act.who != "ada@host" {
			t.Errorf("%q: %q, want %q", tt.keys, got, tt.want)
		}
	}
}

// Acts run one at a time. The outcome is shown until the next key.
func TestTopShowsTheOutcomeOfAnAct(t *testing.T) {
	m := topAt(80, 24)
	m.pressed("down p y")
	if text := m.text(t); !strings.Contains(text, "pause orders/printer …") {
		t.Error(text)
	}
	if act, _ := m.pressed("p"); act != nil || !strings.Contains(m.text(t), "wait: pause orders/printer is not done yet") {
		t.Errorf("%v\n%s", act, m.text(t))
	}
	m.acted("", errors.New("pause orders/printer: no Redis"))
	m.sampled(topSample(), topNow)
	m.failed(errors.New("gone"), topNow)
	if text := m.text(t); !strings.Contains(text, "pause orders/printer: no Redis") || !strings.Contains(text, "1s OLD") {
		t.Error(text)
	}
	m.pressed("down")
	if text := m.text(t); strings.Contains(text, "no Redis") {
		t.Error(text)
	}
	if act, _ := m.pressed("p y"); act == nil {
		t.Error("no act after an error")
	}
}

func TestTopReadOnly(t *testing.T) {
	m := newTopModel(time.Second, "ada@host", true)
	m.sampled(topSample(), topNow)
	m.resized(80, 24)
	for _, keys := range []string{"down p", "r", "enter end r", "up e"} {
		if act, _ := m.pressed(keys); act != nil || !strings.Contains(m.text(t), "not with --read-only") {
			t.Errorf("%q: %v\n%s", keys, act, m.text(t))
		}
	}
	if strings.Contains(topView{m}.keys(), "pause") {
		t.Error(topView{m}.keys())
	}
}

// The selection follows its row. When the row is gone, the one in its place is selected.
func TestTopKeepsTheSelection(t *testing.T) {
	m := topAt(80, 24)
	m.pressed("down down")
	s := topSample()
	s.App.Streams, s.Rates = s.App.Streams[1:], s.Rates[1:]
	m.sampled(s, topNow)
	if r := m.row(); r.id != "orders/audit" {
		t.Errorf("selected %s", r.id)
	}
	s = topSample()
	s.App.Streams[1].Processors, s.Rates[1].Processors = s.App.Streams[1].Processors[:1], s.Rates[1].Processors[:1]
	m.sampled(s, topNow)
	if r := m.row(); r.id != "orders/printer" {
		t.Errorf("selected %s after the last row went", r.id)
	}
	m.sampled(&inspect.Sample{App: &inspect.AppState{}}, topNow)
	if act, _ := m.pressed("p y enter"); act != nil || m.row() != nil {
		t.Error("an act without a row")
	}
}

func TestTopTrends(t *testing.T) {
	m := topAt(80, 24)
	for lag := range int64(20) {
		s := topSample()
		s.App.Streams[0].Processors[0].Totals.Lag = lag
		m.sampled(s, topNow)
	}
	if got, want := m.rows[0].cells[4], "▃▄▄▅▅▅▆▆▆▇▇█"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := sparks([]int64{0, 0}); got != "▁▁" {
		t.Errorf("no lag is %s", got)
	}
}
