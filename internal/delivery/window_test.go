package delivery

import (
	"fmt"
	"testing"
	"time"
)

// wants returns the logs to read on, and behind which ID.
func wants(w *Window) map[string]ID {
	all := map[string]ID{}
	for log := range w.loaded {
		if behind, more := w.Wants(log); more {
			all[log] = behind
		}
	}
	return all
}

// A span that ends loses what is loaded beyond its end, but for what was begun; a new one begins anew.
func TestSpans(t *testing.T) {
	s := Settings{Max: 2, Spans: map[string]Span{"a": {From: ID{100, 3}}}}
	w := New(State{}, s)
	if got := fmt.Sprint(wants(w)); got != "map[a:100-3]" {
		t.Errorf("it wants %s", got)
	}
	load(t, w, "a/110-4 a/110-5")
	b := want(t, w, 200, "1: a/110-4 a/110-5")
	load(t, w, "a/110-6 a/110-7")
	s.Spans = map[string]Span{"a": {From: ID{100, 3}, End: 4}}
	w.Apply(s)
	if got := wants(w); len(got) > 0 || w.Room() != 2 {
		t.Errorf("it wants %v, room %d", got, w.Room())
	}
	w.Fail(b, at(200), at(200), Answer{})
	w.Done(want(t, w, 200, "2: a/110-4 a/110-5"), at(200), Answer{})
	if st := w.State(); st.Ended["a"].N != 5 || len(st.Settled) > 0 || st.Sent != 2 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
	want(t, w, 300, "nothing")

	s.Spans = map[string]Span{"a": {From: ID{110, 6}}, "b": {}}
	w.Apply(s)
	load(t, w, "a/110-7")
	want(t, w, 300, "1: a/110-7")
	s.Spans = only("b")
	w.Apply(s) // it runs
	if st := w.State(); st.Open == nil {
		t.Errorf("%+v", st)
	}
	w.Fail(w.open, at(300), at(300), Answer{})
	if st := w.State(); st.Open != nil || len(st.Ended) != 0 || len(st.Settled) != 1 {
		t.Errorf("%+v", st)
	}
	want(t, w, 300, "nothing")
}

// A subscription that ends and begins again before the first end was reached goes on.
func TestASpanGoesOn(t *testing.T) {
	s := Settings{Max: 4, Timeout: time.Second, Spans: only("a")}
	w := New(State{}, s)
	load(t, w, "a/100-1 a/100-2 a/100-3")
	s.Spans = map[string]Span{"a": {End: 2}}
	w.Apply(s)
	s.Spans = map[string]Span{"a": {From: ID{100, 3}}}
	w.Apply(s)
	load(t, w, "a/100-3 a/100-4")
	want(t, w, 200, "1: a/100-1 a/100-2 a/100-3 a/100-4")
}

