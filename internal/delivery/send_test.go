package delivery

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func at(n int64) time.Time { return time.UnixMilli(n) }

func only(logs ...string) map[string]Span {
	spans := map[string]Span{}
	for _, log := range logs {
		spans[log] = Span{}
	}
	return spans
}

// event returns an event as in "a/100-1".
func event(t *testing.T, text string) Event {
	t.Helper()
	log, id, _ := strings.Cut(text, "/")
	parsed, err := ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return Event{log, parsed, `{"at":"` + text + `"}`}
}

// load loads events as in "a/100-1 a/100-2", for each log what there is of it.
func load(t *testing.T, w *Window, texts string) {
	t.Helper()
	logs := map[string][]Event{}
	for _, text := range strings.Fields(texts) {
		e := event(t, text)
		logs[e.Log] = append(logs[e.Log], e)
	}
	for _, log := range slices.Sorted(maps.Keys(logs)) {
		if back := w.Load(log, logs[log]); back != 0 {
			t.Errorf("%s was set back by %d", log, back)
		}
	}
}

// next returns a batch as in "1: a/100-1 a/100-2", or when to ask again as in "at 100".
func next(w *Window, now int64) (string, *Batch) {
	b, again := w.Next(at(now))
	switch {
	case b == nil && again.IsZero():
		return "nothing", nil
	case b == nil:
		return fmt.Sprint("at ", again.UnixMilli()), nil
	}
	text := fmt.Sprint(b.Attempt, ":")
	for _, e := range b.Events {
		text += " " + name(e)
	}
	return text, b
}

func want(t *testing.T, w *Window, now int64, text string) *Batch {
	t.Helper()
	got, b := next(w, now)
	if got != text {
		t.Fatalf("next at %d: %s, want %s", now, got, text)
	}
	return b
}

func TestBatchesByCountBytesAndDeadline(t *testing.T) {
	const size = 16 // of a payload
	for _, tt := range []struct {
		name   string
		s      Settings
		loaded string
		now    int64
		want   string
	}{
		{"full", Settings{Max: 2, Timeout: time.Second}, "a/100-1 a/100-2 a/100-3", 100, "1: a/100-1 a/100-2"},
		{"not full before its deadline", Settings{Max: 3, Timeout: ms(50)}, "a/100-1 a/120-2", 149, "at 150"},
		{"not full at its deadline", Settings{Max: 3, Timeout: ms(50)}, "a/100-1 a/120-2", 150, "1: a/100-1 a/120-2"},
		{"no deadline", Settings{Max: 3}, "a/100-1", 100, "1: a/100-1"},
		{"bytes: the next exceeds them", Settings{Max: 9, Bytes: 2 * size, Timeout: time.Second}, "a/100-1 a/100-2 a/100-3", 100, "1: a/100-1 a/100-2"},
		{"bytes: exactly all", Settings{Max: 9, Bytes: 2 * size, Timeout: ms(50)}, "a/100-1 a/100-2", 100, "at 150"},
		{"bytes: one alone is larger", Settings{Max: 9, Bytes: 1, Timeout: time.Second}, "a/100-1 a/100-2", 100, "1: a/100-1"},
		{"logs by arrival, name and number", Settings{Max: 5}, "b/100-7 b/100-8 b/200-9 a/100-1 a/150-2", 200, "1: a/100-1 b/100-7 b/100-8 a/150-2 b/200-9"},
		{"nothing", Settings{Max: 5}, "", 200, "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Spans = only("a", "b")
			w := New(State{}, tt.s)
			load(t, w, tt.loaded)
			w.Encode()
			b := want(t, w, tt.now, tt.want)
			if b == nil {
				return
			}
			if !w.Unsaved() {
				t.Error("the batch needs no save")
			}
			want(t, w, tt.now+1000, "nothing") // while a request is under way
		})
	}
}

