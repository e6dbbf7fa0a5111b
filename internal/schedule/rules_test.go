package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/servers"
)

// inPartition runs a test over a scheduler with one task, which hangs on a trigger.
func inPartition(t *testing.T, k *task, test func(t *testing.T, m *sim, p int)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		s, rdb := open(t, addr, keys.Standalone)
		s.crashes = MaxCrashes
		k.arcs = []arc{{from: "j0/trigger/x"}}
		test(t, newSim(t, rdb, s, &net{times: 9, tasks: []*task{k}, by: map[string]*task{k.name: k}}, rand.New(rand.NewPCG(1, 0))), partOf(k.name))
	})
}

// token tells the task that the trigger has fired.
func (m *sim) token(k *task, at, generation int64) {
	m.Helper()
	f := &Fact{ID: "1-1", Source: "j0/trigger/x", Time: at, Generation: generation, Priority: Normal}
	_, err := m.s.Apply(m.Context(), map[int][]Token{partOf(k.name): {{Fact: f, Task: k.name}}})
	m.must(err)
}

func (m *sim) taken(p, most int, runner string) []Run {
	m.Helper()
	t := &Take{Partition: p, Fence: "o", Most: most, MostBackfill: most, Runner: runner, Life: life, Sleep: true}
	m.must(m.s.Take(m.Context(), t))
	return t.Runs
}

func (m *sim) state(p int, task string, at int64) string { return m.cells(p)[Place{task, at}].State }

func (m *sim) want(what string, got, want any) {
	m.Helper()
	if got != want {
		m.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestPausedRunsAreHeld(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1, limit: 2}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		m.token(k, 1, 1)
		m.pause("j0", true)
		m.token(k, 2, 1)
		m.want("runs of a paused job", len(m.taken(p, 9, "r1")), 0)
		m.want("state", m.state(p, k.name, 1)+" "+m.state(p, k.name, 2), "held held")
		m.pause("j0", false)
		m.want("runs", len(m.taken(p, 9, "r1")), 2)
	})
}

// Times have 15 digits in the year 9999; Redis' JSON writes 14 of a number.
func TestTheLastLogicalTimes(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		const last = 253402300799999
		m.token(k, last, 1)
		runs := m.taken(p, 9, "r1")
		if len(runs) != 1 || runs[0].Time != last {
			t.Fatalf("runs %+v", runs)
		}
		_, others, err := m.s.Beat(t.Context(), p, "r1", life, nil)
		if m.must(err); len(others) != 1 || others[0].Time != last {
			t.Errorf("others %+v", others)
		}
		e := &End{Run: &runs[0], Result: Success}
		m.end(p, e)
		m.want("accepted", e.Accepted, true)
		found, err := m.s.View().Look(t.Context(), p, []string{k.name}, last+1, 1)
		m.must(err)
		m.want("time of the cell", found[k.name][0].Time, int64(last))

		d := NewDefinition()
		d.Rules["j0/trigger/x"] = Due{ID: "j0/trigger/x", Rule: "{}", Position: last - 1}
		m.must(m.s.Define(t.Context(), p, 2, NewDefinition(), d, false))
		due, _, _, err := m.s.Due(t.Context(), p, 9)
		if m.must(err); len(due) != 1 || due[0].Position != last-1 {
			t.Fatalf("due %+v", due)
		}
		f := &Fire{Due: due[0], To: last, Next: last, Source: due[0].ID}
		m.must(m.s.Fire(t.Context(), p, "o", f))
		m.want("fired", f.Done, true)
		look := &Take{Partition: p, Fence: "o"}
		m.must(m.s.Take(t.Context(), look))
		_, _, next, err := m.s.Due(t.Context(), p, 9)
		m.must(err)
		m.want("waits for years", next > 1000*time.Hour && look.Next > 1000*time.Hour, true)
	})
}

func TestLateEndsOfRunsAreRefused(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 2, limit: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		next := func(at, generation, attempt int64) (r Run) {
			t.Helper()
			runs := m.taken(p, 9, "r1")
			if len(runs) != 1 || runs[0].Time != at || runs[0].Generation != generation || runs[0].Attempt != attempt {
				t.Fatalf("got %+v, want one run at %d, attempt %d.%d", runs, at, generation, attempt)
			}
			return runs[0]
		}
		end := func(r Run, result string, want bool) {
			t.Helper()
			e := &End{Run: &r, Result: result}
			m.end(p, e)
			m.want("accepted", e.Accepted, want)
		}
		m.token(k, 1, 1)
		m.token(k, 2, 1)
		first := next(1, 1, 1)
		end(first, Failed, true)
		second := next(1, 1, 2)
		end(first, Success, false)
		end(second, Failed, true)
		m.want("state", m.state(p, k.name, 1), "failed")
		other, at := next(2, 1, 1), []Place{{k.name, 2}} // in the place that is free
		_, err := m.s.Freeze(t.Context(), 5, Cleared, map[int][]Place{p: at})
		m.must(err)
		m.must(m.s.Thaw(t.Context(), 5, High, map[int][]Thaw{p: {{Place: at[0], Fires: true}}}))
		again := next(2, 2, 1)
		end(other, Success, false)
		end(again, Success, true)
	})
}

func TestARunThatLosesItsWorkersHasCrashed(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		m.token(k, 1, 1)
		for i := range int64(MaxCrashes) {
			runs := m.taken(p, 9, "r1")
			m.want("runs", len(runs), 1)
			m.want("attempt", runs[0].Attempt, i+1)
			m.must(m.rdb.ZRem(t.Context(), m.s.key("srunner", p), "r1").Err())
			m.recover()
			e := &End{Run: &runs[0], Result: Success}
			m.end(p, e)
			m.want("the late end of the lost attempt is accepted", e.Accepted, false)
		}
		m.want("state", m.state(p, k.name, 1), "crashed")
	})
}

