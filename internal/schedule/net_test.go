package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// An arc is an edge of a task.
type arc struct {
	from         string
	fails, ended bool // the task handles its failures; it waits for its end, however that was
}

// results are those of a source that concern the task.
func (a arc) results() string {
	switch {
	case a.fails:
		return "f"
	case a.ended:
		return "sfk"
	}
	return "s"
}

type task struct {
	name  string
	arcs  []arc
	need  int // 0: all
	join  bool
	tries int
	limit int
	multi bool // may fire more than once at a time by itself
	vague bool // how often depends on the order: it counts tokens of one that may fire often
}

// A net is tasks of two jobs at a few logical times, with how each of their runs ends.
type net struct {
	triggers []string
	tasks    []*task
	times    int64
	by       map[string]*task
	targets  map[string][]*target // by source
	failing  map[Place]int        // how many attempts fail
	skipping map[Place]bool
}

type target struct {
	*task
	arc
}

const parts = 4

func partOf(source string) int {
	h := uint32(2166136261)
	for _, c := range []byte(source) {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h % parts)
}

func randomNet(r *rand.Rand, counting bool) *net {
	n := &net{times: int64(2 + r.IntN(4)), by: map[string]*task{}, targets: map[string][]*target{}, failing: map[Place]int{}, skipping: map[Place]bool{}}
	for i := range 1 + r.IntN(3) {
		n.triggers = append(n.triggers, fmt.Sprintf("j%d/trigger/x%d", i%2, i))
	}
	for i := range 3 + r.IntN(12) {
		n.addTask(r, i, counting)
	}
	for changed := true; changed; { // what is behind one that may fire often may, too
		changed = false
		for _, k := range n.tasks {
			for _, a := range k.arcs {
				up := n.by[a.from]
				if up != nil && up.multi && !k.multi {
					k.multi, changed = true, true
				}
				if up != nil && !k.vague && (up.vague || up.multi && k.need > 0) {
					k.vague, changed = true, true
				}
			}
		}
	}
	return n
}

func (n *net) addTask(r *rand.Rand, i int, counting bool) {
	k := &task{name: fmt.Sprintf("j%d/task/t%02d", r.IntN(2), i), tries: 1 + r.IntN(3), join: r.IntN(6) == 0}
	if r.IntN(4) == 0 {
		k.limit = 1 + r.IntN(2)
	}
	used, handler := map[string]bool{}, len(n.tasks) > 1 && r.IntN(6) == 0
	for range 1 + r.IntN(4) {
		var a arc
		if !handler && (len(n.tasks) == 0 || r.IntN(4) == 0) {
			a.from = n.triggers[r.IntN(len(n.triggers))]
		} else {
			a = arc{from: n.tasks[r.IntN(len(n.tasks))].name, fails: handler, ended: !handler && r.IntN(6) == 0}
		}
		if !used[a.from] {
			used[a.from] = true
			k.arcs = append(k.arcs, a)
			n.targets[a.from] = append(n.targets[a.from], &target{k, a})
		}
	}
	if counting && !handler && len(k.arcs) > 1 && r.IntN(3) == 0 {
		k.need = 1 + r.IntN(len(k.arcs))
	}
	k.multi = k.need > 0 || handler && len(k.arcs) > 1
	n.tasks, n.by[k.name] = append(n.tasks, k), k
	for t := range n.times {
		at := Place{k.name, t}
		switch r.IntN(7) {
		case 0:
			n.failing[at] = k.tries // for good
		case 1:
			n.failing[at] = r.IntN(k.tries)
		case 2:
			n.skipping[at] = r.IntN(2) == 0
		}
	}
}

// definitions are those of the partitions, where some jobs are paused.
func (n *net) definitions(paused map[string]bool) [parts]*Definition {
	var all [parts]*Definition
	for p := range all {
		all[p] = NewDefinition()
	}
	for _, k := range n.tasks {
		def := TaskDef{Rev: 1, Need: k.need, Priority: Normal, Attempts: k.tries, Limit: k.limit, Paused: paused[strings.Split(k.name, "/")[0]]}
		if k.join {
			def.Join = 1
		}
		for _, a := range k.arcs {
			if a.fails {
				def.Handles = append(def.Handles, a.from)
			} else {
				def.After = append(def.After, a.from)
			}
			all[partOf(a.from)].Target(a.from, a.results(), k.name, a.fails)
		}
		all[partOf(k.name)].Task(k.name, def)
	}
	for _, x := range n.triggers {
		all[partOf(x)].Rules[x] = Due{ID: x, Rule: "1 {}", Position: -1}
	}
	return all
}

// result is that of an attempt of a run that has failed so often before.
func (n *net) result(at Place, failed int64) string {
	switch {
	case failed < int64(n.failing[at]):
		return Failed
	case n.skipping[at]:
		return Skipped
	}
	return Success
}

