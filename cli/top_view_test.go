package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/runnel-go/runnel/internal/inspect"
)

var updateTop = flag.Bool("update", false, "rewrite the screens in testdata/top")

var topNow = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// topSample is an app with two streams and three processors: printer has a quarantined partition, a
// paused one, and a dead member; no worker runs audit.
func topSample() *inspect.Sample {
	rate := func(v float64) *float64 { return &v }
	running := topNow.Add(-90 * time.Second)
	printer := inspect.ProcessorState{
		Stream: "orders", Processor: "printer", Generation: 7,
		Members: []inspect.MemberState{
			{Executor: "aaaaaaaaaaaaaaaa", Worker: "web-1", JoinedAt: topNow.Add(-time.Hour), Alive: true, HeartbeatLeft: 8000, Assigned: []int{0, 1}, Running: map[int]time.Time{1: running}},
			{Executor: "bbbbbbbbbbbbbbbb", Worker: "web-2", JoinedAt: topNow.Add(-time.Minute), Assigned: []int{2, 3}, Pinned: []int{3}},
		},
		Partitions: []inspect.PartitionState{
			{Partition: 0, Executor: "aaaaaaaaaaaaaaaa", Worker: "web-1", LockLeft: 8000, Epoch: 1767366000000, Appended: 100, Floor: "1767366000000-0", End: "1767366000000-0"},
			{Partition: 1, Executor: "aaaaaaaaaaaaaaaa", Worker: "web-1", LockLeft: 8000, Epoch: 1767366000001, Appended: 90, Lag: 12, Pending: 4, Oldest: "1-0", Age: 90_000, RunningSince: &running},
			{Partition: 2, Appended: 80, Lag: 7, Oldest: "1-0", Age: 61_000, Parked: 3, Dead: 2, Quarantine: &inspect.QuarantineState{Reason: "no paper\x1b[31m in the printer", Event: "1-0", Worker: "web-2", At: topNow.Add(-time.Minute)}},
			{Partition: 3, Appended: 70, Lag: 1000, LagMore: true, Oldest: "1-0", Age: 5000, Held: "pause", Lost: 1},
		},
		Pins: map[int]string{3: "web-2"},
	}
	printer.Totals = inspect.Sum(printer.Partitions)
	idle := inspect.ProcessorState{Stream: "orders", Processor: "audit", Partitions: make([]inspect.PartitionState, 4)}
	idle.Partitions[3].Err = "wrong type"
	idle.Totals = inspect.Sum(idle.Partitions)
	mailer := inspect.ProcessorState{
		Stream: "mails", Processor: "mailer", Members: printer.Members[:1],
		Partitions: []inspect.PartitionState{{Executor: "aaaaaaaaaaaaaaaa", Lag: 3, Age: 400, Oldest: "1-0"}},
	}
	mailer.Totals = inspect.Sum(mailer.Partitions)
	return &inspect.Sample{
		App: &inspect.AppState{
			App: "shop", Redis: "127.0.0.1:6379", Leader: "web-1", At: topNow,
			Rules: []inspect.RuleState{{Kind: "pause", Scope: "partition:orders/printer/3", Who: "ada", Why: "ink", At: topNow.Add(-time.Minute)}},
			Streams: []inspect.StreamState{
				{Stream: "mails", Partitions: 1, Processors: []inspect.ProcessorState{mailer}},
				{Stream: "orders", Partitions: 4, Processors: []inspect.ProcessorState{printer, idle}},
			},
		},
		Rates: []inspect.StreamRates{
			{Stream: "mails", Appended: rate(0), Processors: []inspect.ProcessorRates{{Processor: "mailer", Partitions: []*float64{nil}}}},
			{Stream: "orders", Appended: rate(1234.5), Processors: []inspect.ProcessorRates{
				{Processor: "printer", Done: rate(8.25), Partitions: []*float64{rate(0), rate(8.25), rate(0), nil}},
				{Processor: "audit", Partitions: make([]*float64, 4)},
			}},
		},
	}
}

func topAt(width, height int) *topModel {
	m := newTopModel(2*time.Second, "ada@host", false)
	m.sampled(topSample(), topNow)
	m.resized(width, height)
	return m
}

// pressed presses keys, separated by spaces, and returns the act and whether top ends.
func (m *topModel) pressed(keys string) (act *topAct, quit bool) {
	for _, key := range strings.Fields(keys) {
		typed := ""
		if len(key) == 1 {
			typed = key
		}
		a, q := m.press(key, typed)
		if a != nil {
			act = a
		}
		quit = quit || q
	}
	return act, quit
}