// TestBeats holds runs to the lives of their runners.
func TestBeats(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		for at := range int64(3) {
			m.token(k, at, 1)
		}
		mine, others := m.taken(p, 1, "r1"), m.taken(p, 1, "r2")
		m.taken(p, 1, "r1") // its reply is lost
		m.must(m.rdb.ZAdd(t.Context(), m.s.key("srunner", p), redis.Z{Score: 1, Member: "r2"}).Err())
		look := &Take{Partition: p, Fence: "o"}
		m.must(m.s.Take(t.Context(), look))
		m.want("runs of the runner that is gone", look.Recovered, int64(1))
		void, lost, err := m.s.Beat(t.Context(), p, "r1", life, mine)
		m.must(err)
		m.want("void runs", len(void), 0)
		m.want("runs that it does not know", fmt.Sprint(len(lost), lost[0].Time), "1 2")
		void, _, err = m.s.Beat(t.Context(), p, "r2", life, others)
		m.must(err)
		m.want("void runs of the other", fmt.Sprint(void), "[0]")
	})
}

func TestForgottenAfterTheLook(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		m.token(k, 1, 1)
		before, err := m.rdb.Time(t.Context()).Result()
		m.must(err)
		runs := m.taken(p, 9, "r1")
		m.end(p, &End{Run: &runs[0], Result: Success})
		forget := func(looked time.Time) int64 {
			gone, _, err := m.s.Prune(t.Context(), p, &Prune{Fence: "o", Looked: looked.UnixMilli(), KeepOpen: time.Hour, Horizon: []string{"9-9", "0-0", "0-0", "0-0"}, Tasks: []string{k.name}})
			m.must(err)
			return gone
		}
		m.want("forgotten by a look before its end", forget(before.Truncate(time.Millisecond)), int64(0))
		m.want("forgotten by a look behind its end", forget(before.Add(time.Hour)), int64(1))
		m.token(k, 1, 1) // of a fact before the horizon
		m.want("cells made anew", len(m.cells(p)), 0)
	})
}

// TestForgottenAroundWhatStays has the oldest time go on: it keeps no later one in the history.
func TestForgottenAroundWhatStays(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		for at := range int64(3) {
			m.token(k, 1+at, 1)
		}
		for _, r := range m.taken(p, 9, "r1") {
			if r.Time > 1 {
				m.end(p, &End{Run: &r, Result: Success})
			}
		}
		look := time.Now().Add(time.Hour).UnixMilli()
		gone, _, err := m.s.Prune(t.Context(), p, &Prune{Fence: "o", Looked: look, KeepOpen: time.Hour, Horizon: []string{"9-9", "0-0", "0-0", "0-0"}, Tasks: []string{k.name}})
		m.must(err)
		m.want("forgotten", gone, int64(2))
		m.want("what stays", m.cells(p)[Place{k.name, 1}].State, "running")
	})
}

// TestOwnersAreWoken holds the scripts to waking an owner that sleeps, and no other.
func TestOwnersAreWoken(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 2}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		wakes := func() (n int) {
			for _, e := range m.rdb.XRange(t.Context(), m.s.keysOf(p)[0], "-", "+").Val() {
				if _, is := e.Values["__wake"]; is {
					n++
				}
			}
			return n
		}
		m.taken(p, 9, "r1") // it sleeps
		m.token(k, 1, 1)
		m.want("wakes of a run", wakes(), 1)
		m.token(k, 2, 1)
		m.want("wakes of one that is awake", wakes(), 1)
		runs := m.taken(p, 9, "r1")
		m.taken(p, 9, "r1")
		m.end(p, &End{Run: &runs[0], Result: Failed, Wait: time.Minute})
		m.want("wakes of an attempt that waits", wakes(), 2)
		m.taken(p, 0, "r1")
		m.end(p, &End{Run: &runs[1], Result: Failed, Wait: time.Hour})
		m.want("wakes of one that waits for longer", wakes(), 2)
	})
}

// TestFencedOwners refuses to who does not own the partition.
func TestFencedOwners(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		m.must(m.rdb.HSet(t.Context(), m.s.keysOf(p)[1], "tenure", "other").Err())
		_, _, pruned := m.s.Prune(t.Context(), p, &Prune{Fence: "o"})
		for what, err := range map[string]error{
			"take":  m.s.Take(t.Context(), &Take{Partition: p, Fence: "o", Most: 1, Runner: "r"}),
			"fire":  m.s.Fire(t.Context(), p, "o"),
			"prune": pruned,
		} {
			if !errors.Is(err, store.ErrFenced) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestFrozenCellsTakeNotes has a token come between the halves of a re-run.
func TestFrozenCellsTakeNotes(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		at := Place{k.name, 1}
		for range 2 {
			generations, err := m.s.Freeze(t.Context(), 5, Cleared, map[int][]Place{p: {at}})
			m.must(err)
			m.want("the next generation", generations[k.name], int64(1))
			m.token(k, 1, 1)
			m.want("fired", m.cells(p)[at].Generation, int64(0))
		}
		m.must(m.s.Thaw(t.Context(), 5, High, map[int][]Thaw{p: {{Place: at}}}))
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
		_, err := s.Freeze(t.Context(), 5, Cleared, map[int][]Place{p: {at}}) // a is run again; its first fact is still on its way
		m.must(err)
		m.must(s.Thaw(t.Context(), 5, High, map[int][]Thaw{p: {{Place: at, Waits: map[string]int64{"j0/task/a": 2}}}}))
		tell("j0/task/a", 1, "", 0)
		tell("j0/task/a", 2, "5", 1)
	})
}
