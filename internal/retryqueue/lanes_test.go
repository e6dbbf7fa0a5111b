package retryqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

func parked(lane, id string, at int64) store.RetryState {
	return store.RetryState{Lane: lane, ID: id, At: at}
}

func TestOnlyTheHeadOfALaneRuns(t *testing.T) {
	l := newLanes()
	l.put(parked("ka", "5-0", 0))
	l.put(parked("ka", "3-0", 100)) // older: the head, whatever its time
	l.put(parked("kb", "10-0", 50))
	wantHead := func(want string) {
		t.Helper()
		got := ""
		if h := l.head(ordinary); h != nil {
			got = h.ID
		}
		if got != want {
			t.Errorf("the first head is %q, want %q", got, want)
		}
	}
	wantHead("10-0")
	l.put(parked("kb", "10-0", 200)) // failed again
	wantHead("3-0")
	l.remove("3-0")
	wantHead("5-0")
	l.remove("5-0")
	if l.holds("ka") || !l.holds("kb") || l.len() != 1 {
		t.Errorf("ka %v, kb %v, %d events; want one in kb", l.holds("ka"), l.holds("kb"), l.len())
	}
	wantHead("10-0")
	l.remove("10-0")
	l.remove("10-0") // twice is no harm
	wantHead("")
}

func TestSuspectsStandApart(t *testing.T) {
	l := newLanes()
	s := parked("ka", "1-0", 0)
	s.Reason = ReasonCrash
	l.put(s)
	l.put(parked("kb", "2-0", 7))
	if l.head(suspects).ID != "1-0" || l.head(ordinary).ID != "2-0" {
		t.Errorf("suspect %v, ordinary %v", l.head(suspects), l.head(ordinary))
	}
	s.Reason = ReasonFailed
	l.put(s)
	if l.head(suspects) != nil || l.head(ordinary).ID != "1-0" {
		t.Errorf("after it failed like others: suspect %v, ordinary %v", l.head(suspects), l.head(ordinary))
	}
}

// TestLanesAreOrdered applies random changes and compares with a simple model of lanes.
func TestLanesAreOrdered(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l, model := newLanes(), map[string]store.RetryState{}
	for step := range 5000 {
		id := fmt.Sprintf("%d-0", r.IntN(60))
		if s, ok := model[id]; ok && r.IntN(2) == 0 {
			l.remove(id)
			delete(model, id)
		} else {
			if !ok {
				s = parked(fmt.Sprint("k", r.IntN(8)), id, 0)
			}
			s.At = r.Int64N(100)
			s.Reason = []string{ReasonFailed, ReasonCrash}[r.IntN(2)]
			l.put(s)
			model[id] = s
		}
		for kind := range 2 {
			want, got := firstHead(model, kind), l.head(kind)
			if (want == nil) != (got == nil) || got != nil && *got != *want {
				t.Fatalf("step %d: head of kind %d is %v, want %v", step, kind, got, want)
			}
		}
		if l.len() != len(model) {
			t.Fatalf("step %d: %d events, want %d", step, l.len(), len(model))
		}
	}
}

func firstHead(model map[string]store.RetryState, kind int) *store.RetryState {
	heads := map[string]store.RetryState{}
	for _, s := range model {
		if h, ok := heads[s.Lane]; !ok || entryid.Compare(s.ID, h.ID) < 0 {
			heads[s.Lane] = s
		}
	}
	var due []store.RetryState
	for _, h := range heads {
		if kindOf(&h) == kind {
			due = append(due, h)
		}
	}
	slices.SortFunc(due, func(a, b store.RetryState) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return entryid.Compare(a.ID, b.ID)
	})
	if len(due) == 0 {
		return nil
	}
	return &due[0]
}

// What a removal costs does not depend on the lane's length: the events behind the head stay where they are.
func TestRemovingTheHeadMovesNoEvent(t *testing.T) {
	l := newLanes()
	for i := range 1000 {
		l.put(parked("ka", fmt.Sprintf("%d-0", 1_000_000+i), 0))
	}
	for i := range 999 {
		behind := &l.byName["ka"].events[1]
		l.remove(fmt.Sprintf("%d-0", 1_000_000+i))
		if head := &l.byName["ka"].events[0]; head != behind || head.ID != fmt.Sprintf("%d-0", 1_000_001+i) {
			t.Fatalf("event %s was moved to another place, or is not the head", behind.ID)
		}
	}
}

// Events that wait behind one that succeeded do not delay new events; behind one that
// failed, or became a dead letter, they do.
func TestALaneFlowsBehindASuccess(t *testing.T) {
	states := func() []store.RetryState {
		return []store.RetryState{{ID: "1-0", Lane: "ka", Attempts: 1}, {ID: "2-0", Lane: "ka"}, {ID: "3-0", Lane: "ka"}}
	}
	fresh := func(r *Queue) string {
		e, _, err := r.Next(true, func(bool) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	r, m := shelved(t, 2, OrderKey, nil, states()...)
	want(t, "in the turn of new events", fresh(r), "")
	want(t, "else", runs(t, r, true), "1-0#2")
	want(t, "it counts", r.Retrying(), true)
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	want(t, "behind a success", fresh(r), "2-0")
	want(t, "that counts", r.Retrying(), false)
	if _, err := r.Fail(t.Context(), []Failure{failure("2-0", "a")}); err != nil {
		t.Fatal(err)
	}
	m.now += 1000
	want(t, "behind a failure", fresh(r), "")
	want(t, "its next attempt", runs(t, r, true), "2-0#2")
	if _, err := r.Fail(t.Context(), []Failure{failure("2-0", "a")}); err != nil {
		t.Fatal(err)
	}
	want(t, "dead letters", len(m.dead), 1)
	want(t, "behind a dead letter", fresh(r), "")
	want(t, "the last one", runs(t, r, true), "3-0#1")
}
