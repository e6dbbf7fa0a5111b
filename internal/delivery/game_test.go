package delivery

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// A game is a world with an owner in it.
type game struct {
	*world
	w        *Window
	version  int // of the settings that the owner knows
	spans    map[string]Span
	ahead    int64 // see stored
	running  *Batch
	tired    map[string]bool // log/ID that the owner is to send alone
	owes     *Open           // the batch that was open at the takeover
	received bool            // the receiver has the batch that is running
	given    map[string]bool // log and number, to this owner
}

// Whatever happens to logs, owners and settings: each log comes in order, what was not dropped comes, a key
// stands for one content, nothing is sent beyond an end, and all is counted at each moment.
func TestRandomGames(t *testing.T) {
	for seed := range uint64(tier.Large(2000)) {
		g := &game{world: newWorld(t, seed)}
		g.take()
		g.save()
		failovers, spans := seed%4 == 0, seed%3 > 0
		for range 150 {
			g.step(failovers, spans)
			g.judge()
		}
		g.finish(failovers && spans)
	}
}

// take is a takeover: only what was stored is left.
func (g *game) take() {
	if g.running != nil && g.IntN(2) == 0 && !g.received {
		g.receive(g.running) // a request that comes late
	}
	g.running, g.given, g.tired, g.owes = nil, map[string]bool{}, maps.Clone(g.saved.tired), nil
	var s State
	if g.saved.text != nil {
		var err error
		if s, err = ParseState(g.saved.text); err != nil {
			g.failf("%v", err)
		}
	}
	if s.Open != nil {
		g.owes = s.Open
	}
	g.w = New(s, g.settings)
	g.known()
}

// known notes that the owner has the newest settings.
func (g *game) known() {
	if g.settings.Attempts == 0 {
		g.tired = nil
	}
	g.version, g.spans = g.world.version, maps.Clone(g.settings.Spans)
	g.ahead = ahead(g.w.State(), g.spans)
}

func (g *game) apply() {
	before := *g.w.State()
	g.w.Apply(g.settings)
	if after := g.w.State(); after.Sent != before.Sent || after.Dead != before.Dead || after.Batches < before.Batches {
		g.failf("settings changed %+v to %+v", before, after)
	}
	g.known()
}

func (g *game) save() {
	if g.world.version != g.version {
		g.saved.least = 0
	}
	least := g.saved.least
	if !maps.Equal(g.saved.spans, g.spans) {
		least = 0
	}
	g.before = g.saved
	text := g.w.Encode()
	s, err := ParseState(text)
	if err != nil {
		g.failf("%v", err)
	}
	g.saved = stored{text, &s, maps.Clone(g.spans), g.ahead, least, maps.Clone(g.tired)}
	g.look(g.given)
}

// judge judges what is true at each moment.
func (g *game) judge() {
	s := g.w.State()
	if got := ahead(s, g.spans); got != g.ahead {
		g.failf("%s: sums are %d ahead of the positions, want %d", g.w.Encode(), got, g.ahead)
	}
	n := len(g.w.free)
	if g.w.open != nil {
		n += len(g.w.open.Events)
	}
	if n > 2*g.largest {
		g.failf("%d events are loaded with Max %d", n, g.largest)
	}
	if g.IntN(4) == 0 {
		g.look(g.given)
	}
	if g.settings.Retention > 0 || g.w.s.Retention > 0 {
		g.expire(g.settings.Retention, g.w.s.Retention)
	}
}

// expire excuses what is older than a retention.
func (g *game) expire(retentions ...time.Duration) {
	for _, r := range retentions {
		for _, l := range g.logs {
			for _, e := range l.there {
				if r > 0 && e.ID.MS < g.now-r.Milliseconds() {
					g.excused[name(e)] = true
				}
			}
		}
	}
}

func (g *game) step(failovers, spans bool) {
	switch x := g.IntN(100); {
	case x < 16:
		g.publish(g.any(), 1+g.IntN(6))
	case x < 18:
		g.remove(g.any(), 0, g.IntN(8))
	case x < 19:
		at := g.IntN(10)
		g.remove(g.any(), at, at+1+g.IntN(2))
	case x < 44:
		g.load(1 + g.IntN(8))
	case x < 70:
		g.next()
	case x < 84:
		g.answer(g.IntN(8))
	case x < 87:
		g.now += int64(g.IntN(120))
	case x < 91:
		g.take()
	case x < 93:
		if g.w.Unsaved() {
			g.save()
		}
	case x < 94 && failovers:
		if g.IntN(2) == 0 {
			g.failover(g.any())
		} else if g.before.text != nil { // a save is forgotten
			g.saved, g.saved.least, g.forgot = g.before, 0, true
			g.take()
		}
	case x < 95:
		g.settings.Resumed++
		g.world.version++
	case x < 96:
		g.tune()
	case x < 98 && spans:
		g.respan(g.any())
	case x < 99:
		g.byHand(g.any())
	default:
		if g.version != g.world.version {
			g.apply()
		}
	}
}

// byHand appends what has no number.
func (g *game) byHand(log string) {
	l := g.logs[log]
	l.last.MS = max(l.last.MS, g.now) + 1
	l.there = append(l.there, Event{log, ID{l.last.MS, 0}, "{}"})
}

