package cli

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

// trendLooks is how many looks a trend goes back.
const trendLooks = 12

// A level is one of the tables that top shows.
type level int

const (
	levelProcessors level = iota
	levelPartitions
	levelMembers
	levels
)

// A sorting of rows: by name ascending, or by a number descending.
type sorting int

const (
	byName sorting = iota
	byLag
	byAge
	byRate
	sortings
)

func (o sorting) String() string { return [...]string{"name", "lag", "age", "rate"}[o] }

// A choice is what the user chose in one of the tables.
type choice struct {
	order    sorting
	filter   string
	selected string // id of a row
	at       int    // index of that row, or where it was
	top      int    // index of the first row shown
}

// A topModel is the state of top. Messages change it, and a topView draws it. It does no I/O:
// press returns the changes to make in Redis.
type topModel struct {
	every    time.Duration
	who      string // recorded with rules
	readOnly bool

	width, height int
	now           time.Time

	sample *inspect.Sample
	at     time.Time          // when the sample arrived
	broken error              // of the last look, nil if it succeeded
	trends map[string][]int64 // lag at the last looks, by processor

	level             level
	stream, processor string // whose partitions and members are shown
	tables            [levels]choice
	rows              []topRow // of the table, filtered and sorted

	help  bool
	input *typing // nil: no text is being typed
	ask   *topAct // waits for confirmation
	busy  *topAct // under way
	note  string  // outcome of the last key
	wrong bool    // the note is an error
}

func newTopModel(every time.Duration, who string, readOnly bool) *topModel {
	return &topModel{every: every, who: who, readOnly: readOnly, trends: map[string][]int64{}}
}

// sampled takes a new sample.
func (m *topModel) sampled(s *inspect.Sample, now time.Time) {
	m.sample, m.at, m.now, m.broken = s, now, now, nil
	trends := map[string][]int64{}
	for _, p := range s.App.Processors() {
		id := p.Stream + "/" + p.Processor
		trend := append(slices.Clone(m.trends[id]), p.Totals.Lag)
		trends[id] = trend[max(len(trend)-trendLooks, 0):]
	}
	m.trends = trends
	m.arrange()
}

// failed notes that a look failed. The numbers stay.
func (m *topModel) failed(err error, now time.Time) { m.broken, m.now = err, now }

func (m *topModel) ticked(now time.Time) { m.now = now }

func (m *topModel) resized(width, height int) {
	m.width, m.height = width, height
	m.scroll()
}

// acted notes the outcome of an act.
func (m *topModel) acted(text string, err error) {
	m.busy = nil
	if m.note, m.wrong = text, err != nil; m.wrong {
		m.note = oneLine(err)
	}
}

// enter shows the partitions of a processor.
func (m *topModel) enter(stream, processor string) {
	m.level, m.stream, m.processor = levelPartitions, stream, processor
	m.tables[levelPartitions], m.tables[levelMembers] = choice{}, choice{}
	m.arrange()
}

func (m *topModel) show(l level) {
	m.level = l
	m.arrange()
}

func (m *topModel) table() *choice { return &m.tables[m.level] }

// shown is the processor whose partitions and members are shown, nil if it is gone, and its place in
// the sample.
func (m *topModel) shown() (p *inspect.ProcessorState, stream, processor int) {
	for i := range m.sample.App.Streams {
		for j := range m.sample.App.Streams[i].Processors {
			if p := &m.sample.App.Streams[i].Processors[j]; p.Stream == m.stream && p.Processor == m.processor {
				return p, i, j
			}
		}
	}
	return nil, 0, 0
}

// arrange makes the rows of the table.
func (m *topModel) arrange() {
	var rows []topRow
	p, stream, processor := m.shown()
	switch {
	case m.level == levelProcessors:
		rows = processorRows(m.sample, func(id string) string { return sparks(m.trends[id]) })
	case p == nil:
	case m.level == levelPartitions:
		rows = partitionRows(m.sample, stream, processor, m.now)
	default:
		rows = memberRows(p, m.now)
	}
	t := m.table()
	m.rows = slices.DeleteFunc(rows, func(r topRow) bool { return !r.matches(t.filter) })
	sort.SliceStable(m.rows, func(i, j int) bool {
		a, b := &m.rows[i], &m.rows[j]
		return [sortings]bool{byLag: a.lag > b.lag, byAge: a.age > b.age, byRate: a.rate > b.rate}[t.order]
	})
	m.scroll()
}

func (r *topRow) matches(filter string) bool {
	return filter == "" || strings.Contains(strings.ToLower(strings.Join(r.cells, " ")), strings.ToLower(filter))
}

// scroll finds the selected row again, or selects the one now in its place, and keeps it visible.
func (m *topModel) scroll() {
	t := m.table()
	if at := slices.IndexFunc(m.rows, func(r topRow) bool { return r.id == t.selected }); at >= 0 && t.selected != "" {
		t.at = at
	}
	t.at = max(min(t.at, len(m.rows)-1), 0)
	t.selected = ""
	if len(m.rows) > 0 {
		t.selected = m.rows[t.at].id
	}
	room := max(topView{m}.room(), 1)
	t.top = max(min(t.top, t.at, len(m.rows)-room), t.at-room+1, 0)
}

// move selects the row that is by rows further down.
func (m *topModel) move(by int) {
	t := m.table()
	t.at = max(min(t.at+by, len(m.rows)-1), 0)
	t.selected = ""
	m.scroll()
}

// row is the selected row, nil if there is none.
func (m *topModel) row() *topRow {
	if len(m.rows) == 0 {
		return nil
	}
	return &m.rows[m.table().at]
}
