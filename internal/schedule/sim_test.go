package schedule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A sim is what workers do, one step at a time, in an order that a seed chooses.
type sim struct {
	*testing.T
	*net
	rdb *redis.Client
	s   *Scheduler
	r   *rand.Rand

	acked  [parts]string // what the consumer of facts has acked
	alive  []string      // runners
	hired  int
	runs   []held          // in the memory of runners that live
	ghosts []held          // of runners that are taken for dead, and are not
	last   map[Place]Run   // the attempt that was taken last
	paused map[string]bool // by job
	ops    []*rerun        // waiting
	done   []*rerun
	number int64 // of the last operation

	long    int // so many runs take long
	forgets bool
	looked  *look
	gone    map[Place]Cell

	faults []string
	counts map[string]int
}

type held struct {
	Run
	runner string
}

type look struct {
	at   time.Time
	seen [parts]string
}

// A rerun is an operation, with what is done of it.
type rerun struct {
	number      int64
	roots       []string
	t           int64
	only        bool
	in          map[string]bool
	order       []string // of freezing; thaw has the roots last
	generations map[string]int64
	step        int
}

func newSim(t *testing.T, rdb *redis.Client, s *Scheduler, n *net, r *rand.Rand) *sim {
	m := &sim{
		T: t, net: n, rdb: rdb, s: s, r: r, last: map[Place]Run{}, paused: map[string]bool{}, gone: map[Place]Cell{},
		counts: map[string]int{},
	}
	for p, d := range n.definitions(nil) {
		m.acked[p] = "0-0"
		m.must(rdb.HSet(t.Context(), s.keysOf(p)[1], "tenure", "o", "sleeps", "0").Err())
		for range 1 + r.IntN(2) {
			m.must(s.Define(t.Context(), p, 1, NewDefinition(), d, true))
		}
	}
	m.number = 1
	m.hire()
	m.hire()
	return m
}

func (m *sim) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *sim) count(what string, n int64) { m.counts[what] += int(n) }

func (m *sim) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

func (m *sim) hire() {
	m.hired++
	m.alive = append(m.alive, fmt.Sprintf("r%d", m.hired))
}

// fire fires a trigger at a time; others who saw the same try it, too.
func (m *sim) fire(name string, t int64) {
	p, times := partOf(name), 1+m.r.IntN(3)
	for range times {
		f := &Fire{Due: Due{ID: name, Rule: "1 {}", Position: t - 1}, To: t, Next: 1, Source: name, Times: []int64{t}, Class: Normal}
		m.must(m.s.Fire(m.Context(), p, "o", f))
		if f.Done {
			m.count("fires", 1)
		}
	}
}

// apply applies facts behind one, and crashes in between now and then.
func (m *sim) apply(p int, behind string, most int64, mayCrash bool) {
	entries, err := m.rdb.XRangeN(m.Context(), m.s.keysOf(p)[0], "("+behind, "+", most).Result()
	m.must(err)
	if len(entries) == 0 {
		return
	}
	var facts []Fact
	for _, e := range entries {
		fields := map[string]string{}
		for k, v := range e.Values {
			fields[k] = v.(string)
		}
		f, err := FactOf(p, e.ID, fields)
		if m.must(err); f.Source != "" {
			facts = append(facts, f)
		}
	}
	tokens := Tokens(facts, partOf)
	for _, q := range m.r.Perm(parts) {
		if mayCrash && m.r.IntN(12) == 0 {
			m.count("crashes while applying", 1)
			return
		}
		a, err := m.s.Apply(m.Context(), map[int][]Token{q: tokens[q]})
		m.must(err)
		for what, n := range a {
			m.count("tokens "+what, n)
		}
	}
	if last := entries[len(entries)-1].ID; behind == m.acked[p] {
		m.acked[p] = last
	}
}

const life = time.Hour