// closure are tasks and what hangs on them.
func (n *net) closure(only bool, roots ...string) map[string]bool {
	in := map[string]bool{}
	for left := slices.Clone(roots); len(left) > 0; left = left[1:] {
		in[left[0]] = true
		for _, to := range n.targets[left[0]] {
			if !only && !to.fails && !in[to.name] {
				left = append(left, to.name)
			}
		}
	}
	return in
}

// waits are the generations that a task of a re-run has to wait for.
func (n *net) waits(k *task, in map[string]bool, generations map[string]int64) map[string]int64 {
	waits := map[string]int64{}
	for _, a := range k.arcs {
		if in[a.from] && !a.fails {
			waits[a.from] = generations[a.from]
		}
	}
	return waits
}

// ---- the model: the same rules, one thing after the other ----

type gate struct {
	state      string
	gen        int64
	due, count int
	e, f       map[string]*Edge
	op         bool
	silent     int64
	fired      int
}

type token struct {
	source, result string
	t, gen         int64
	op             bool
}

type model struct {
	*net
	gates map[Place]*gate
	queue []token
}

func newModel(n *net) *model { return &model{net: n, gates: map[Place]*gate{}} }

func (m *model) gate(k *task, t int64) *gate {
	at := Place{k.name, t}
	if g := m.gates[at]; g != nil {
		return g
	}
	g := &gate{state: "waiting", e: map[string]*Edge{}, f: map[string]*Edge{}}
	for _, a := range k.arcs {
		if a.fails {
			g.f[a.from] = &Edge{0, 1, 0}
		} else {
			g.e[a.from] = &Edge{0, 1, 0}
		}
	}
	m.gates[at] = g
	return g
}

func (m *model) trigger(name string, t int64) {
	m.queue = append(m.queue, token{name, "s", t, 1, false})
	m.drain()
}

func (m *model) drain() {
	for ; len(m.queue) > 0; m.queue = m.queue[1:] {
		x := m.queue[0]
		for _, to := range m.targets[x.source] {
			for _, result := range to.results() {
				if string(result) == x.result {
					m.tell(to, x)
				}
			}
		}
	}
}

func (m *model) tell(to *target, x token) {
	g := m.gate(to.task, x.t)
	e := g.e[x.source]
	if to.fails {
		e = g.f[x.source]
	}
	if x.gen < e[1] || x.gen <= e[0] {
		return
	}
	e[0] = x.gen
	if to.fails {
		g.op = false
	} else if x.op {
		g.op = true
	} else if g.state != Cleared {
		g.op = false
	}
	if to.fails {
		g.due++
	} else if to.need > 0 {
		if g.count++; g.count >= to.need {
			g.count -= to.need
			g.due++
		}
	}
	m.evaluate(to.task, x.t, g)
}

func (m *model) evaluate(k *task, t int64, g *gate) {
	at := Place{k.name, t}
	for {
		fires := false
		if g.due > 0 {
			g.due--
			fires = true
		} else if k.need == 0 && len(g.e) > 0 {
			all, fresh := true, false
			for _, e := range g.e {
				all, fresh = all && e.Came(), fresh || e[0] > e[2]
			}
			if fires = all && fresh; fires {
				for _, e := range g.e {
					e[2] = e[0]
				}
			}
		}
		if !fires {
			return
		}
		g.gen++
		g.fired++
		g.state = Success
		if !k.join {
			g.state = m.result(at, int64(m.failing[at]))
			if m.failing[at] >= k.tries {
				g.state = Failed
			}
		}
		if g.silent != g.gen {
			m.queue = append(m.queue, token{k.name, map[string]string{Success: "s", Failed: "f", Skipped: "k"}[g.state], t, g.gen, g.op})
		}
	}
}

// rerun is a re-run at one blow.
func (m *model) rerun(only bool, t int64, roots ...string) {
	in, generations := m.closure(only, roots...), map[string]int64{}
	for name := range in {
		g := m.gate(m.by[name], t)
		g.due, g.count, g.state = 0, 0, Cleared
		generations[name] = g.gen + 1
	}
	for _, k := range m.tasks {
		if !in[k.name] {
			continue
		}
		g, waits := m.gate(k, t), m.waits(k, in, generations)
		for from, gen := range waits {
			g.e[from][1] = max(g.e[from][1], gen)
		}
		if k.need > 0 && len(waits) > 0 {
			there := 0
			for _, e := range g.e {
				if e[0] >= 1 && e.Came() {
					there++
				}
			}
			g.count = min(there, k.need-1)
		}
		g.op = true
		if len(waits) == 0 {
			g.due++
		}
		if only {
			g.silent = generations[k.name]
		}
		m.evaluate(k, t, g)
	}
	m.drain()
}
