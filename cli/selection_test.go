package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// An owner is who owns a partition of orders/printer in a test, and the events
// that it was given.
type owner struct {
	t       *testing.T
	c       *store.Client
	place   store.Partition
	tenure  store.Claim
	entries []redisconn.Entry
}

// owners sends so many orders, of ada, bob, ada, bob, …, each in a millisecond of
// its own, so that their IDs tell the order over both partitions, and owns these.
func (s *shop) owners(n int) []*owner {
	s.t.Helper()
	for i := range n {
		record := order{Customer: []string{"ada", "bob"}[i%2], Amount: float64(i)}
		sent, err := s.orders.SendEvents(s.t.Context(), runnel.Outgoing[order]{Record: record})
		if err != nil {
			s.t.Fatal(err)
		}
		eventually(s.t, "the next millisecond", func() bool {
			return s.rdb.Time(s.t.Context()).Val().Truncate(time.Millisecond).After(entryid.Time(sent[0].ID))
		})
	}
	c := s.client()
	meta, err := c.EnsureMeta(s.t.Context(), "orders", metaOf("printer"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all []*owner
	for i := range meta.Partitions {
		o := &owner{t: s.t, c: c, place: c.Partition("orders", "printer", i), tenure: store.Claim{Executor: "aaaaaaaaaaaaaaaa", Number: 1}}
		o.must(c.Lock(s.t.Context(), o.place, o.tenure, time.Hour, 0))
		_, err := c.Takeover(s.t.Context(), o.place, o.tenure, "", 0)
		o.must(err)
		r := c.NewReader()
		defer r.Close()
		got, err := r.Read(s.t.Context(), store.GroupName("printer", o.tenure.Executor), "c", []string{o.place.Log}, n, 0)
		o.must(err)
		if len(got) > 0 {
			o.entries = got[0].Entries
		}
		all = append(all, o)
	}
	return all
}

func (o *owner) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// bury makes dead letters of all events; park parks them, the first in its lane
// for an hour.
func (o *owner) bury(key, text string) {
	o.t.Helper()
	for _, e := range o.entries {
		o.must(o.c.DeadLetter(o.t.Context(), o.place, o.tenure, store.DeadLetter{
			Entry: e, Key: key, Attempts: 3, First: time.Now(), Last: time.Now(), Error: text, Reason: "failed", Epoch: 7,
		}))
	}
}

func (o *owner) park(key string) {
	o.t.Helper()
	for i, e := range o.entries {
		s := store.RetryState{Lane: "k" + key, Key: key}
		if i == 0 {
			s.Attempts, s.Last, s.Error = 2, time.Now().UnixMilli(), "no\nink"
			s.At = time.Now().Add(time.Hour).UnixMilli()
		}
		o.must(o.c.Park(o.t.Context(), o.place, o.tenure, 0, []store.Parking{{Entry: e, State: s}}))
	}
}

// eventID is what an event is called.
var eventID = entryid.EventID

// two is a shop with the orders of ada in one partition and those of bob in
// another one.
func two(t *testing.T, n int) (s *shop, ada, bob *owner) {
	t.Helper()
	s = newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer", Codec: codec.JSON,
		Partitioner: &runnel.Partitioner{Name: "xxh64", Func: func(key string, n int) int { return int(key[0]-'a') % n }}})
	owners := s.owners(n)
	return s, owners[0], owners[1]
}

func TestRetryLs(t *testing.T) {
	s, ada, bob := two(t, 4)
	ada.park("ada")
	bob.park("")
	id := eventID(0, ada.entries[0].ID)
	s.untyped("parked", "ls", "orders/printer").matches(t,
		`^ID +KEY +ATTEMPTS +STATE +LAST FAILURE +ERROR\n`,
		`(?m)^`+id+` +ada +2 +waits 1h0m0s|59m\d+s +\S+ ago +no ink$`,
		`(?m)^`+eventID(1, bob.entries[1].ID)+` +- +0 +behind +- +-$`)
	all := parse[[]admin.ParkedEvent](t, s.run("parked", "ls", "orders/printer", "--output", "json"))
	if len(all) != 4 || all[0].Event != eventID(0, ada.entries[0].ID) || all[0].Key != "ada" || all[0].State != "waiting" || all[0].Error != "no\nink" || all[3].State != "behind" {
		t.Errorf("got %+v", all)
	}
	for flags, want := range map[string]int{
		"--key ada": 2, "--partition 1": 2, "--limit 3": 3, "--id " + id: 1, "--id " + eventID(0, ada.entries[1].ID): 1, "--error INK": 2, "--key=": 2,
		"--key ada --partition 1": 0,
	} {
		args := append([]string{"parked", "ls", "orders/printer", "--output", "json"}, strings.Fields(flags)...)
		if got := parse[[]admin.ParkedEvent](t, s.untyped(args...)); len(got) != want {
			t.Errorf("%s: got %+v, want %d", flags, got, want)
		}
	}
}