// The end of a span is reached although the log has lost its last entries, with what follows or with nothing.
func TestAnEndThatIsMissing(t *testing.T) {
	for _, tt := range []struct{ name, behind string }{{"an entry follows", "a/120-9"}, {"nothing follows", ""}} {
		t.Run(tt.name, func(t *testing.T) {
			w := New(State{}, Settings{Max: 4, Spans: map[string]Span{"a": {End: 5}}})
			load(t, w, "a/100-1 a/100-2")
			if tt.behind == "" {
				w.Load("a", nil)
			}
			load(t, w, tt.behind)
			w.Done(want(t, w, 200, "1: a/100-1 a/100-2"), at(200), Answer{})
			if st := w.State(); st.Ended["a"].N != 5 || st.Sent != 2 || st.Dropped != 3 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A span that has come to an end while nobody looked, and another one behind it, are both delivered.
func TestASpanThatWasReplaced(t *testing.T) {
	for _, tt := range []struct {
		span Span
		want string
	}{
		{Span{From: ID{100, 3}, End: 5}, "map[]"},
		{Span{From: ID{150, 7}, End: 9}, "map[a:150-7]"},
		{Span{From: ID{150, 7}, End: 0}, "map[a:150-7]"},
		{Span{From: ID{100, 3}, End: 0}, "map[a:120-5]"}, // it goes on
		{Span{From: ID{100, 0}, End: 9}, "map[]"},        // what lies behind the end of 5 was never wanted
	} {
		w := New(State{Ended: map[string]ID{"a": {120, 5}}}, Settings{Max: 1, Spans: map[string]Span{"a": tt.span}})
		if got := fmt.Sprint(wants(w)); got != tt.want {
			t.Errorf("%+v: it wants %s, want %s", tt.span, got, tt.want)
		}
	}
}

// A batch of a former owner that cannot be repeated whole is cut anew.
func TestMissingMembers(t *testing.T) {
	for _, tt := range []struct{ name, members, loaded, want string }{
		{"in the middle", `{"f":1,"l":3}`, "a/100-1 a/100-3 a/100-4", "1: a/100-1 a/100-3 a/100-4"},
		{"at first", `{"f":1,"l":3}`, "a/100-2 a/100-3", "1: a/100-2 a/100-3"},
		{"at last", `{"f":1,"l":3}`, "a/100-1 a/100-2 a/100-4", "1: a/100-1 a/100-2 a/100-4"},
		{"at last, and nothing follows", `{"f":1,"l":3}`, "a/100-1 a/100-2", "1: a/100-1 a/100-2"},
		{"none", `{"f":1,"l":1},{"f":3,"l":3}`, "a/100-1 a/100-3 a/100-4", "3: a/100-1 a/100-3"},
		{"what was missing is back", `{"f":1,"l":1},{"f":3,"l":3}`, "a/100-1 a/100-2 a/100-3 a/100-4", "3: a/100-1 a/100-3"},
		{"what is settled", `{"f":1,"l":3}`, "", "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			position := "0-0"
			if tt.loaded == "" {
				position = "100-1"
			}
			state, err := ParseState([]byte(`{"b":4,"c":{"a":"` + position + `"},"k":{"n":4,"a":2,"m":{"a":[` + tt.members + `]}}}`))
			if err != nil {
				t.Fatal(err)
			}
			w := New(state, Settings{Max: 4, Spans: only("a")})
			load(t, w, tt.loaded)
			if len(wants(w)) > 0 {
				w.Load("a", nil)
			}
			b := want(t, w, 200, tt.want)
			if b != nil {
				w.Done(b, at(200), Answer{})
				load(t, w, "a/100-5")
				want(t, w, 200, "1: "+map[bool]string{true: "a/100-4 "}[b.Attempt > 1]+"a/100-5")
			}
		})
	}
}

// After a failover numbers are given again.
func TestNumbersGivenAgain(t *testing.T) {
	s := Settings{Max: 3, Spans: only("a", "b")}
	w := New(State{}, s)
	load(t, w, "a/100-1 a/100-2 a/100-3")
	w.Done(want(t, w, 100, "1: a/100-1 a/100-2 a/100-3"), at(100), Answer{})
	load(t, w, "a/100-4 b/100-1 b/100-2")
	b := want(t, w, 100, "1: a/100-4 b/100-1 b/100-2")
	load(t, w, "a/100-5")

	if back := w.Load("a", []Event{event(t, "a/200-3"), event(t, "a/200-4")}); back != 3 {
		t.Errorf("set back by %d", back)
	}
	want(t, w, 200, "nothing") // a request is still under way
	w.Done(b, at(200), Answer{})
	if st := w.State(); st.Settled["a"] != (ID{200, 2}) || st.Sent != 3 || st.Open != nil {
		t.Errorf("%+v", st)
	}
	w.Done(want(t, w, 200, "1: b/100-1 b/100-2 a/200-3"), at(200), Answer{})
	load(t, w, "a/200-4")
	w.Done(want(t, w, 200, "1: a/200-4"), at(200), Answer{})
	if st := w.State(); st.Settled["a"] != (ID{200, 4}) || st.Sent != 7 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
}

// What somebody has added by hand has no number. It is read once, and nobody gets it.
func TestEntriesWithoutNumbers(t *testing.T) {
	w := New(State{}, Settings{Max: 3, Spans: only("a")})
	load(t, w, "a/100-1 a/110-0 a/110-0 a/120-0")
	if got := fmt.Sprint(wants(w)); got != "map[a:120-0]" {
		t.Errorf("it wants %s", got)
	}
	load(t, w, "a/120-2")
	w.Done(want(t, w, 120, "1: a/100-1 a/120-2"), at(120), Answer{})
	if st := w.State(); st.Sent != 2 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
}

// A new owner saves nothing as long as nothing has changed.
func TestNothingToSave(t *testing.T) {
	s := Settings{Max: 3, Attempts: 1, Resumed: 1, Spans: map[string]Span{"a": {}, "b": {End: 7}}}
	state, err := ParseState([]byte(`{"b":3,"c":{"a":"100-3"},"e":{"b":"1-7"},"k":{"n":3,"a":1,"m":{"a":[{"f":4,"l":5}]}},"alone":{"a":5},"sent":10,"resumed":1}`))
	if err != nil {
		t.Fatal(err)
	}
	w := New(state, s)
	load(t, w, "a/100-4 a/100-5 a/100-6")
	if w.Unsaved() {
		t.Error("unsaved")
	}
	s.Spans = only("a")
	if w.Apply(s); !w.Unsaved() {
		t.Error("a log was forgotten, and that is not to be saved")
	}
}

// A million entries that were dropped cost nothing.
func TestManyDropped(t *testing.T) {
	w := New(State{}, Settings{Max: 1, Spans: only("a")})
	load(t, w, "a/100-1")
	w.Done(want(t, w, 100, "1: a/100-1"), at(100), Answer{})
	load(t, w, "a/100-1000000000001")
	w.Done(want(t, w, 100, "1: a/100-1000000000001"), at(100), Answer{})
	if st := w.State(); st.Sent != 2 || st.Dropped != 999999999999 {
		t.Errorf("%+v", st)
	}
}
