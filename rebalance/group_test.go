package rebalance

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestGroupJSON(t *testing.T) {
	joined := time.UnixMilli(1700000000123)
	g := Group{}.Join("x1", Executor{Worker: "host-1", JoinedAt: joined, Expiry: 10 * time.Second}, 3, "s")
	want := `{"v":1,"generation":1,"partitions":3,"executors":{"x1":{"worker":"host-1","joined_at":1700000000123,"expiry_ms":10000,"partitions":[0,1,2]}}}`
	if got := string(g.Encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	g = g.Join("x2", Executor{Worker: "host-2", JoinedAt: joined, Expiry: 12 * time.Second}, 3, "s").
		Join("x3", Executor{Worker: "host-3", JoinedAt: joined, Expiry: time.Second}, 3, "s").
		Join("x4", Executor{Worker: "host-4", JoinedAt: joined, Expiry: time.Second}, 3, "s")
	back, err := Parse(g.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if string(back.Encode()) != string(g.Encode()) || back.Generation != 4 || len(back.Executors) != 4 {
		t.Errorf("came back as %s", back.Encode())
	}
	if back.Expiry() != 12*time.Second {
		t.Errorf("expiry %v, want the longest", back.Expiry())
	}
	if !back.Executors["x1"].JoinedAt.Equal(joined) {
		t.Errorf("joined at %v", back.Executors["x1"].JoinedAt)
	}
}

func TestParseNothing(t *testing.T) {
	for _, data := range [][]byte{nil, {}} {
		if g, err := Parse(data); err != nil || g.Generation != 0 || len(g.Executors) != 0 {
			t.Errorf("got %+v, %v", g, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	executor := func(s string) string {
		return `{"v":1,"generation":1,"partitions":2,"executors":{` + s + `}}`
	}
	tests := []struct{ name, data, want string }{
		{"no JSON", `hello`, "invalid character"},
		{"another type", `[1]`, "cannot unmarshal"},
		{"no version", `{"generation":1}`, "no version"},
		{"out of range", executor(`"a":{"expiry_ms":1,"partitions":[2]}`), "a has partition 2 of 2"},
		{"negative", executor(`"a":{"expiry_ms":1,"partitions":[-1]}`), "partition -1"},
		{"twice by one", executor(`"a":{"expiry_ms":1,"partitions":[0,0]}`), "assigned to a and a"},
		{"twice", executor(`"a":{"expiry_ms":1,"partitions":[0]},"b":{"expiry_ms":1,"partitions":[0]}`), "assigned to a and b"},
		{"no expiry", executor(`"a":{"partitions":[0]}`), "expiry of 0 ms"},
		{"endless expiry", executor(`"a":{"expiry_ms":9223372036854775807}`), "expiry of 9223372036854775807 ms"},
		{"no ID", executor(`"":{"expiry_ms":1}`), "without ID"},
		{"too many partitions", `{"v":1,"partitions":2000000}`, "2000000 partitions"},
		{"negative generation", `{"v":1,"generation":-1}`, "generation -1"},
		{"fraction", `{"v":1,"generation":1.5}`, "1.5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.data))
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an ErrInvalid with %q", err, test.want)
			}
		})
	}
	_, err := Parse([]byte(`{"v":2,"executors":"of another type"}`))
	var version *versionError
	if !errors.As(err, &version) || version.Version != 2 {
		t.Errorf("got %v, want a versionError", err)
	}
}

func TestJoinAndLeaveAreValues(t *testing.T) {
	e := Executor{Worker: "w", JoinedAt: time.UnixMilli(1), Expiry: time.Second}
	one := Group{}.Join("a", e, 4, "s")
	before := string(one.Encode())
	two := one.Join("b", e, 4, "s")
	three := two.Leave("s", "a")
	if string(one.Encode()) != before {
		t.Errorf("Join changed its receiver: %s", one.Encode())
	}
	if got := string(two.Leave("s", "b").Encode()); !strings.Contains(got, `"partitions":[0,1,2,3]`) {
		t.Errorf("after the leave: %s", got)
	}
	if three.Generation != 3 || !reflect.DeepEqual(three.IDs(), []string{"b"}) || len(three.Executors["b"].Partitions) != 4 {
		t.Errorf("after join, join, leave: %s", three.Encode())
	}
	if same := two.Leave("s", "nobody"); string(same.Encode()) != string(two.Encode()) {
		t.Errorf("a leave of no member changed %s to %s", two.Encode(), same.Encode())
	}
	if empty := three.Leave("s", "b"); empty.Generation != 4 || len(empty.Executors) != 0 {
		t.Errorf("after the last leave: %s", empty.Encode())
	}
}

// A worker that was killed and restarted finds its old entry dead: the partitions of other members
// do not move.
func TestReplacingTheDeadMovesNothingElse(t *testing.T) {
	e := Executor{Worker: "w", Expiry: time.Second}
	g := Group{}
	for i := range 4 {
		g = g.Join(fmt.Sprint("m", i), e, 16, "s")
	}
	next := g.without([]string{"m1"}).Join("new", e, 16, "s")
	for _, id := range []string{"m0", "m2", "m3"} {
		if got, want := next.Executors[id].Partitions, g.Executors[id].Partitions; !reflect.DeepEqual(got, want) {
			t.Errorf("%s had %v, has %v", id, want, got)
		}
	}
}

func TestKindText(t *testing.T) {
	for kind, want := range map[Kind]string{Joined: "join", Left: "leave", Died: "dead", Released: "released"} {
		text, err := json.Marshal(kind)
		if err != nil || string(text) != `"`+want+`"` || kind.String() != want {
			t.Errorf("%d: %s, %v, %v", kind, text, kind, err)
		}
		var back Kind
		if err := json.Unmarshal(text, &back); err != nil || back != kind {
			t.Errorf("%s came back as %d, %v", text, back, err)
		}
	}
	if _, err := Kind(9).MarshalText(); err == nil {
		t.Error("an unknown kind was written")
	}
	var k Kind
	if err := k.UnmarshalText([]byte("hello")); err == nil {
		t.Error("an unknown kind was read")
	}
}

func TestAMembershipThatIsTooLargeIsNone(t *testing.T) {
	large := []byte(`{"v":1,"generation":1,"partitions":3,"executors":{}` + strings.Repeat(" ", maxStored) + "}")
	if _, err := Parse(large); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
	g := Group{}
	pins := map[int]string{}
	for n := range 65536 {
		pins[n] = strings.Repeat("w", 64)
	}
	g = g.Join("x1", Executor{Worker: "host-1", JoinedAt: time.UnixMilli(1), Expiry: time.Second}, 65536, "s")
	g.Pins = pins
	if _, err := Parse(g.Encode()); err != nil {
		t.Errorf("the largest that makes sense, %d bytes: %v", len(g.Encode()), err)
	}
}