func (m *sim) take(p int) {
	runner := m.alive[m.r.IntN(len(m.alive))]
	t := &Take{Partition: p, Fence: "o", Most: 1 + m.r.IntN(4), MostBackfill: m.r.IntN(4), Runner: runner, Life: life, Sleep: true}
	m.must(m.s.Take(m.Context(), t))
	m.count("runs taken", int64(len(t.Runs)))
	for _, run := range t.Runs {
		m.last[Place{run.Task, run.Time}] = run
	}
	if len(t.Runs) > 0 && m.r.IntN(20) == 0 { // the reply is lost
		m.count("lost replies", 1)
		return
	}
	for _, run := range t.Runs {
		m.runs = append(m.runs, held{run, runner})
	}
}

func (m *sim) end(p int, e *End) {
	m.Helper()
	m.s.Finish(m.Context(), map[int][]*End{p: {e}})
	m.must(e.Err)
}

func (m *sim) finish(u held) {
	result, wait := m.result(Place{u.Task, u.Time}, u.Failed), time.Duration(m.r.IntN(2))*time.Millisecond
	if m.r.IntN(15) == 0 {
		result = Interrupted
	}
	for range 1 + m.r.IntN(2) {
		e := &End{Run: &u.Run, Result: result, Error: "no", Wait: wait}
		m.end(partOf(u.Task), e)
		if !e.Accepted {
			m.count("ends refused", 1)
			continue
		}
		m.count("ends accepted", 1)
		if now := m.last[Place{u.Task, u.Time}]; now.Generation != u.Generation || now.Attempt != u.Attempt {
			m.fault("%s@%d: the end of attempt %d.%d is accepted, and %d.%d was taken since", u.Task, u.Time, u.Generation, u.Attempt, now.Generation, now.Attempt)
		}
	}
}

// kill takes a runner for dead; what it runs may end all the same, later.
func (m *sim) kill(runner string) {
	m.alive = slices.DeleteFunc(m.alive, func(a string) bool { return a == runner })
	m.runs = slices.DeleteFunc(m.runs, func(u held) bool {
		if u.runner == runner {
			m.ghosts = append(m.ghosts, u)
		}
		return u.runner == runner
	})
	for p := range parts {
		key := m.s.key("srunner", p)
		if m.r.IntN(2) == 0 {
			m.must(m.rdb.ZRem(m.Context(), key, runner).Err()) // a failover forgot it
		} else {
			m.must(m.rdb.ZAddXX(m.Context(), key, redis.Z{Score: 1, Member: runner}).Err())
		}
	}
	m.hire()
	m.count("kills", 1)
}

func (m *sim) recover() {
	for p := range parts {
		t := &Take{Partition: p, Fence: "o", Runner: "", Unknown: true}
		m.must(m.s.Take(m.Context(), t))
		m.count("runs recovered", t.Recovered)
	}
}

// beat has a runner say what it runs: what it lost the reply for is let go.
func (m *sim) beat(runner string) {
	for p := range parts {
		var mine []held
		var runs []Run
		for _, u := range m.runs {
			if u.runner == runner && partOf(u.Task) == p {
				mine, runs = append(mine, u), append(runs, u.Run)
			}
		}
		void, others, err := m.s.Beat(m.Context(), p, runner, life, runs)
		m.must(err)
		m.count("void runs", int64(len(void)))
		for _, i := range void {
			m.runs = slices.DeleteFunc(m.runs, func(u held) bool { return u == mine[i] })
		}
		for _, run := range others {
			m.count("runs let go", 1)
			m.end(p, &End{Run: &run, Result: Interrupted})
		}
	}
}

