package retryqueue

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

var errBad = errors.New("bad")

// memory is a Store in memory, with a fixed clock.
type memory struct {
	now     int64
	states  map[string]store.RetryState
	entries map[string]redisconn.Entry
	dead    []store.DeadLetter
	full    bool
	parks   int
}

func (m *memory) Now() int64 { return m.now }

func (m *memory) Load() (out []store.RetryState, err error) {
	for _, s := range m.states {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b store.RetryState) int { return entryid.Compare(a.ID, b.ID) })
	return out, nil
}

func (m *memory) Payload(id string) (redisconn.Entry, bool, error) {
	e, ok := m.entries[id]
	return e, ok, nil
}

func (m *memory) Park(ps []store.Parking) error {
	m.parks++
	if m.full {
		return store.ErrFull
	}
	for _, p := range ps {
		m.states[p.Entry.ID], m.entries[p.Entry.ID] = p.State, p.Entry
	}
	return nil
}

func (m *memory) Begin(s store.RetryState) (redisconn.Entry, bool, error) {
	ok, err := m.Write(s)
	return m.entries[s.ID], ok, err
}

func (m *memory) Write(s store.RetryState) (bool, error) {
	if _, ok := m.states[s.ID]; !ok {
		return false, nil
	}
	m.states[s.ID] = s
	return true, nil
}

func (m *memory) Done(id string, _ *store.RetryState) error {
	delete(m.states, id)
	delete(m.entries, id)
	return nil
}

func (m *memory) DeadLetter(d store.DeadLetter) error {
	m.dead = append(m.dead, d)
	return m.Done(d.Entry.ID, nil)
}

func event(id, key string) redisconn.Entry {
	return redisconn.Entry{ID: id, Values: map[string]any{"key": key}}
}

func failure(id, key string) Failure {
	return Failure{Entry: event(id, key), Err: errBad, Reason: ReasonFailed}
}

// shelved returns a Queue over a memory that holds the states. Waits are 1 s.
func shelved(t *testing.T, most int, order string, change func(*Config), states ...store.RetryState) (*Queue, *memory) {
	t.Helper()
	m := &memory{now: 1_000_000, states: map[string]store.RetryState{}, entries: map[string]redisconn.Entry{}}
	for _, s := range states {
		m.states[s.ID], m.entries[s.ID] = s, event(s.ID, strings.TrimPrefix(s.Lane, "k"))
	}
	cfg := Config{
		Retry: &Retry{Max: most, Order: order, Wait: func(int) time.Duration { return time.Second }},
		Store: m, Limit: 100, Log: slog.New(slog.DiscardHandler), Counts: new(Counts), Partition: 3, Epoch: 9,
		Key: func(e redisconn.Entry) (string, bool) { return fmt.Sprint(e.Values["key"]), true },
	}
	if change != nil {
		change(&cfg)
	}
	r := New(cfg)
	if err := r.Load(); err != nil {
		t.Fatal(err)
	}
	return r, m
}

// runs takes the next parked event and returns "<ID>#<attempt>", or "".
func runs(t *testing.T, r *Queue, alone bool) string {
	t.Helper()
	e, ok, err := r.Next(false, func(bool) bool { return alone })
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return fmt.Sprint(e.ID, "#", r.Attempts(e.ID)+1)
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// An event that ran when its owner ended has failed. If it was the only suspect
// that ran, it is a dead letter after its last attempt; else it gets one more.
func TestACrashIsAFailedAttempt(t *testing.T) {
	ran := func(attempts int, alone bool) store.RetryState {
		return store.RetryState{ID: "1-0", Lane: "ka", Key: "a", Attempts: attempts, Running: true, Alone: alone, First: 5, Last: 6}
	}
	for _, tt := range []struct {
		name string
		ran  store.RetryState
		dead bool
	}{
		{"attempts left", ran(2, true), false},
		{"the last one, alone", ran(3, true), true},
		{"the last one, beside others", ran(3, false), false},
		{"one more than that, alone", ran(4, true), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, m := shelved(t, 3, OrderKey, nil, tt.ran)
			if tt.dead {
				if len(m.dead) != 1 || len(m.states) != 0 || r.lanes.len() != 0 {
					t.Fatalf("dead letters %+v, parked %+v", m.dead, m.states)
				}
				d := m.dead[0]
				if d.Attempts != tt.ran.Attempts || d.Reason != ReasonCrash || d.Epoch != 9 || d.Partition != 3 || d.Key != "a" || d.First.UnixMilli() != 5 {
					t.Errorf("dead letter %+v", d)
				}
				return
			}
			s := m.states["1-0"]
			if s.Running || s.Reason != ReasonCrash || s.Attempts != tt.ran.Attempts || s.At != m.now+1000 || s.First != 5 || s.Last != m.now {
				t.Errorf("parked %+v", s)
			}
			m.now += 1000
			want(t, "while another suspect runs", runs(t, r, false), "")
			want(t, "then", runs(t, r, true), fmt.Sprint("1-0#", tt.ran.Attempts+1))
			if s := m.states["1-0"]; !s.Running || !s.Alone {
				t.Errorf("it runs as %+v", s)
			}
		})
	}
}

