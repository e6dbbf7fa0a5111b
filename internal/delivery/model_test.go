package delivery

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A world is what the model knows: the logs as lists, what the receiver has, and what was stored.
type world struct {
	*rand.Rand
	t    *testing.T
	seed uint64
	now  int64
	logs map[string]*list

	settings Settings // as stored, the newest
	version  int      // of them
	saved    stored
	before   stored // what was saved before
	forgot   bool   // a save, and with it what was dropped

	got     map[string]bool   // log/ID that the receiver has
	newest  map[string]ID     // by log: the newest that came for the first time
	content map[string]string // by key
	keys    map[string]string // by content
	owed    map[string]bool   // log/ID that was published while somebody wanted it
	excused map[string]bool   // log/ID that need not come: removed, too old, dead or not wanted anymore
	largest int               // Max there ever was
}

// A list is a log.
type list struct {
	there []Event
	last  ID
}

// stored is a state, with the spans that its owner knew, and by how much sums are ahead of the positions in these.
type stored struct {
	text  []byte
	state *State // that is read from it
	spans map[string]Span
	ahead int64
	least int64           // that must be dropped
	tired map[string]bool // log/ID that are to be sent alone
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, seed: seed, now: 1_000_000, logs: map[string]*list{},
		got: map[string]bool{}, newest: map[string]ID{}, content: map[string]string{}, keys: map[string]string{}, owed: map[string]bool{}, excused: map[string]bool{}}
	w.settings = Settings{Spans: map[string]Span{}}
	for _, log := range []string{"a", "b", "c"}[:1+w.IntN(3)] {
		w.logs[log] = &list{}
		w.publish(log, w.IntN(4))
		w.settings.Spans[log] = Span{From: w.logs[log].last}
	}
	w.tune()
	return w
}