// advance takes one step of an operation, now and then twice.
func (m *sim) advance(o *rerun) (over bool) {
	if o.in == nil {
		o.in, o.generations = m.closure(o.only, o.roots...), map[string]int64{}
		o.order = slices.Sorted(maps.Keys(o.in))
		m.r.Shuffle(len(o.order), func(i, j int) { o.order[i], o.order[j] = o.order[j], o.order[i] })
	}
	times := 1 + m.r.IntN(2)
	if o.step < len(o.order) {
		name := o.order[o.step]
		for range times {
			generations, err := m.s.Freeze(m.Context(), o.number, Cleared, map[int][]Place{partOf(name): {{name, o.t}}})
			if m.must(err); generations[name] > 0 {
				o.generations[name] = generations[name]
			}
		}
		o.step++
		return false
	}
	if o.step == 2*len(o.order) {
		return true
	}
	name := m.thaws(o)[o.step-len(o.order)]
	waits := m.waits(m.by[name], o.in, o.generations)
	for range times {
		m.must(m.s.Thaw(m.Context(), o.number, High, map[int][]Thaw{partOf(name): {{Place: Place{name, o.t}, Fires: len(waits) == 0, Silent: o.only, Waits: waits}}}))
	}
	o.step++
	return o.step == 2*len(o.order)
}

// thaws is the order of the second half: what fires by itself comes last, for its token would come too early.
func (m *sim) thaws(o *rerun) []string {
	order := slices.Clone(o.order)
	slices.SortStableFunc(order, func(a, b string) int {
		return -cmp.Compare(min(len(m.waits(m.by[a], o.in, o.generations)), 1), min(len(m.waits(m.by[b], o.in, o.generations)), 1))
	})
	return order
}

func (m *sim) pause(job string, on bool) {
	before := m.definitions(m.paused)
	m.number++
	m.paused[job] = on
	for p, d := range m.definitions(m.paused) {
		m.must(m.s.Define(m.Context(), p, m.number, before[p], d, false))
	}
}

// step does one thing by chance; calm: nothing that hurts.
func (m *sim) step(calm bool) {
	if m.forgets && m.r.IntN(8) == 0 {
		m.forget()
	}
	switch c := m.r.IntN(40); {
	case c < 12:
		p := m.r.IntN(parts)
		m.apply(p, m.acked[p], int64(1+m.r.IntN(8)), !calm)
	case c < 18:
		m.take(m.r.IntN(parts))
	case c < 26:
		if len(m.runs) > m.long {
			i := m.r.IntN(len(m.runs))
			u := m.runs[i]
			m.runs = slices.Delete(m.runs, i, i+1)
			m.finish(u)
		}
	case c < 30:
		m.beat(m.alive[m.r.IntN(len(m.alive))])
	case c < 34:
		if len(m.ops) > 0 && m.advance(m.ops[0]) {
			m.done, m.ops = append(m.done, m.ops[0]), m.ops[1:]
		}
	case !calm:
		m.hurt(c)
	}
}

// cells returns what is stored of a partition.
func (m *sim) cells(p int) map[Place]Cell {
	stored, err := m.rdb.HGetAll(m.Context(), m.s.key("scell", p)).Result()
	m.must(err)
	out := map[Place]Cell{}
	for at, text := range stored {
		task, t, _ := strings.Cut(at, "@")
		ms, err := strconv.ParseInt(t, 10, 64)
		m.must(err)
		var c Cell
		m.must(json.Unmarshal([]byte(text), &c))
		out[Place{task, ms}] = c
	}
	return out
}

// rests reports whether nothing is left to do.
func (m *sim) rests() bool {
	for p := range parts {
		for _, kind := range []string{"sready", "slater", "srun", "swait"} {
			if m.rdb.ZCard(m.Context(), m.s.key(kind, p)).Val() > 0 {
				return false
			}
		}
		if len(m.rdb.XRangeN(m.Context(), m.s.keysOf(p)[0], "("+m.acked[p], "+", 1).Val()) > 0 {
			return false
		}
	}
	return len(m.ops) == 0
}

// settle goes on, without faults, until nothing is left to do.
func (m *sim) settle() bool {
	m.pause("j0", false)
	m.pause("j1", false)
	m.recover()
	m.long = 0
	for range 20_000 {
		if m.step(true); m.r.IntN(20) == 0 {
			m.recover()
			for _, runner := range m.alive {
				m.beat(runner)
			}
			if m.rests() {
				return true
			}
		}
	}
	return false
}