func TestRetryNowAndDrop(t *testing.T) {
	s, ada, bob := two(t, 6)
	ada.park("ada")
	bob.park("bob")
	id := eventID(0, ada.entries[0].ID)
	s.untyped("parked", "retry", "orders/printer", "--key", "ada").want(t, 0, id+"\n1 event due now\n", "")
	states := told[[]admin.ParkedEvent](s, "parked", "ls", "orders/printer")
	if states[0].State != "due" || states[1].State != "waiting" {
		t.Errorf("got %+v", states)
	}
	s.untyped("parked", "retry", "orders/printer", "--id", eventID(1, bob.entries[1].ID)).want(t, 0, "0 events due now\n", "")

	s.untyped("parked", "drop", "--yes", "orders/printer").want(t, 2, "", "say --all")
	got := parse[changedEvents](t, s.run("parked", "drop", "--yes", "orders/printer", "--id", id, "--output", "json"))
	if len(got.Events) != 1 || got.Events[0] != id || got.Stream != "orders" || got.Processor != "printer" {
		t.Errorf("got %+v", got)
	}
	s.untyped("parked", "drop", "--yes", "orders/printer", "--limit", "1").want(t, 0, eventID(1, bob.entries[0].ID)+"\n1 event dropped\n", "")
	s.untyped("parked", "drop", "--yes", "orders/printer", "--all").want(t, 0, "4 events dropped\n", "")
	p := s.processor()
	if p.Totals.Parked != 0 || p.Totals.Dead != 0 || p.Totals.Pending != 0 {
		t.Errorf("left %+v", p.Totals)
	}
}

func TestStatusShowsWhatStandsAside(t *testing.T) {
	s, ada, bob := two(t, 6)
	ada.park("ada")
	bob.bury("bob", "no paper")
	ada.must(ada.c.Quarantine(t.Context(), ada.place, ada.tenure, store.Quarantine{
		Reason: "event " + eventID(0, ada.entries[2].ID) + ": panic: no\nprinter\n\ngoroutine 7 [running]:\nmain.main()", Event: ada.entries[2].ID, Worker: "w1", At: 1767225600123,
	}))
	s.untyped("status", "orders/printer").matches(t,
		`PENDING +LAG +AGE +DELAYED +PARKED +DEAD +LOST +ACKED TO`,
		`(?m)^0 +aaaaaaaaaaaaaaaa +\S+ +\d+ +0 +0 +- +0 +3 +0 .* quarantined$`, `(?m)^1 +aaaaaaaaaaaaaaaa +\S+ +\d+ +0 +0 +- +0 +0 +3 .* ok$`, `(?m)^total +2 owned +0 +0 +- +0 +3 +3 +0 *$`,
		`partition 0 is quarantined since 2026-01-01T00:00:00Z by worker w1, at event `+eventID(0, ada.entries[2].ID)+`: panic: no printer\n`)
	p := s.processor()
	if p.Totals != (inspect.Totals{Owned: 2, Length: 6, Parked: 3, Dead: 3, Quarantined: 1}) || !strings.Contains(p.Partitions[0].Quarantine.Reason, "main.main()") {
		t.Errorf("totals %+v, %+v", p.Totals, p.Partitions[0].Quarantine)
	}
}