// tune changes all settings but spans.
func (w *world) tune() {
	s := &w.settings
	s.Max = []int{1, 2, 3, 7}[w.IntN(4)]
	s.Bytes = []int{0, 0, 40}[w.IntN(3)]
	s.Timeout = ms(int64(w.IntN(60)))
	s.Attempts = []int{0, 0, 1, 3}[w.IntN(4)]
	s.Retention = ms([]int64{0, 0, 300}[w.IntN(3)])
	s.DisableAfter = ms([]int64{0, 200}[w.IntN(2)])
	w.largest = max(w.largest, s.Max)
	w.version++
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func name(e Event) string { return e.Log + "/" + e.ID.String() }

func (w *world) any() string { return slices.Sorted(maps.Keys(w.logs))[w.IntN(len(w.logs))] }

func (w *world) publish(log string, n int) {
	l := w.logs[log]
	for range n {
		l.last = ID{max(l.last.MS, w.now), l.last.N + 1}
		e := Event{log, l.last, fmt.Sprintf(`{"at":%d,"x":%q}`, w.now, strings.Repeat("x", w.IntN(12)))}
		l.there = append(l.there, e)
		if span, named := w.settings.Spans[log]; named && span.End == 0 {
			w.owed[name(e)] = true
		}
		w.now += int64(w.IntN(2))
	}
}

// remove removes entries of a log, whoever needs them.
func (w *world) remove(log string, from, to int) {
	l := w.logs[log]
	to = min(to, len(l.there))
	from = min(from, to)
	for _, e := range l.there[from:to] {
		w.excused[name(e)] = true
	}
	l.there = slices.Delete(slices.Clone(l.there), from, to)
}

// behind returns what a log has behind an ID.
func (w *world) behind(log string, id ID) []Event {
	there := w.logs[log].there
	at, _ := slices.BinarySearchFunc(there, id, func(e Event, id ID) int { return cmp.Or(e.ID.Compare(id), -1) })
	return slices.Clone(there[at:])
}

// failover makes a log forget its newest entries, and give their numbers to others.
func (w *world) failover(log string) {
	l := w.logs[log]
	cut := l.last.N - int64(w.IntN(6))
	w.now = max(w.now, l.last.MS) + 1
	for _, e := range l.there {
		if e.ID.N > cut {
			w.excused[name(e)] = true
		}
	}
	l.there = slices.DeleteFunc(slices.Clone(l.there), func(e Event) bool { return e.ID.N > cut })
	l.last = ID{w.now, max(0, cut)}
	w.now++
	w.saved.least = 0
}

// receive judges a request that the receiver gets.
func (w *world) receive(b *Batch) {
	var ids []string
	for _, e := range b.Events {
		ids = append(ids, name(e))
		if forgotten := w.forgot && w.excused[name(e)]; !forgotten && !w.got[name(e)] && e.ID.Compare(w.newest[e.Log]) <= 0 {
			w.failf("%s came for the first time behind %s", name(e), w.newest[e.Log])
		}
		if w.got[name(e)] = true; e.ID.Compare(w.newest[e.Log]) > 0 {
			w.newest[e.Log] = e.ID
		}
	}
	content, key := strings.Join(ids, " ")+string(b.Body()), b.Key("bus", "mail")
	if was, again := w.content[key]; again && was != content {
		w.failf("key %s came with\n%s, then with\n%s", key, was, content)
	}
	if was, again := w.keys[content]; again && was != key {
		w.failf("%s has the keys %s and %s", content, was, key)
	}
	w.content[key], w.keys[content] = content, key
}

// passed returns how many numbers the positions have passed.
func passed(s *State, spans map[string]Span) (n int64) {
	for log, span := range spans {
		if at, ok := s.Settled[log]; ok {
			n += at.N - span.From.N
		} else if end, ok := s.Ended[log]; ok {
			n += end.N - span.From.N
		}
	}
	return n
}

// ahead returns by how much the sums are ahead of the positions: what was passed in spans that are no longer there.
func ahead(s *State, spans map[string]Span) int64 {
	return s.Sent + s.Dropped + s.Dead - passed(s, spans)
}

func (w *world) extents() map[string]Extent {
	all := map[string]Extent{}
	for log, l := range w.logs {
		x := Extent{Last: l.last}
		for _, e := range l.there {
			if x.First == (ID{}) && e.ID.N > 0 {
				x.First = e.ID
			}
		}
		all[log] = x
	}
	return all
}

// look compares the figures of what is stored with a count of each number, and with the positions. What the owner was given
// may come although its log has lost it.
func (w *world) look(given map[string]bool) {
	s, extents, spans := w.saved.state, w.extents(), w.saved.spans
	got := s.Figures(spans, extents)
	want := Figures{Sent: s.Sent, Dropped: s.Dropped, Dead: s.Dead, Failed: s.Failed}
	total, held := w.saved.ahead, int64(0)
	for log, span := range spans {
		at, known := s.Settled[log]
		if end, ended := s.Ended[log]; ended && !known {
			total += end.N - span.From.N
			continue
		} else if !known {
			at = span.From
		}
		x, members := extents[log], s.members(log)
		end := x.Last.N
		if span.End > 0 {
			end = min(end, span.End)
		}
		end = max(end, at.N, members.last())
		total += end - span.From.N
		for n := at.N + 1; n <= end; n++ {
			switch {
			case in(n, members), x.First.N > 0 && n >= x.First.N, n > x.Last.N, span.End > 0 && n > span.End:
				want.Queued++
			default:
				want.Dropped++
				if given[fmt.Sprint(log, n)] {
					held++
				}
			}
		}
	}
	for log, at := range s.Settled {
		if _, named := spans[log]; !named { // a batch runs all the same
			n := max(0, s.members(log).last()-at.N)
			want.Queued += n
			total += n
		}
	}
	if got != want {
		w.failf("%s: figures\n%+v, want\n%+v", w.saved.text, got, want)
	}
	if sum := got.Sent + got.Queued + got.Dropped + got.Dead; sum != total || min(got.Sent, got.Queued, got.Dropped, got.Dead) < 0 {
		w.failf("%s: figures %+v are %d together, want %d", w.saved.text, got, sum, total)
	}
	if got.Dropped-held < w.saved.least {
		w.failf("%s: %d dropped, %d of them given to the owner; before %d", w.saved.text, got.Dropped, held, w.saved.least)
	}
	w.saved.least = got.Dropped - held
}

func in(n int64, r Runs) bool {
	return slices.ContainsFunc(r, func(run Run) bool { return run.First <= n && n <= run.Last })
}

// finish lets everything work again, and wants all that is still owed.
func (g *game) finish(lax bool) {
	g.settings.Resumed++
	g.world.version++
	g.settings.Attempts, g.settings.Retention, g.settings.Max = 0, 0, 7
	g.largest = 7
	g.answer(7)
	g.apply()
	for rounds := 0; ; rounds++ {
		g.now += 100
		idle := true
		for log, behind := range wants(g.w) {
			events := g.behind(log, behind)
			if g.w.Load(log, events) > 0 {
				g.ahead = ahead(g.w.State(), g.spans)
			}
			idle = idle && len(events) == 0
		}
		g.next()
		if idle && g.w.running == nil && len(g.w.free) == 0 {
			break
		}
		if rounds > 2000 {
			g.failf("not done after %d rounds: %s", rounds, g.w.Encode())
		}
		g.answer(7)
	}
	g.judge()
	s := g.w.State()
	for id := range g.owed {
		if !g.got[id] && !g.excused[id] && !lax {
			g.failf("%s never came: %+v, %s", id, g.settings.Spans, g.w.Encode())
		}
	}
	for log, span := range g.settings.Spans {
		l := g.logs[log]
		if at, known := s.Settled[log]; known && len(l.there) > 0 && at.N < l.there[len(l.there)-1].ID.N || !known && span.End == 0 {
			g.failf("%s stands at %v, its last entry is %v: %s", log, at, l.last, g.w.Encode())
		}
	}
	if s.Open != nil {
		g.failf("a batch is still open: %s", g.w.Encode())
	}
}