// respan ends, begins or removes a subscription.
func (g *game) respan(log string) {
	g.settings.Spans = maps.Clone(g.settings.Spans)
	span, named := g.settings.Spans[log]
	l := g.logs[log]
	switch {
	case !named || span.End > 0:
		if g.saved.spans[log].From != span.From {
			g.excuse(l) // nobody has ever known that span
		}
		g.settings.Spans[log] = Span{From: l.last}
	case g.IntN(3) == 0 || l.last.N == 0:
		delete(g.settings.Spans, log)
		g.excuse(l)
	default:
		span.End = l.last.N
		g.settings.Spans[log] = span
	}
	g.world.version++
}

func (g *game) excuse(l *list) {
	for _, e := range l.there {
		g.excused[name(e)] = true
	}
}

// load lets the owner read a log, at most so many entries.
func (g *game) load(most int) {
	wants := wants(g.w)
	for _, log := range slices.Sorted(maps.Keys(wants)) {
		if g.IntN(2) == 0 {
			continue
		}
		behind := wants[log]
		events := g.behind(log, behind)
		events = events[:min(len(events), most)]
		if len(events) > 0 && g.IntN(4) == 0 { // and what it had before
			for _, e := range slices.Backward(g.logs[log].there) {
				if e.ID.Compare(events[0].ID) < 0 && len(events) < 3*most {
					events = slices.Insert(events, 0, e)
				}
			}
		}
		for _, e := range events {
			g.given[fmt.Sprint(log, e.ID.N)] = true
		}
		if g.w.Load(log, events) > 0 {
			g.ahead = ahead(g.w.State(), g.spans)
		}
	}
}

// next begins what is to be begun, and stores it first.
func (g *game) next() {
	last := g.w.State().Batches
	b, at := g.w.Next(time.UnixMilli(g.now))
	if b == nil {
		if !at.IsZero() && g.IntN(3) == 0 {
			g.now = max(g.now, at.UnixMilli())
		}
		return
	}
	if g.running != nil {
		g.failf("batch %d begins while %d runs", b.No, g.running.No)
	}
	if b.No > last {
		g.begun(b)
	}
	if g.owes != nil && b.No != g.owes.No && g.seed%4 > 0 { // without failovers
		g.repeatable()
	}
	g.owes = nil
	if g.version != g.world.version {
		g.w.Undo(b)
		if got := g.w.State().Batches; got > last {
			g.failf("after Undo the last batch is %d, want %d", got, last)
		}
		g.judge()
		g.apply()
		return
	}
	g.save()
	g.running, g.received = b, false
}

// begun judges a batch that is new.
func (g *game) begun(b *Batch) {
	size := 0
	for i, e := range b.Events {
		size += len(e.Payload)
		span, named := g.spans[e.Log]
		if !named || span.End > 0 && e.ID.N > span.End {
			g.failf("%s is begun, its span is %+v", name(e), span)
		}
		if len(b.Events) > 1 && g.tired[name(e)] {
			g.failf("%s is not sent alone", name(e))
		}
		if i > 0 && compareEvents(b.Events[i-1], e) >= 0 {
			g.failf("%s comes behind %s", name(e), name(b.Events[i-1]))
		}
	}
	if s := g.w.s; len(b.Events) == 0 || len(b.Events) > s.Max || s.Bytes > 0 && size > s.Bytes && len(b.Events) > 1 {
		g.failf("a batch of %d events, %d bytes: %+v", len(b.Events), size, s)
	}
}

func (g *game) tire(id string) {
	if g.tired == nil {
		g.tired = map[string]bool{}
	}
	g.tired[id] = true
}

// repeatable judges that there was a reason not to repeat a batch.
func (g *game) repeatable() {
	for log, members := range g.owes.Members {
		if _, named := g.spans[log]; !named {
			return
		}
		n := members.count(0, members.last())
		for _, e := range g.logs[log].there {
			if in(e.ID.N, members) && !g.excused[name(e)] {
				n--
			}
		}
		if n > 0 {
			return
		}
	}
	g.failf("batch %+v was not repeated: %s", g.owes, g.w.Encode())
}

// answer lets a request end, one way or another.
func (g *game) answer(how int) {
	if g.running == nil {
		return
	}
	b, now, until := g.running, time.UnixMilli(g.now), time.UnixMilli(g.now+int64(g.IntN(40)))
	if !g.received && how != 0 && how != 2 {
		g.receive(b)
	}
	g.running = nil
	switch how {
	case 0, 1:
		if most := g.w.s.Attempts; most > 0 && b.Attempt >= most && b == g.w.open && len(b.Events) > 1 {
			for _, e := range b.Events {
				g.tire(name(e))
			}
		}
		g.w.Fail(b, now, until, Answer{Status: 500})
	case 2:
		g.w.Halve(b, now, until, Answer{Status: 413})
	case 3:
		g.w.Fail(b, now, until, Answer{Status: 410})
		g.w.Disable("gone")
		g.settings.Resumed++
		g.world.version++
	default:
		g.w.Done(b, now, Answer{Status: 200})
	}
	for log := range b.Members {
		if _, named := g.spans[log]; !named {
			g.ahead = ahead(g.w.State(), g.spans) // its position is gone
		}
	}
	for _, letter := range g.w.Letters() {
		g.excused[name(letter.Event)] = true
	}
	if g.IntN(2) == 0 {
		g.save()
	}
}