// text returns the screen without styles, and checks that it fits the window.
func (m *topModel) text(t *testing.T) string {
	t.Helper()
	lines := topView{m}.draw()
	if len(lines) > m.height {
		t.Errorf("%d lines in a window of %d", len(lines), m.height)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > m.width {
			t.Errorf("line %d is %d wide in a window of %d: %q", i, w, m.width, l)
		}
		lines[i] = strings.TrimRight(ansi.Strip(l), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestTopScreens(t *testing.T) {
	for _, tt := range []struct {
		name          string
		width, height int
		keys          string
		then          func(*topModel)
	}{
		{"processors", 80, 24, "down", nil},
		{"processors-wide", 180, 12, "", nil},
		{"partitions", 80, 24, "down enter", nil},
		{"partition-quarantined", 100, 16, "down enter down down", nil},
		{"partition-running", 80, 14, "down enter down", nil},
		{"members", 80, 24, "down enter tab", nil},
		{"members-wide", 120, 12, "down enter tab down", nil},
		{"unknown", 80, 12, "end enter end", nil},
		{"help", 80, 24, "?", nil},
		{"filter", 80, 12, "/ a u d", nil},
		{"filter-nothing", 80, 12, "/ x y z enter", nil},
		{"pause", 80, 24, "down p", nil},
		{"pause-again", 80, 24, "down enter end p", nil},
		{"resume", 80, 24, "down enter end r", nil},
		{"resume-nothing", 80, 24, "down r", nil},
		{"release", 80, 24, "down enter down down e", nil},
		{"broken", 80, 12, "", func(m *topModel) { m.failed(errors.New("no Redis at 127.0.0.1:6379"), topNow.Add(14*time.Second)) }},
		{"waiting", 80, 12, "", func(m *topModel) { m.ticked(topNow.Add(9 * time.Second)) }},
		{"tiny", 24, 4, "down", nil},
		{"nothing", 80, 10, "", func(m *topModel) {
			m.sampled(&inspect.Sample{App: &inspect.AppState{App: "shop", Redis: "127.0.0.1:6379"}}, topNow)
		}},
		{"gone", 80, 10, "down enter", func(m *topModel) {
			m.sampled(&inspect.Sample{App: &inspect.AppState{App: "shop", Redis: "127.0.0.1:6379"}}, topNow)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := topAt(tt.width, tt.height)
			m.pressed(tt.keys)
			if tt.then != nil {
				tt.then(m)
			}
			got := m.text(t)
			path := filepath.Join("testdata", "top", tt.name+".txt")
			if *updateTop {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// top fits any window, however small.
func TestTopInEveryWindow(t *testing.T) {
	for _, keys := range []string{"", "down enter", "down enter tab", "?", "p", "down enter down down r", "/ x"} {
		for _, height := range []int{0, 1, 2, 3, 5, 8, 40} {
			for _, width := range []int{0, 1, 2, 7, 20, 79, 300} {
				m := topAt(width, height)
				m.pressed(keys)
				m.text(t)
			}
		}
	}
}

// Rows that need attention have a color, and foreign texts do not control the terminal.
func TestTopStyles(t *testing.T) {
	m := topAt(120, 24)
	m.pressed("down enter")
	all := strings.Join(topView{m}.draw(), "\n")
	for _, want := range []string{
		styleChosen + "        0  web-1", styleOdd + "        1  web-1", styleBad + "        2  -", "no paper?[31m in the",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %q", want, all)
		}
	}
	if strings.Contains(all, "paper\x1b") {
		t.Errorf("an escape sequence of a reason: %q", all)
	}
}

// manyPartitions is a processor with n partitions, the lag growing with the number.
func manyPartitions(n int) *inspect.Sample {
	s := topSample()
	p := &s.App.Streams[0].Processors[0]
	p.Partitions = make([]inspect.PartitionState, n)
	s.Rates[0].Processors[0].Partitions = make([]*float64, n)
	for i := range p.Partitions {
		p.Partitions[i] = inspect.PartitionState{Partition: i, Executor: "aaaaaaaaaaaaaaaa", Worker: "web-1", Lag: int64(i), Oldest: "1-0"}
	}
	p.Totals = inspect.Sum(p.Partitions)
	return s
}

func TestTopScrollsOverManyPartitions(t *testing.T) {
	m := topAt(80, 24)
	m.sampled(manyPartitions(1024), topNow)
	m.pressed("enter")
	numbers := func() (out []int) {
		for _, l := range strings.Split(m.text(t), "\n") {
			var n int
			var worker string
			if _, err := fmt.Sscanf(l, "%d %s", &n, &worker); err == nil && worker == "web-1" {
				out = append(out, n)
			}
		}
		return out
	}
	rows := topView{m}.room()
	for _, tt := range []struct {
		keys        string
		first, last int
		selected    string
	}{
		{"", 0, rows - 1, "0"},
		{"pgdown", 1, rows, fmt.Sprint(rows)},
		{"end", 1024 - rows, 1023, "1023"},
		{"up", 1024 - rows, 1023, "1022"},
		{"pgup pgup", 1022 - 2*rows, 1021 - rows, fmt.Sprint(1022 - 2*rows)},
		{"home", 0, rows - 1, "0"},
		{"down k j", 0, rows - 1, "1"},
		{"s", 1023, 1024 - rows, "1"},    // by lag; the selection moves along
		{"s s s home", 0, rows - 1, "0"}, // by name again
	} {
		m.pressed(tt.keys)
		got := numbers()
		if tt.keys == "s" {
			if got[0] > 30 || m.tables[m.level].selected != "1" {
				t.Errorf("sorted by lag: %v, selected %s", got, m.tables[m.level].selected)
			}
			continue
		}
		if len(got) != rows || got[0] != tt.first || got[rows-1] != tt.last || m.tables[m.level].selected != tt.selected {
			t.Errorf("%q: %v, selected %s; want %d to %d, %s", tt.keys, got, m.tables[m.level].selected, tt.first, tt.last, tt.selected)
		}
	}
	if !slices.Contains(strings.Fields(m.text(t)), "1024") {
		t.Error("the number of partitions is not shown")
	}
}