func TestTheOldestEventInProgressIsSuspected(t *testing.T) {
	suspect := func(c *Config) { c.Suspect = "2-0" }
	r, m := shelved(t, 3, OrderKey, suspect)
	want(t, "looking", r.Looking(), true)
	rest, acks, err := r.Sift([]redisconn.Entry{event("2-0", "a")})
	if err != nil || len(rest)+len(acks) != 0 {
		t.Fatal(rest, acks, err)
	}
	if s := m.states["2-0"]; s.Attempts != 1 || s.Reason != ReasonCrash || s.Lane != "ka" || s.Running {
		t.Errorf("parked %+v", s)
	}
	rest, _, _ = r.Sift([]redisconn.Entry{event("3-0", "b"), event("4-0", "a"), event("5-0", "c")})
	want(t, "the others", fmt.Sprint(rest), fmt.Sprint([]redisconn.Entry{event("3-0", "b"), event("5-0", "c")}))
	want(t, "attempts of what waits behind it", m.states["4-0"].Attempts, 0)

	r, _ = shelved(t, 3, OrderKey, suspect)
	if _, _, err := r.Sift([]redisconn.Entry{event("3-0", "a")}); err != nil {
		t.Fatal(err)
	}
	want(t, "looking for what was deleted", r.Looking(), false)

	// The crash is explained by the parked event that ran.
	r, _ = shelved(t, 3, OrderKey, suspect, store.RetryState{ID: "1-0", Lane: "kz", Attempts: 1, Running: true})
	rest, _, _ = r.Sift([]redisconn.Entry{event("2-0", "a")})
	want(t, "events that pass", len(rest), 1)

	// Without a Retry nothing is parked.
	r, _ = shelved(t, 3, OrderKey, func(c *Config) { c.Suspect, c.Retry = "2-0", nil })
	want(t, "looking without a Retry", r.Looking(), false)
}

func TestWithoutRoomThePartitionIsBlocked(t *testing.T) {
	r, m := shelved(t, 3, OrderNone, func(c *Config) { c.Limit = 2 })
	acks, err := r.Fail(t.Context(), []Failure{failure("1-0", "a"), failure("2-0", "b"), failure("3-0", "c")})
	if err != nil || len(acks) != 0 {
		t.Fatal(acks, err)
	}
	want(t, "parked", len(m.states), 2)
	want(t, "blocked", r.Blocked(), true)
	m.now += 1000
	want(t, "the first", runs(t, r, true), "1-0#2")
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	want(t, "the second", runs(t, r, true), "2-0#2") // and parks the third
	want(t, "the third is parked", m.states["3-0"].Attempts, 1)
	want(t, "blocked while there is room for no other", r.Blocked(), true)
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	want(t, "blocked then", r.Blocked(), false)
}