func TestProcessorResume(t *testing.T) {
	s, ada, bob := two(t, 2)
	for i, o := range []*owner{ada, bob} {
		reason := "event " + eventID(i, o.entries[0].ID) + ": no\nink" // the event is shown apart
		o.must(o.c.Quarantine(t.Context(), o.place, o.tenure, store.Quarantine{Reason: reason, Event: o.entries[0].ID, Worker: "w1", At: 1767225600123}))
	}
	stop := told[[]inspect.RuleState](s, "rules", "ls")
	if len(stop) != 2 || stop[1].Kind != "quarantine" || stop[1].Scope != "partition:orders/printer/1" || stop[1].Who != "w1" || stop[1].Why != "event "+stop[1].Event+": no\nink" ||
		stop[1].Event != eventID(1, bob.entries[0].ID) || stop[1].Command != "quarantine release orders/printer --partition 1" || stop[1].At.UnixMilli() != 1767225600123 {
		t.Errorf("%+v", stop)
	}
	s.untyped("rules", "ls").want(t, 0, "quarantine  partition:orders/printer/0  w1   2026-01-01T00:00:00Z  until released  at event "+eventID(0, ada.entries[0].ID)+": no ink  cli.test --app shop quarantine release orders/printer --partition 0\n", "")
	s.untyped("quarantine", "release", "orders/printer").want(t, 2, "", "which partition? say --partition N")
	s.untyped("quarantine", "release", "orders/printer", "--partition", "2").want(t, 1, "", "stream orders has no partition 2")
	s.untyped("quarantine", "release", "orders/other", "--partition", "0").want(t, 1, "", `no processor "other"; it has printer`)
	s.untyped("quarantine", "release", "returns/printer", "--partition", "0").want(t, 1, "", `no stream "returns"`)
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0").want(t, 0, "orders/printer partition 0: released; it was quarantined for: event "+eventID(0, ada.entries[0].ID)+": no ink\n", "")
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0").want(t, 1, "", "stream orders partition 0: processor printer: it is not quarantined")
	got := parse[admin.Released](t, s.run("quarantine", "release", "orders/printer", "--skip", "--yes", "--partition", "1", "--output", "json"))
	if want := (admin.Released{Stream: "orders", Processor: "printer", Partition: 1, Reason: stop[1].Why, Event: eventID(1, bob.entries[0].ID), At: time.UnixMilli(1767225600123).UTC(), Skipped: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if text := releasedText(got); !strings.HasSuffix(text, ": released, event "+got.Event+" is passed over; it was quarantined for: no ink") {
		t.Error(text)
	}
	for i, skip := range []string{"", bob.entries[0].ID} {
		next := store.Claim{Executor: "bbbbbbbbbbbbbbbb", Number: 1}
		o := []*owner{ada, bob}[i]
		o.must(o.c.Unlock(t.Context(), o.place, o.tenure))
		o.must(o.c.Lock(t.Context(), o.place, next, time.Hour, 0))
		pos, err := o.c.Takeover(t.Context(), o.place, next, "", 0)
		o.must(err)
		if pos.Quarantine != nil || pos.Skip != skip {
			t.Errorf("partition %d: quarantine %v, skip %q", i, pos.Quarantine, pos.Skip)
		}
	}
}

func TestResumeOfAQuarantineWithoutAnEvent(t *testing.T) {
	s, ada, _ := two(t, 2)
	ada.must(ada.c.Quarantine(t.Context(), ada.place, ada.tenure, store.Quarantine{Reason: "no database"}))
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0", "--skip", "--yes").want(t, 1, "", "the quarantine names no event that could be skipped")
	s.untyped("quarantine", "release", "orders/printer", "--partition", "0").want(t, 0, "released", "")
}

func TestFlagsThatChoose(t *testing.T) {
	s, ada, _ := two(t, 2)
	ada.bury("ada", "no ink")
	for flags, want := range map[string]string{
		"--limit 0":                "--limit is at least 1",
		"--partition -1":           "--partition is 0 or more",
		"--id x":                   `--id "x" is no ID`,
		"--id 1/1-1 --partition 0": "--id is of partition 1, --partition says 0",
		"--since 0s":               "--since is a time that has passed",
		"more":                     "say STREAM/PROCESSOR",
	} {
		s.untyped(append([]string{"dead", "ls", "orders/printer"}, strings.Fields(flags)...)...).want(t, 2, "", want)
	}
	s.untyped("dead", "ls", "orders").want(t, 2, "", "say STREAM/PROCESSOR")
	s.untyped("dead").want(t, 2, "", "a command is needed: ls, show, retry, replay, drop")
	s.untyped("parked", "stop").want(t, 2, "", `unknown command "stop"; there is ls, retry, drop`)
	s.untyped("processor", "stop").want(t, 2, "", `unknown command "stop"; there is ls, info, move, reset, rm`)
	s.untyped("dead", "ls", "orders/printer", "--id", "7/1-1").want(t, 1, "", "stream orders has no partition 7: it has 2, from 0 on")
	s.untyped("dead", "ls", "orders/other").want(t, 1, "", fmt.Sprintf("stream orders has no processor %q; it has printer", "other"))
	s.untyped("dead", "ls", "returns/printer").want(t, 1, "", `no stream "returns"`)
}
