package delayqueue

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is a queue in memory.
type model struct {
	due, run map[string]int64
	version  map[string]int64
	data     map[string]string
	attempts map[string]int
	seq      int64
}

func newModel() *model {
	return &model{due: map[string]int64{}, run: map[string]int64{}, version: map[string]int64{}, data: map[string]string{}, attempts: map[string]int{}}
}

func (m *model) put(id string, at int64, mode Mode, data string) bool {
	waits, w := m.due[id]
	_, r := m.run[id]
	if mode == IfAbsent && (w || r) || mode == IfPresent && !w && !r {
		return false
	}
	m.seq++
	m.version[id] = m.seq
	if mode != Earliest || !w || at < waits {
		m.due[id] = at
	}
	m.data[id] = data
	return true
}

func (m *model) order() []string {
	var out []string
	for id := range m.due {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(m.due[a], m.due[b]), cmp.Compare(a, b)) })
	return out
}

func (m *model) take(n int) []string {
	var out []string
	for _, id := range m.order() {
		if _, runs := m.run[id]; runs || m.due[id] >= far || len(out) == n {
			continue
		}
		m.attempts[id]++
		out = append(out, fmt.Sprint(id, m.version[id], m.attempts[id], m.due[id], m.data[id]))
		m.run[id] = m.due[id]
		delete(m.due, id)
	}
	return out
}

func (m *model) done(id string, version int64, failed bool, next int64) Outcome {
	if _, runs := m.run[id]; !runs {
		return Gone
	}
	delete(m.run, id)
	if !failed {
		delete(m.attempts, id)
	}
	if waits, w := m.due[id]; next > 0 && (!w || next < waits) {
		m.due[id] = next
	}
	switch {
	case m.version[id] != version:
		return Again
	case next > 0:
		return Later
	}
	m.forget(id)
	return Done
}

func (m *model) forget(id string) {
	delete(m.version, id)
	delete(m.data, id)
	delete(m.attempts, id)
}

func (m *model) recover() int64 {
	n := int64(len(m.run))
	for id, at := range m.run {
		if waits, w := m.due[id]; !w || at < waits {
			m.due[id] = at
		}
	}
	clear(m.run)
	return n
}

// TestAgainstAModel plays random calls on a queue and on one in memory.
func TestAgainstAModel(t *testing.T) {
	both(t, func(e *env) {
		seed := rand.Uint64()
		e.t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		ctx, m := e.t.Context(), newModel()
		var taken []Entry
		for step := range 3000 {
			id, what := fmt.Sprint("e", rnd.IntN(8)), ""
			var got, want any
			switch rnd.IntN(10) {
			case 0, 1, 2, 3:
				mode := []Mode{Set, Earliest, IfAbsent, IfPresent}[rnd.IntN(4)]
				due := 1 + rnd.Int64N(5)
				if rnd.IntN(3) == 0 {
					due += far
				}
				data := fmt.Sprint("\x00\xff", step)
				s, ok, err := e.Put(ctx, Put{ID: id, At: at(due), Mode: mode, Data: &data})
				what, got, want = "put "+string(mode), fmt.Sprint(ok, err), fmt.Sprint(m.put(id, due, mode, data), nil)
				if ok && s.Version != m.seq {
					e.t.Fatalf("step %d: version %d, want %d", step, s.Version, m.seq)
				}
			case 4, 5:
				n := 1 + rnd.IntN(3)
				var lines []string
				for _, one := range e.take(n) {
					taken = append(taken, one)
					lines = append(lines, fmt.Sprint(one.ID, one.Version, one.Attempts, one.At.UnixMilli(), one.Data))
				}
				what, got, want = "take", fmt.Sprint(lines), fmt.Sprint(m.take(n))
			case 6, 7:
				if len(taken) == 0 {
					continue
				}
				one, failed, next := taken[rnd.IntN(len(taken))], rnd.IntN(2) == 0, rnd.Int64N(3)
				o := e.done(one, End{Failed: failed, Again: next > 0, At: at(next)})
				what, got, want = "done", o, m.done(one.ID, one.Version, failed, next)
			case 8:
				n, err := e.Recover(ctx)
				what, got, want = "recover", fmt.Sprint(n, err), fmt.Sprint(m.recover(), nil)
			case 9:
				waited, ran, err := e.Remove(ctx, id)
				_, w := m.due[id]
				_, r := m.run[id]
				delete(m.due, id)
				delete(m.run, id)
				m.forget(id)
				what, got, want = "remove", fmt.Sprint(waited, ran, err), fmt.Sprint(w && !r, r, nil)
			}
			if got != want {
				e.t.Fatalf("step %d, %s %s: got %v, want %v", step, what, id, got, want)
			}
		}
		equal(e.t, "what waits", ids(e.list()), m.order())
	})
}