// The store decides when it has room: the queue asks again after a while, not at once.
func TestAFullStoreIsNotAskedInALoop(t *testing.T) {
	r, m := shelved(t, 3, OrderNone, nil)
	m.full = true
	for range 5 {
		if _, err := r.Fail(t.Context(), []Failure{failure("1-0", "a")}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "calls", m.parks, 1)
	want(t, "wait", r.Wait(), fullPause)
	m.full = false
	m.now += fullPause.Milliseconds()
	runs(t, r, true)
	want(t, "blocked", r.Blocked(), false)
}

// A parked event is delivered again if one before it was not acked. It keeps its place and its
// attempts.
func TestWhatIsParkedAlreadyIsOnlyAcked(t *testing.T) {
	for _, order := range []string{OrderPartition, OrderKey, OrderNone} {
		lane := map[string]string{OrderKey: "ka", OrderNone: "i2-0"}[order]
		r, m := shelved(t, 5, order, nil, store.RetryState{ID: "2-0", Lane: lane, Attempts: 3, At: 2_000_000})
		rest, acks, err := r.Sift([]redisconn.Entry{event("1-0", "b"), event("2-0", "a"), event("3-0", "c")})
		if err != nil || fmt.Sprint(rest) != fmt.Sprint([]redisconn.Entry{event("1-0", "b"), event("3-0", "c")}) || fmt.Sprint(acks) != "[2-0]" {
			t.Errorf("%v: rest %v, acks %v, %v", order, rest, acks, err)
		}
		want(t, "attempts", m.states["2-0"].Attempts, 3)
		m.now = 2_000_000
		want(t, "it runs", runs(t, r, true), "2-0#4")
	}
}

func TestWhatAnOperatorDroppedIsForgotten(t *testing.T) {
	one := store.RetryState{ID: "1-0", Lane: "ka"}
	two := store.RetryState{ID: "2-0", Lane: "ka", Attempts: 1}
	r, m := shelved(t, 3, OrderKey, nil, one, two)
	delete(m.states, "1-0")
	want(t, "the next of the lane", runs(t, r, true), "2-0#2")
	delete(m.states, "2-0") // while it runs
	if _, err := r.Fail(t.Context(), []Failure{failure("2-0", "a")}); err != nil {
		t.Fatal(err)
	}
	want(t, "parked", r.lanes.len(), 0)
	want(t, "idle", r.Idle(), true)
}

func TestAnInterruptedAttemptDoesNotCount(t *testing.T) {
	r, m := shelved(t, 3, OrderPartition, nil, store.RetryState{ID: "1-0", Attempts: 1, Reason: ReasonFailed})
	want(t, "it runs", runs(t, r, true), "1-0#2")
	if err := r.Interrupted(); err != nil {
		t.Fatal(err)
	}
	if s := m.states["1-0"]; s.Counted() != 1 || s.Running || s.At > m.now {
		t.Errorf("parked %+v", s)
	}
	want(t, "it runs again", runs(t, r, true), "1-0#2")
}

func TestWhatIsToBeSkipped(t *testing.T) {
	skip := func(c *Config) { c.Skip = "2-0" }
	r, _ := shelved(t, 3, OrderPartition, skip)
	rest, acks, err := r.Sift([]redisconn.Entry{event("2-0", "a"), event("3-0", "a")})
	if err != nil || len(rest) != 1 || fmt.Sprint(acks) != "[2-0]" {
		t.Errorf("rest %v, acks %v, %v", rest, acks, err)
	}
	want(t, "idle", r.Idle(), true)
	r, m := shelved(t, 3, OrderPartition, skip, store.RetryState{ID: "2-0", Attempts: 1})
	want(t, "parked", len(m.states), 0)
	want(t, "counted", r.cfg.Counts.Skipped.Load(), 1)
}

// What was done here and is parked all the same, or is not parked any more, has been forgotten by the server. An attempt that was done does not
// count then. An event that fails again and again is known.
func TestOthersAreParkedThanWereKnown(t *testing.T) {
	state := func(id string) store.RetryState { return store.RetryState{ID: id, Lane: "k" + id, Attempts: 1} }
	for _, tt := range []struct {
		name   string
		change func(m *memory)
		want   string
	}{
		{"nothing is forgotten", func(m *memory) {}, "1-0#1 2-0#1"},
		{"a failure is forgotten", func(m *memory) { s := m.states["1-0"]; s.Running = true; m.states["1-0"] = s }, "1-0#1 2-0#1"},
		{"an end is forgotten", func(m *memory) { m.states["3-0"] = state("3-0") }, "forgotten 1-0#1 2-0#1 3-0#1"},
		{"an end and a begin are", func(m *memory) { s := state("3-0"); s.Running = true; m.states["3-0"] = s }, "forgotten 1-0#1 2-0#1 3-0#0"},
		{"a park is forgotten", func(m *memory) { delete(m.states, "2-0") }, "forgotten 1-0#1"},
	} {
		r, m := shelved(t, 5, OrderKey, nil, state("1-0"), state("2-0"))
		tt.change(m)
		got := ""
		if err := r.Compare(); errors.Is(err, ErrForgotten) {
			got = "forgotten "
		} else if err != nil {
			t.Error(err)
		}
		states, _ := m.Load()
		for _, s := range states {
			got += fmt.Sprint(s.ID, "#", s.Counted(), " ")
		}
		want(t, tt.name, strings.TrimSpace(got), tt.want)
	}
}

// Events that an earlier run of the app parked run even if the processor has no Retry any more, in
// order of their keys.
func TestParkedEventsRunWithoutARetry(t *testing.T) {
	r, m := shelved(t, 0, "", func(c *Config) { c.Retry = nil }, store.RetryState{ID: "1-0", Lane: "ka", Attempts: 7, Running: true, Alone: true})
	rest, _, err := r.Sift([]redisconn.Entry{event("2-0", "a"), event("3-0", "b")})
	if err != nil || len(rest) != 1 || rest[0].ID != "3-0" {
		t.Errorf("%v, %v", rest, err)
	}
	want(t, "the first", runs(t, r, true), "1-0#8")
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	want(t, "the second", runs(t, r, true), "2-0#1")
	want(t, "dead letters", len(m.dead), 0)
}

func TestTheWaitIsForTheFirstThatCanRun(t *testing.T) {
	r, m := shelved(t, 3, OrderKey, nil,
		store.RetryState{ID: "1-0", Lane: "ka", At: 1_005_000}, store.RetryState{ID: "2-0", Lane: "kb", At: 1_003_000, Reason: ReasonCrash})
	want(t, "both later", r.Wait(), 3*time.Second)
	m.now += 3000
	want(t, "the suspect may not run", runs(t, r, false), "")
	want(t, "then only the other one counts", r.Wait(), 2*time.Second)
	want(t, "the suspect may run", runs(t, r, true), "2-0#1")
}
