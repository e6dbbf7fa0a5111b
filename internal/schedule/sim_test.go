package schedule

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/internal/test/tier"
)

var (
	simSeed  = flag.Uint64("seed", 1, "first seed of TestSim, 0 for one by chance")
	simSeeds = flag.Int("seeds", 0, "nets that TestSim plays; 0: 300 on a redis-server, some on the embedded server")
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
	runs   []held         // in the memory of runners that live
	ghosts []held         // of runners that are taken for dead, and are not
	last   map[Place]Run  // the attempt that was taken last
	paused map[string]int // job → the operation that paused it, 0
	ops    []*rerun       // waiting
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
		T: t, net: n, rdb: rdb, s: s, r: r, last: map[Place]Run{}, paused: map[string]int{}, gone: map[Place]Cell{},
		counts: map[string]int{},
	}
	for p, d := range n.definitions() {
		m.acked[p] = "0-0"
		m.must(rdb.HSet(t.Context(), s.keysOf(p)[1], "tenure", "o", "sleeps", "0").Err())
		for range 1 + r.IntN(2) {
			_, err := s.Define(t.Context(), p, 1, NewDefinition(), d)
			m.must(err)
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
		f := &Fire{Due: Due{name, "1 {}", strconv.FormatInt(t-1, 10)}, To: strconv.FormatInt(t, 10), Next: time.UnixMilli(1), Source: name, Times: []int64{t}, Class: Normal}
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
		f, ok, err := FactOf(p, e.ID, fields)
		if m.must(err); ok {
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
		m.count("tokens accepted", a.Accepted)
		m.count("tokens duplicate", a.Duplicate)
		m.count("tokens void", a.Void)
		m.count("tokens unknown", a.Unknown)
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

func (m *sim) finish(u held) {
	result, wait := m.result(Place{u.Task, u.Time}, u.Failed), time.Duration(m.r.IntN(2))*time.Millisecond
	if m.r.IntN(15) == 0 {
		result = Interrupted
	}
	for range 1 + m.r.IntN(2) {
		e := &End{Run: &u.Run, Result: result, Error: "no", Wait: wait}
		m.must(m.s.Finish(m.Context(), partOf(u.Task), []*End{e}))
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
			m.must(m.s.Finish(m.Context(), p, []*End{{Run: &run, Result: Interrupted}}))
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
			generations, err := m.s.Freeze(m.Context(), partOf(name), o.number, Cleared, []Place{{name, o.t}})
			if m.must(err); generations[0] > 0 {
				o.generations[name] = generations[0]
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
		m.must(m.s.Thaw(m.Context(), partOf(name), o.number, High, []Thaw{{Place: Place{name, o.t}, Fires: len(waits) == 0, Silent: o.only, Waits: waits}}))
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
	m.number++
	for p := range parts {
		h := &Hold{Job: job}
		if on {
			h.Pause = "{}"
		}
		for _, k := range m.tasks {
			if strings.HasPrefix(k.name, job+"/") && partOf(k.name) == p {
				h.Tasks = append(h.Tasks, k.name)
			}
		}
		done, err := m.s.Hold(m.Context(), p, m.number, h)
		if m.must(err); !done {
			m.fault("pause of %s is refused", job)
		}
	}
	delete(m.paused, job)
	if on {
		m.paused[job] = 1
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

func (m *sim) hurt(c int) {
	switch c {
	case 34: // who was away applies old facts once more
		m.apply(m.r.IntN(parts), "0-0", int64(1+m.r.IntN(20)), true)
		m.count("old facts again", 1)
	case 35:
		if m.kill(m.alive[m.r.IntN(len(m.alive))]); m.r.IntN(2) == 0 {
			m.recover()
		}
	case 36:
		m.recover()
	case 37:
		if len(m.ghosts) > 0 {
			i := m.r.IntN(len(m.ghosts))
			u := m.ghosts[i]
			m.ghosts = slices.Delete(m.ghosts, i, i+1)
			m.finish(u)
			m.count("late ends", 1)
		}
	case 38:
		job := fmt.Sprintf("j%d", m.r.IntN(2))
		m.pause(job, m.paused[job] == 0)
		m.count("pauses and resumes", 1)
	case 39: // who was away repeats the last steps of an operation
		if len(m.done) > 0 {
			o := *m.done[m.r.IntN(len(m.done))]
			o.step = m.r.IntN(2 * len(o.order))
			for i := 0; i < 3 && !m.advance(&o); i++ {
			}
			m.count("old operations again", 1)
		}
	}
}

// forget takes one step of forgetting: it looks, and when all that it saw is acked it forgets.
func (m *sim) forget() {
	if m.looked == nil {
		now, err := m.rdb.Time(m.Context()).Result()
		m.must(err)
		l := &look{at: now}
		for p := range parts {
			l.seen[p] = "0-0"
			last, err := m.rdb.XRevRangeN(m.Context(), m.s.keysOf(p)[0], "+", "-", 1).Result()
			if m.must(err); len(last) > 0 {
				l.seen[p] = last[0].ID
			}
		}
		m.looked = l
		return
	}
	for p := range parts {
		if less(m.acked[p], m.looked.seen[p]) {
			return
		}
	}
	keep := m.r.IntN(3)
	for p := range parts {
		before, more := m.cells(p), true
		for more {
			var names []string
			for _, k := range m.tasks {
				if partOf(k.name) == p {
					names = append(names, k.name)
				}
			}
			gone, again, err := m.s.Prune(m.Context(), p, &Prune{Fence: "o", Looked: m.looked.at, Keep: keep, KeepOpen: time.Hour, Horizon: m.looked.seen[:], Tasks: names})
			m.must(err)
			m.count("cells forgotten", gone)
			more = again
		}
		after := m.cells(p)
		for at, c := range before {
			if _, there := after[at]; !there {
				m.gone[at] = c
			}
		}
	}
	m.looked = nil
}

func less(a, b string) bool {
	var am, as, bm, bs int64
	fmt.Sscanf(a, "%d-%d", &am, &as)
	fmt.Sscanf(b, "%d-%d", &bm, &bs)
	return am < bm || am == bm && as < bs
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

// open returns a scheduler of a server.
func open(t *testing.T, addr, layout string) (*Scheduler, *redis.Client) {
	t.Helper()
	c, err := store.Open(redisconn.Options{URL: "redis://" + addr, Keys: keys.Keys{App: "shop", Layout: layout}})
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() {
		rdb.Close()
		c.Close()
	})
	s := New(c, "schedule")
	s.crashes = 1 << 30 // how often a run crashes is up to chance here
	return s, rdb
}

var simModes = []string{"plain", "forgetting", "re-runs at rest", "re-runs in the storm"}

// TestSim compares what is left of random nets, after crashes, late replies, pauses and re-runs, with the model.
func TestSim(t *testing.T) {
	tier.Sequential(t)
	servers.Both(t, func(t *testing.T, addr string, real bool) {
		layouts := map[string]*Scheduler{}
		var rdb *redis.Client
		for _, layout := range []string{keys.Standalone, keys.Cluster} {
			layouts[layout], rdb = open(t, addr, layout)
		}
		counts, seeds := map[string]int{}, *simSeeds
		if seeds == 0 {
			if seeds = 2; real {
				seeds = 75
			}
		}
		first := *simSeed
		if first == 0 {
			first = rand.Uint64()
		}
		for _, mode := range simModes {
			t.Run(strings.ReplaceAll(mode, " ", "-"), func(t *testing.T) {
				for i := range seeds {
					layout, seed := keys.Standalone, first+uint64(i)
					if i%4 == 3 {
						layout = keys.Cluster
					}
					faults, counted := play(t, rdb, layouts[layout], mode, seed)
					for what, n := range counted {
						counts[what] += n
					}
					if len(faults) > 0 {
						t.Fatalf("-seed %d, %s:\n%s", seed, layout, strings.Join(faults, "\n"))
					}
				}
			})
		}
		for _, what := range seen {
			if seeds >= 75 && counts[what] == 0 && !t.Failed() && flag.Lookup("test.run").Value.String() == "" {
				t.Errorf("no %s: %v", what, counts)
			}
		}
		t.Log(counts)
	})
}

// TestFrozenCellsTakeNotes has a token come between the halves of a re-run.
func TestFrozenCellsTakeNotes(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		at := Place{k.name, 1}
		for range 2 {
			generations, err := m.s.Freeze(t.Context(), p, 5, Cleared, []Place{at})
			m.must(err)
			m.want("the next generation", generations[0], int64(1))
			m.token(k, 1, 1)
			m.want("fired", m.cells(p)[at].Generation, int64(0))
		}
		m.must(m.s.Thaw(t.Context(), p, 5, High, []Thaw{{Place: at}}))
		m.want("fired behind the second half", m.cells(p)[at].Generation, int64(1))
	})
}

// TestVoidTokensDoNotCount looks at what only timing shows: a token of a void run at a cell that counts.
func TestVoidTokensDoNotCount(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		s, rdb := open(t, addr, keys.Standalone)
		k := &task{name: "j0/task/d", need: 2, tries: 1, arcs: []arc{{from: "j0/task/a"}, {from: "j0/task/b"}, {from: "j0/task/c"}}}
		m := newSim(t, rdb, s, &net{times: 1, tasks: []*task{k}, by: map[string]*task{k.name: k}}, rand.New(rand.NewPCG(1, 0)))
		p, at := partOf(k.name), Place{k.name, 0}
		tell := func(source string, generation int64, operation string, fired int64) {
			t.Helper()
			f := &Fact{ID: "1-1", Source: source, Generation: generation, Operation: operation, Priority: Normal}
			_, err := s.Apply(t.Context(), map[int][]Token{p: {{Fact: f, Task: k.name}}})
			m.must(err)
			if got := m.cells(p)[at].Generation; got != fired {
				t.Errorf("generation %d of %s: fired %d times, want %d", generation, source, got, fired)
			}
		}
		tell("j0/task/b", 1, "", 0)
		_, err := s.Freeze(t.Context(), p, 5, Cleared, []Place{at}) // a is run again; its first fact is still on its way
		m.must(err)
		m.must(s.Thaw(t.Context(), p, 5, High, []Thaw{{Place: at, Waits: map[string]int64{"j0/task/a": 2}}}))
		tell("j0/task/a", 1, "", 0)
		tell("j0/task/a", 2, "5", 1)
	})
}

// seen is what must happen in a simulation.
var seen = []string{
	"fires", "tokens accepted", "tokens duplicate", "tokens void", "crashes while applying", "runs taken", "lost replies",
	"ends accepted", "ends refused", "kills", "runs recovered", "void runs", "runs let go", "old facts again", "late ends",
	"pauses and resumes", "old operations again", "cells forgotten", "cells compared exactly",
}

func play(t *testing.T, rdb *redis.Client, s *Scheduler, mode string, seed uint64) (faults []string, counts map[string]int) {
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	storm := mode == "re-runs in the storm"
	n := randomNet(r, !storm) // there the end must not depend on how often something fires
	m := newModel(n)
	for at := range n.times {
		for _, x := range n.triggers {
			m.trigger(x, at)
		}
	}
	w := newSim(t, rdb, s, n, r)
	w.long = r.IntN(4)
	w.forgets = mode == "forgetting"
	var natural []Place
	for at, g := range m.gates {
		if g.fired > 0 {
			natural = append(natural, at)
		}
	}
	slices.SortFunc(natural, func(a, b Place) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for at := range n.times {
		for _, x := range n.triggers {
			w.fire(x, at)
			for range r.IntN(20) {
				w.step(false)
			}
			if storm && len(natural) > 0 && r.IntN(2) == 0 {
				at := natural[r.IntN(len(natural))]
				w.order(false, at.Time, at.Task)
			}
		}
	}
	for range 100 {
		w.step(false)
	}
	if !w.settle() {
		return []string{"it never comes to rest"}, w.counts
	}
	for i := 0; i < 3 && mode == "re-runs at rest"; i++ {
		at, only, roots := r.Int64N(n.times), r.IntN(4) == 0, map[string]bool{}
		for range 1 + r.IntN(2) { // any task at any time, also one that never ran
			roots[n.tasks[r.IntN(len(n.tasks))].name] = true
		}
		if only {
			roots = map[string]bool{slices.Sorted(maps.Keys(roots))[0]: true}
		}
		m.rerun(only, at, slices.Sorted(maps.Keys(roots))...)
		w.order(only, at, slices.Sorted(maps.Keys(roots))...)
		for range 60 {
			w.step(false)
		}
		if !w.settle() {
			return []string{"it never comes to rest after a re-run"}, w.counts
		}
	}
	w.compare(m, mode)
	return w.faults, w.counts
}

func (m *sim) order(only bool, t int64, roots ...string) {
	m.number++
	m.ops = append(m.ops, &rerun{number: m.number, roots: roots, t: t, only: only})
	m.count("operations", 1)
}

// compare notes what differs from the model.
func (m *sim) compare(want *model, mode string) {
	got := maps.Clone(m.gone)
	for p := range parts {
		for at, c := range m.cells(p) {
			if _, gone := m.gone[at]; gone && !m.by[at.Task].multi { // others may be told something new
				m.fault("%v was forgotten, and is there again", at)
			}
			got[at] = c
		}
		for task, n := range m.rdb.HGetAll(m.Context(), m.s.key("splace", p)).Val() {
			m.fault("%s has %s places taken at rest", task, n)
		}
		m.once(p)
	}
	for at, c := range got {
		if c.Frozen != 0 || c.Owed != 0 {
			m.fault("%v is left frozen by %d, with %d firings owed", at, c.Frozen, c.Owed)
		}
		if want.gates[at] == nil && c.Generation > 0 && !m.by[at.Task].vague {
			m.fault("%v ran, and not in the model", at)
		}
	}
	for at, g := range want.gates {
		k := m.by[at.Task]
		if k.vague || mode == "forgetting" && k.multi {
			continue
		}
		c, there := got[at]
		if !there {
			m.fault("%v is missing", at)
			continue
		}
		m.compareCell(at, k, &c, g, mode == "re-runs in the storm")
	}
}

// once notes what fired twice.
func (m *sim) once(p int) {
	fired := map[string]bool{}
	for _, e := range m.rdb.XRange(m.Context(), m.s.keysOf(p)[0], "-", "+").Val() {
		at := fmt.Sprint(e.Values["src"], "@", e.Values["t"])
		if strings.Contains(at, "/trigger/") && fired[at] {
			m.fault("%s fired twice", at)
		}
		fired[at] = true
	}
}

func (m *sim) compareCell(at Place, k *task, c *Cell, g *gate, storm bool) {
	state := c.State
	if (state == Cleared || state == "waiting") && (g.state == Cleared || g.state == "waiting") {
		state = g.state
	}
	if state != g.state {
		m.fault("%v is %q, want %q: %+v %+v", at, c.State, g.state, c, g)
	}
	if !storm && k.need > 0 && c.Counted != int64(g.count) {
		m.fault("%v counts %d, want %d", at, c.Counted, g.count)
	}
	exact := !k.multi && !storm
	if exact {
		m.count("cells compared exactly", 1)
		if c.Generation != g.gen {
			m.fault("%v fired %d times, want %d", at, c.Generation, g.gen)
		}
	}
	for from, e := range c.Edges {
		w := g.e[from]
		if e.Came() != w.Came() {
			m.fault("%v: edge %s is %v, want %v: a token is missing or stray", at, from, e, *w)
		}
		if c.Generation > 0 && k.need == 0 && g.state != "waiting" && (e[2] == e[0]) != (w[2] == w[0]) {
			m.fault("%v: edge %s is %v, want %v: not used", at, from, e, *w)
		}
		if exact && e != *w {
			m.fault("%v: edge %s is %v, want %v", at, from, e, *w)
		}
	}
}
