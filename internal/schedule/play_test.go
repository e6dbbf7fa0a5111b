package schedule

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/internal/test/tier"
)

var (
	simSeed  = flag.Uint64("seed", 1, "first seed of TestSim, 0 for one by chance")
	simSeeds = flag.Int("seeds", seedsByEnv(), "nets that TestSim plays in each mode (RUNNEL_SIM_SEEDS); 0: 75 on a redis-server, some on the embedded server")
)

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

func seedsByEnv() int {
	n, _ := strconv.Atoi(os.Getenv("RUNNEL_SIM_SEEDS")) // none is 0
	return n
}

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
						t.Fatalf("net %d, -seed %d, %s:\n%s", i+1, seed, layout, strings.Join(faults, "\n"))
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
		if !w.rerunAtRest(m) {
			return []string{"it never comes to rest after a re-run"}, w.counts
		}
	}
	w.compare(m, mode)
	return w.faults, w.counts
}

// rerunAtRest runs something again, in the model too. It reports whether that comes to rest.
func (w *sim) rerunAtRest(m *model) bool {
	r, n := w.r, w.net
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
	return w.settle()
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
