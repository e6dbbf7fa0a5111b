package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
)

// delayedShop has five delayed orders of ada and bob, in two partitions, due from ten minutes on.
func delayedShop(t *testing.T) (s *shop, ids []string) {
	t.Helper()
	s = newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer", Codec: codec.JSON})
	for i, customer := range []string{"ada", "bob", "ada", "bob", "ada"} {
		sent, err := s.orders.SendAfter(t.Context(), time.Duration(10+i)*time.Minute, order{customer, float64(i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, sent[0].ID)
	}
	return s, ids
}

// listed returns the IDs that `delayed ls` prints.
func (s *shop) listed(args ...string) (ids []string) {
	s.t.Helper()
	for _, e := range parse[[]shownDelayed](s.t, s.run(append([]string{"delayed", "ls", "orders", "--output", "json"}, args...)...)) {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestDelayedLs(t *testing.T) {
	s, ids := delayedShop(t)
	events := parse[[]shownDelayed](t, s.run("delayed", "ls", "orders", "--output", "json"))
	if len(events) != 5 {
		t.Fatalf("got %+v", events)
	}
	for i, e := range events {
		due, sent := time.Until(e.Due).Minutes(), time.Since(e.Sent).Minutes()
		if e.ID != ids[i] || fmt.Sprint(e.Partition) != e.ID[:1] || due < 8 || due > float64(11+i) || sent > 1 || string(e.Record) != fmt.Sprintf(`{"customer":"%s","amount":%d}`, []string{"ada", "bob"}[i%2], i) {
			t.Errorf("%d: got %+v", i, e)
		}
	}
	s.run("delayed", "ls", "orders").matches(t, `^ID +DUE +IN +SENT +KEY +RECORD\n`,
		`(?m)^`+ids[1]+` +20\S+Z +\d+m\d+s +\S+ ago +bob +{"customer":"bob","amount":1}$`)
	partition := ids[1][:1]
	for flags, want := range map[string][]string{
		"--limit 2":                               ids[:2],
		"--partition " + partition:                {ids[1], ids[3]},
		"--partition " + partition + " --limit 1": {ids[1]},
		ids[4]:                {ids[4]},
		ids[4] + " " + ids[0]: {ids[0], ids[4]},
	} {
		if got := s.listed(strings.Fields(flags)...); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", flags, got, want)
		}
	}
	// Without the app's types, the codec comes from the metadata.
	s.untyped("delayed", "ls", "orders").matches(t, `(?m)^`+ids[1]+` .* bob +{"customer":"bob","amount":1}$`)
	s.run("status", "--output", "json").want(t, 0, `"delayed":5`, "")
	s.run("status", "orders").want(t, 0, "partitioner xxh64, 5 delayed\n", "")
}

func TestDelayedCancel(t *testing.T) {
	s, ids := delayedShop(t)
	s.untyped("delayed", "cancel", "--yes", "orders", ids[1]).want(t, 0, "1 event cancelled\n", "")
	s.run("delayed", "cancel", "--yes", "orders", ids[1]).want(t, 1, "0 events cancelled\n", "not delayed any more, or never were: "+ids[1])
	r := s.run("delayed", "cancel", "--yes", "orders", ids[1], ids[2], "--output", "json")
	if r.code != 1 || r.out != fmt.Sprintf(`{"stream":"orders","done":"cancelled","events":["%s"],"missing":["%s"]}`+"\n", ids[2], ids[1]) {
		t.Errorf("got %+v", r)
	}
	s.run("delayed", "cancel", "--yes", "orders", "--limit", "1").want(t, 0, "1 event cancelled\n", "")
	if got := s.listed(); !slices.Equal(got, ids[3:]) {
		t.Errorf("left %v, want %v", got, ids[3:])
	}
	s.run("delayed", "cancel", "--yes", "orders", "--all").want(t, 0, "2 events cancelled\n", "")
	s.run("delayed", "cancel", "--yes", "orders", "--all").want(t, 0, "0 events cancelled\n", "")
	if got := s.listed(); len(got) != 0 || s.count() != 0 {
		t.Errorf("left %v, sent %d", got, s.count())
	}
}

// An ID given twice is missing the second time. After an error, only the events before it can be
// missing.
func TestDelayedMissing(t *testing.T) {
	s, ids := delayedShop(t)
	s.run("delayed", "cancel", "--yes", "orders", ids[0], ids[0], "--output", "json").want(t, 1, `"missing":["`+ids[0]+`"]`, "never were: "+ids[0])
	for _, tt := range []struct {
		ids, some []string
		all       bool
		want      []string
	}{
		{[]string{"a", "b", "c", "a"}, []string{"b", "a"}, true, []string{"a", "c"}},
		{[]string{"a", "b", "c", "d"}, []string{"b"}, false, []string{"a"}},
		{[]string{"a"}, nil, false, nil},
	} {
		if got := missing(tt.ids, tt.some, tt.all); !slices.Equal(got, tt.want) {
			t.Errorf("%v of %v: %v are missing, want %v", tt.some, tt.ids, got, tt.want)
		}
	}
}

func TestDelayedFire(t *testing.T) {
	s, ids := delayedShop(t)
	seen := s.handled()
	worker := s.start("worker")
	s.untyped("delayed", "fire", "orders", ids[3]).want(t, 0, "1 event fired\n", "")
	if got := receive(t, seen, "event that was fired"); got != "bob" {
		t.Errorf("got %s", got)
	}
	s.run("delayed", "fire", "orders", ids[3]).want(t, 1, "0 events fired\n", "not delayed any more")
	s.run("delayed", "fire", "orders", "--partition", ids[0][:1]).want(t, 0, "3 events fired\n", "")
	for range 3 {
		if got := receive(t, seen, "event that was fired"); got != "ada" {
			t.Errorf("got %s", got)
		}
	}
	if got := s.listed(); !slices.Equal(got, ids[1:2]) {
		t.Errorf("left %v, want %v", got, ids[1:2])
	}
	if r := worker.stop(); r.code != 0 {
		t.Errorf("worker: %+v", r)
	}
}

func TestDelayedMistakes(t *testing.T) {
	s, ids := delayedShop(t)
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"delayed":                                  {2, "a command is needed: ls, cancel, fire"},
		"delayed move orders":                      {2, `unknown command "move"`},
		"delayed ls":                               {2, "which stream?"},
		"delayed ls payments":                      {1, `no stream "payments"`},
		"delayed ls orders --partition 2":          {1, "no partition 2: it has 2"},
		"delayed ls orders --limit 0":              {2, "--limit is at least 1"},
		"delayed ls orders 42":                     {2, `"42" is no ID of a delayed event, such as 3/`},
		"delayed cancel orders 17000-0":            {2, "is no ID of a delayed event"},
		"delayed cancel orders 9/0000000000000001": {1, "no partition 9: it has 2"},
		"delayed cancel orders":                    {2, "which ones? say an ID, --partition, --limit, or --all"},
		"delayed fire orders":                      {2, "which ones?"},
		"delayed fire orders " + ids[0] + " --all": {2, "an ID says which event"},
	} {
		s.run(strings.Fields(line)...).want(t, want.code, "", want.text)
	}
	if got := s.listed(); len(got) != 5 {
		t.Errorf("left %v", got)
	}
}