// A batch that failed waits, and is repeated whole: by its owner, by the next one, and then by that at once when an operator resumes.
func TestABatchIsRepeated(t *testing.T) {
	s := Settings{Max: 2, Spans: only("a", "b")}
	w := New(State{}, s)
	load(t, w, "a/100-1 b/101-1")
	b := want(t, w, 200, "1: a/100-1 b/101-1")
	load(t, w, "a/102-2")
	key, body := b.Key("x"), string(b.Body())
	if body != `[{"at":"a/100-1"},{"at":"b/101-1"}]` {
		t.Errorf("the body is %s", body)
	}
	w.Fail(b, at(210), at(500), Answer{Status: 500, Took: 10})
	want(t, w, 499, "at 500")
	w.Fail(want(t, w, 500, "2: a/100-1 b/101-1"), at(510), at(900), Answer{})

	state, err := ParseState(w.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if w.Unsaved() {
		t.Error("unsaved after Encode")
	}
	w = New(state, s)
	load(t, w, "a/100-1")
	want(t, w, 950, "nothing") // of b it still lacks one
	load(t, w, "b/101-1 a/102-2")
	want(t, w, 600, "at 900")
	s.Resumed++
	w.Apply(s)
	if got := w.State().Open.Until; got != 0 {
		t.Errorf("after a resume it waits until %d", got)
	}
	b = want(t, w, 600, "3: a/100-1 b/101-1")
	if got := b.Key("x"); got != key || b.Key("y") == key || len(key) != 30 || string(b.Body()) != body {
		t.Errorf("key %s, before %s; body %s", got, key, b.Body())
	}
	w.Done(b, at(610), Answer{Status: 204})
	w.Done(b, at(610), Answer{Status: 204}) // twice is once
	if s := w.State(); s.Sent != 2 || s.Failed != 2 || s.OK != 610 || s.Since != 0 || s.Last != (Answer{Status: 204, At: 610}) || s.Settled["a"] != (ID{100, 1}) {
		t.Errorf("%+v", s)
	}
	want(t, w, 610, "1: a/102-2")
}

// After all attempts of a batch its events are sent alone and once, also by the next owner, and none before the time that the
// receiver has asked for.
func TestEventsAloneAndDead(t *testing.T) {
	s := Settings{Max: 3, Attempts: 2, Spans: only("a")}
	w := New(State{}, s)
	load(t, w, "a/100-1 a/100-3 a/100-4 a/100-5")
	w.Fail(want(t, w, 200, "1: a/100-1 a/100-3 a/100-4"), at(200), at(300), Answer{Status: 500})
	w.Fail(want(t, w, 300, "2: a/100-1 a/100-3 a/100-4"), at(300), at(400), Answer{Status: 503})
	want(t, w, 399, "at 400")
	w.Fail(want(t, w, 400, "1: a/100-1"), at(400), at(450), Answer{Status: 422})
	letters := w.Letters()
	if len(letters) != 1 || name(letters[0].Event) != "a/100-1" || letters[0].Answer.Status != 422 || letters[0].Attempts != 3 || len(w.Letters()) != 0 {
		t.Errorf("letters %+v", letters)
	}
	state, err := ParseState(w.Encode())
	if err != nil || state.Dead != 1 || state.Alone["a"] != 4 {
		t.Fatalf("%+v, %v", state, err)
	}
	w = New(state, s)
	load(t, w, "a/100-3 a/100-4 a/100-5 a/100-6")
	w.Done(want(t, w, 450, "1: a/100-3"), at(450), Answer{})
	w.Fail(want(t, w, 450, "1: a/100-4"), at(450), at(450), Answer{})
	load(t, w, "a/100-6")
	b := want(t, w, 450, "1: a/100-5 a/100-6")
	if st := w.State(); st.Sent != 1 || st.Dead != 2 || st.Dropped != 1 || len(st.Alone) != 0 {
		t.Errorf("%+v", st)
	}
	w.Done(b, at(450), Answer{})

	w.Letters()

	// A single event is dead after all attempts.
	load(t, w, "a/100-7")
	w.Fail(want(t, w, 500, "1: a/100-7"), at(500), at(500), Answer{})
	w.Fail(want(t, w, 500, "2: a/100-7"), at(500), at(500), Answer{})
	if letters := w.Letters(); len(letters) != 1 || letters[0].Attempts != 2 {
		t.Errorf("letters %+v", letters)
	}
}

// Without a bound nothing is dead, also what was to be sent alone before.
func TestABoundOfAttemptsIsTakenAway(t *testing.T) {
	s := Settings{Max: 2, Attempts: 1, Spans: only("a")}
	w := New(State{}, s)
	load(t, w, "a/100-1 a/100-2")
	w.Fail(want(t, w, 200, "1: a/100-1 a/100-2"), at(200), at(200), Answer{})
	s.Attempts = 0
	w.Apply(s)
	for range 5 {
		_, b := next(w, 300)
		if len(b.Events) != 2 {
			t.Fatalf("%d events", len(b.Events))
		}
		w.Fail(b, at(300), at(300), Answer{})
	}
	if w.State().Dead != 0 {
		t.Errorf("%+v", w.State())
	}
}

func TestTooLargeBatches(t *testing.T) {
	w := New(State{}, Settings{Max: 8, Spans: only("a")})
	n := int64(0)
	begin := func(now int64) *Batch {
		for w.Room() > 0 {
			n++
			w.Load("a", []Event{{"a", ID{100, n}, "{}"}})
		}
		_, b := next(w, now)
		return b
	}
	for _, size := range []int{8, 4, 2, 1} {
		b := begin(200)
		if b == nil || len(b.Events) != size {
			t.Fatalf("a batch %+v, want %d events", b, size)
		}
		w.Halve(b, at(200), at(300), Answer{Status: 413})
	}
	if got := begin(299); got != nil || w.State().Failed != 4 {
		t.Errorf("%+v is sent at 299; %+v", got, w.State())
	}
	for i := range 40 {
		b := begin(300)
		if want := min(8, 1<<(i/growAfter)); len(b.Events) != want {
			t.Fatalf("batch %d has %d events, want %d", i, len(b.Events), want)
		}
		w.Done(b, at(300), Answer{})
	}
}

func TestRetention(t *testing.T) {
	s := Settings{Max: 2, Timeout: time.Hour, Retention: ms(100), Spans: only("a", "b")}
	w := New(State{}, s)
	load(t, w, "a/100-1 b/150-1")
	b := want(t, w, 160, "1: a/100-1 b/150-1")
	load(t, w, "a/160-4")
	want(t, w, 500, "nothing") // while it runs, nothing overtakes it
	if got := w.State().Dropped; got != 0 {
		t.Errorf("%d dropped", got)
	}
	w.Fail(b, at(170), at(900), Answer{})
	want(t, w, 180, "at 201")
	want(t, w, 200, "at 201")
	want(t, w, 201, "at 251") // without a/100-1 b/150-1 and a/160-4 are free, and wait as the batch did
	if st := w.State(); st.Dropped != 1 || st.Open != nil || !w.Unsaved() {
		t.Errorf("%+v", st)
	}
	want(t, w, 300, "nothing")
	if st := w.State(); st.Dropped != 5 || st.Settled["a"] != (ID{160, 4}) {
		t.Errorf("%+v", st)
	}
}

func TestDisableAndResume(t *testing.T) {
	s := Settings{Max: 2, DisableAfter: ms(100), Spans: only("a")}
	w := New(State{}, s)
	load(t, w, "a/100-1")
	for _, now := range []int64{200, 299} {
		w.Fail(want(t, w, now, fmt.Sprintf("%d: a/100-1", 1+now/299)), at(now), at(now), Answer{})
	}
	if w.State().Off != "" {
		t.Fatal("disabled too early")
	}
	w.Fail(want(t, w, 300, "3: a/100-1"), at(300), at(900), Answer{})
	if got := w.State().Off; got != "failing since 1970-01-01T00:00:00Z" {
		t.Errorf("off: %q", got)
	}
	want(t, w, 1000, "nothing")
	if got := wants(w); len(got) > 0 {
		t.Errorf("it wants %v", got)
	}
	w.Apply(s)
	want(t, w, 1000, "nothing")
	s.Resumed = 1
	w.Apply(s)
	w.Fail(want(t, w, 400, "4: a/100-1"), at(400), at(400), Answer{}) // the backoff is over, too
	if w.State().Off != "" || w.State().Since != 400 {
		t.Errorf("%+v", w.State())
	}
	w.Done(want(t, w, 450, "5: a/100-1"), at(450), Answer{})
	load(t, w, "a/100-2")
	w.Fail(want(t, w, 600, "1: a/100-2"), at(600), at(600), Answer{})
	if w.State().Off != "" {
		t.Error("disabled although it has worked meanwhile")
	}
	w.Disable("410 Gone")
	state, err := ParseState(w.Encode())
	if err != nil || state.Off != "410 Gone" {
		t.Fatalf("%+v, %v", state, err)
	}
	w = New(state, s)
	want(t, w, 700, "nothing")
}
