package delivery

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var texts = []string{
	`{"b":0,"sent":0,"dropped":0,"dead":0,"failed":0,"ok":0,"since":0}`,
	`{"b":7,"c":{"a/1":"100-3","b/0":"0-0"},"e":{"c/2":"90-9"},"k":{"n":7,"a":2,"u":1700000000000,"m":{"a/1":[{"f":4,"l":6},{"f":9,"l":9}],"b/0":[{"f":1,"l":1}]}},"alone":{"a/1":9},` +
		`"sent":3,"dropped":1,"dead":2,"failed":5,"ok":90,"since":95,"row":4,"last":{"status":500,"error":"x","at":96,"took":7},"resumed":1,"off":"gone"}`,
}

func TestStates(t *testing.T) {
	for _, text := range texts {
		s, err := ParseState([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(s); string(again) != text {
			t.Errorf("%s\nis stored again as\n%s", text, again)
		}
	}
	if _, err := ParseState([]byte(strings.Replace(texts[1], `"off"`, `"later":1,"off"`, 1))); err != nil {
		t.Errorf("a field of a later version: %v", err)
	}
}

func TestStatesThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ old, new string }{
		{`"b":7`, `"b":6`}, {`"b":7`, `"b":-7`}, {`"a/1":"100-3"`, `"a/1":"100"`}, {`"a/1":"100-3"`, `"a/1":"100--3"`}, {`"a/1":"100-3"`, `"a/1":"-100-3"`},
		{`"a/1":"100-3"`, `"a/1":"0100-3"`}, {`"a/1":"100-3"`, `"a/1":"100-9223372036854775807"`}, {`"a/1":"100-3"`, `"a/1":"+1-3"`}, {`"a/1":"100-3"`, `"a/1":"-"`},
		{`"c/2":"90-9"`, `"c/2":"90--9"`}, {`"n":7`, `"n":0`}, {`"a":2`, `"a":0`}, {`"u":17`, `"u":-17`}, {`"k":{`, `"k":[{}],"x":{`}, {`"k":{`, `"k":7,"x":{`},
		{`{"f":4,"l":6},{"f":9,"l":9}`, ``}, {`"f":9,"l":9`, `"f":6,"l":6`}, {`"f":9,"l":9`, `"f":7,"l":9`}, {`"f":9,"l":9`, `"f":2,"l":3`}, {`"f":9`, `"f":10`}, {`"f":4`, `"f":0`},
		{`"f":4`, `"f":-4`}, {`"l":9`, `"l":9223372036854775807`}, {`"l":9`, `"l":9223372036854775808`}, {`"f":9,"l":9`, ``}, {`"f":9`, `"f":"9"`}, {`{"f":9,"l":9}`, `null`},
		{`[{"f":4,"l":6},{"f":9,"l":9}]`, `null`}, {`"m":{`, `"m":null,"x":{`}, {`"a/1":9`, `"a/1":-9`}, {`"sent":3`, `"sent":-3`}, {`"dropped":1`, `"dropped":-1`}, {`"dead":2`, `"dead":1.5`},
		{`"failed":5`, `"failed":"5"`}, {`"ok":90`, `"ok":9223372036854775807`}, {`"since":95`, `"since":-1`}, {`"row":4`, `"row":-4`}, {`"took":7`, `"took":-7`}, {`"resumed":1`, `"resumed":-1`}, {`"gone"}`, `"gone"`},
	} {
		text := strings.Replace(texts[1], tt.old, tt.new, 1)
		if s, err := ParseState([]byte(text)); err == nil || text == texts[1] {
			t.Errorf("%s is read as %+v", text, s)
		}
	}
}

// Nothing that is stored ends the program, and what is read is stored and read again, goes on, and counts.
func FuzzParseState(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"b":1,"k":{"n":1,"a":1,"m":{"x":[{"f":1,"l":4611686018427387904}]}}}`))
	f.Add([]byte(`{"e":{"a/1":"1-4611686018427387904"},"alone":{"b/0":1},"k":null,"c":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseState(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseState(text)
		if twice, _ := json.Marshal(again); err != nil || string(twice) != string(text) {
			t.Fatalf("%s: %v\n%s", text, err, twice)
		}
		if s.Open != nil && !reflect.DeepEqual(s.Open, again.Open) {
			t.Fatalf("%+v\n%+v", s.Open, again.Open)
		}
		spans := map[string]Span{"a/1": {}, "b/0": {From: ID{1, 1}, End: 4}}
		if got := s.Figures(spans, map[string]Extent{"a/1": {ID{1, 2}, ID{1, 9}}}); got.Queued < 0 || got.Dropped < s.Dropped {
			t.Fatalf("%s: %+v", text, got)
		}
		w := New(s, Settings{Max: 2, Resumed: s.Resumed + 1, Spans: spans})
		for log := range wants(w) {
			w.Load(log, []Event{{log, ID{1 << 61, 1}, "{}"}, {log, ID{1 << 61, 5}, "{}"}})
			w.Load(log, nil)
		}
		if b, _ := w.Next(at(1 << 61)); b != nil {
			w.Done(b, at(1<<61), Answer{})
		}
	})
}
