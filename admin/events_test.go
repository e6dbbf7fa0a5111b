package admin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/servers"
)

const alice = "aaaaaaaaaaaaaaaa"

var me = store.Claim{Executor: alice, Number: 1}

// both runs a test on a redis-server and on the embedded server.
func both(t *testing.T, test func(t *testing.T, a *Client, c *store.Client)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr})
		t.Cleanup(func() { app.Close() })
		c, err := appview.Of(app).Client()
		must(t, err)
		test(t, New(app), c)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stream(t *testing.T, c *store.Client, name string, processors ...string) {
	t.Helper()
	_, err := c.EnsureMeta(t.Context(), name, store.Meta{Partitions: 4, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: processors})
	must(t, err)
}

// pending makes alice own a partition and read n entries: 1-0, 2-0, …
func pending(t *testing.T, c *store.Client, p store.Partition, n int) []redisconn.Entry {
	t.Helper()
	for i := range n {
		must(t, c.Redis().XAdd(t.Context(), &redis.XAddArgs{Stream: p.Log, ID: fmt.Sprint(i+1, "-0"), Values: []any{"data", i}}).Err())
	}
	must(t, c.Lock(t.Context(), p, me, time.Hour, 0))
	_, err := c.Takeover(t.Context(), p, me, "", 0)
	must(t, err)
	r := c.NewReader()
	defer r.Close()
	got, err := r.Read(t.Context(), store.GroupName(p.Processor, alice), "c", []string{p.Log}, n, 0)
	must(t, err)
	return got[0].Entries
}

func key(k string) *string { return &k }

func TestDeadLettersAreChosen(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		stream(t, c, "orders", "printer")
		began := time.Now().Add(-time.Minute)
		letters := map[string]store.DeadLetter{}
		for n := range 3 {
			p := c.Partition("orders", "printer", n)
			entries := pending(t, c, p, 4)
			slices.Reverse(entries) // not in the order in which they were appended
			for i, e := range entries {
				must(t, c.DeadLetter(t.Context(), p, me, store.DeadLetter{
					Entry: e, Key: fmt.Sprint("k", i%2), Attempts: 3, Error: fmt.Sprint("Fault ", i), Reason: "failed", Last: began,
				}))
			}
			page, err := c.DeadLetters(t.Context(), p, "", 10)
			must(t, err)
			for _, d := range page {
				letters[fmt.Sprint(n, "/", d.Entry.ID)] = d
			}
		}
		all := []int{0, 1, 2, 3}
		tests := []struct {
			name   string
			filter Filter
			want   string
		}{
			{"all", Filter{Partitions: all}, "[0/1-0 1/1-0 2/1-0 0/2-0 1/2-0 2/2-0 0/3-0 1/3-0 2/3-0 0/4-0 1/4-0 2/4-0]"},
			{"limit", Filter{Partitions: all, Limit: 4}, "[0/1-0 1/1-0 2/1-0 0/2-0]"},
			{"partition", Filter{Partitions: []int{1}}, "[1/1-0 1/2-0 1/3-0 1/4-0]"},
			{"key", Filter{Partitions: all, Key: key("k0")}, "[0/2-0 1/2-0 2/2-0 0/4-0 1/4-0 2/4-0]"},
			{"no such key", Filter{Partitions: all, Key: key("")}, "[]"},
			{"event", Filter{Partitions: []int{1}, ID: "3-0"}, "[1/3-0]"},
			{"dead letter", Filter{Partitions: []int{2}, ID: letters["2/3-0"].ID}, "[2/3-0]"},
			{"error", Filter{Partitions: all, Error: "fault 3"}, "[0/1-0 1/1-0 2/1-0]"},
			{"reason", Filter{Partitions: []int{0}, Error: "FAILED", Limit: 1}, "[0/1-0]"},
			{"no such error", Filter{Partitions: all, Error: "fire"}, "[]"},
			{"since", Filter{Partitions: []int{0}, Since: began}, "[0/1-0 0/2-0 0/3-0 0/4-0]"},
			{"since later", Filter{Partitions: all, Since: time.Now().Add(time.Hour)}, "[]"},
		}
		for _, tt := range tests {
			got, err := a.DeadLetters("orders", "printer").List(t.Context(), &tt.filter)
			must(t, err)
			ids := []string{}
			for _, d := range got {
				ids = append(ids, d.Event)
				if d.Fields != nil || d.Attempts != 3 || d.First != nil || !d.Last.Equal(began.Truncate(time.Millisecond)) || d.Died.Before(began) {
					t.Errorf("%s: %+v", tt.name, d)
				}
			}
			if fmt.Sprint(ids) != tt.want {
				t.Errorf("%s: got %v, want %s", tt.name, ids, tt.want)
			}
		}
		full, err := a.DeadLetters("orders", "printer").Read(t.Context(), &Filter{Partitions: []int{1}, ID: "2-0"})
		must(t, err)
		if len(full) != 1 || full[0].Fields["data"] != "1" {
			t.Errorf("with fields: %+v", full)
		}
	})
}

func TestDeadLettersOverManyPages(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		stream(t, c, "orders", "printer")
		p := c.Partition("orders", "printer", 0)
		for _, e := range pending(t, c, p, 2*lettersPerTrip) {
			must(t, c.DeadLetter(t.Context(), p, me, store.DeadLetter{Entry: e}))
		}
		var looked []int
		a = a.WithProgress(func(_ string, done, _ int64) { looked = append(looked, int(done)) })
		got, err := a.DeadLetters("orders", "printer").List(t.Context(), &Filter{Partitions: []int{0}})
		must(t, err)
		if len(looked) < 2 || !slices.IsSorted(looked) || looked[len(looked)-1] != 2*lettersPerTrip {
			t.Errorf("looked at %v", looked)
		}
		if len(got) != 2*lettersPerTrip || got[len(got)-1].Event != fmt.Sprint("0/", 2*lettersPerTrip, "-0") {
			t.Errorf("%d dead letters", len(got))
		}
	})
}

func TestStatesOfParkedEvents(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		stream(t, c, "orders", "printer")
		p := c.Partition("orders", "printer", 1)
		entries := pending(t, c, p, 6)
		soon := time.Now().Add(time.Hour).UnixMilli()
		for i, s := range []store.RetryState{
			{Lane: "ka", Key: "a", Attempts: 2, Running: true, First: 5, Last: 7, Error: "no ink"},
			{Lane: "kb", Key: "b", Attempts: 1, At: soon, Error: "no paper"},
			{Lane: "ka", Key: "a"},
			{Lane: "kc", Key: "c", Attempts: 1, At: 1},
			{Lane: "kd", Key: "d", Attempts: 1},
			{Lane: "kb", Key: "b"},
		} {
			must(t, c.Park(t.Context(), p, me, 0, []store.Parking{{Entry: entries[i], State: s}}))
		}
		got, err := a.Parked("orders", "printer").List(t.Context(), &Filter{Partitions: []int{0, 1}})
		must(t, err)
		var states []string
		for _, r := range got {
			states = append(states, fmt.Sprint(r.id, r.Key, r.State, r.Attempts))
		}
		if want := "[1-0arunning2 2-0bwaiting1 3-0abehind0 4-0cdue1 5-0ddue1 6-0bbehind0]"; fmt.Sprint(states) != want {
			t.Errorf("got %v, want %s", states, want)
		}
		if got[0].First.UnixMilli() != 5 || got[0].Last.UnixMilli() != 7 || got[0].At != nil {
			t.Errorf("%+v", got[0])
		}
		if got[1].In < 3000_000 || got[1].In > 3600_000 || got[1].At.UnixMilli() != soon || got[1].First != nil {
			t.Errorf("%+v", got[1])
		}
		for name, tt := range map[string]struct {
			f    Filter
			want int
		}{
			"key": {Filter{Key: key("b")}, 2}, "event": {Filter{ID: "4-0"}, 1}, "error": {Filter{Error: "NO"}, 2}, "limit": {Filter{Limit: 3}, 3},
		} {
			tt.f.Partitions = []int{1}
			chosen, err := a.Parked("orders", "printer").List(t.Context(), &tt.f)
			must(t, err)
			if len(chosen) != tt.want {
				t.Errorf("%s: got %+v", name, chosen)
			}
		}
		chosen, err := a.Parked("orders", "printer").List(t.Context(), &Filter{Partitions: []int{1}, ID: "6-0"})
		must(t, err)
		if len(chosen) != 1 || chosen[0].State != ParkedBehind { // behind an event that is not selected
			t.Errorf("got %+v", chosen)
		}
	})
}

// The oldest events are selected, in whatever order they died.
func TestTheOldestDeadLettersAreChosen(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		stream(t, c, "orders", "printer")
		p := c.Partition("orders", "printer", 2)
		entries := pending(t, c, p, 60)
		slices.Reverse(entries)
		for _, e := range entries {
			must(t, c.DeadLetter(t.Context(), p, me, store.DeadLetter{Entry: e}))
		}
		got, err := a.DeadLetters("orders", "printer").List(t.Context(), &Filter{Partitions: []int{0, 2}, Limit: 3})
		must(t, err)
		var events []string
		for _, d := range got {
			events = append(events, d.Event)
		}
		if want := []string{"2/1-0", "2/2-0", "2/3-0"}; !slices.Equal(events, want) {
			t.Errorf("got %q, want %q", events, want)
		}
	})
}
