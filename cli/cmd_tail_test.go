package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
)

func shownEvents(t *testing.T, out string) (events []shownEvent) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e shownEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

func (s *shop) tailed(args ...string) []shownEvent {
	s.t.Helper()
	r := s.run(append([]string{"tail", "orders", "--output", "json"}, args...)...)
	if r.code != 0 {
		s.t.Fatalf("%v: %+v", args, r)
	}
	return shownEvents(s.t, r.out)
}

func keysOf(events []shownEvent) (keys []string) {
	for _, e := range events {
		if e.Key == nil {
			keys = append(keys, "?")
		} else {
			keys = append(keys, *e.Key)
		}
	}
	return keys
}

// sendOneByOne sends orders of customers c0, c1, … with ascending IDs.
func (s *shop) sendOneByOne(n int) {
	s.t.Helper()
	for i := range n {
		s.sends(order{Customer: fmt.Sprint("c", i), Amount: float64(i)})
		time.Sleep(2 * time.Millisecond)
	}
}

func TestTailShowsEventsInTheirOrder(t *testing.T) {
	for _, codec := range []codec.Codec{codec.MsgPack, codec.JSON} {
		t.Run(codec.Name(), func(t *testing.T) {
			s := newShop(t, &runnel.StreamOptions{Partitions: 4, Codec: codec, KeyField: "customer"})
			s.sendOneByOne(15)
			var all []string
			for i := range 15 {
				all = append(all, fmt.Sprint("c", i))
			}
			if got := keysOf(s.tailed("--from", "start")); !slices.Equal(got, all) {
				t.Errorf("from the start: %v", got)
			}
			if got := keysOf(s.tailed()); !slices.Equal(got, all[5:]) {
				t.Errorf("the last ones: %v", got)
			}
			events := s.tailed("--from", "start", "-n", "3")
			if got := keysOf(events); !slices.Equal(got, all[:3]) || string(events[1].Record) != `{"customer":"c1","amount":1}` || events[1].Err != "" {
				t.Errorf("%+v", events)
			}
			third := events[2]
			if got := keysOf(s.tailed("--from", third.ID)); !slices.Equal(got, all[2:]) {
				t.Errorf("from an ID: %v", got)
			}
			if got := keysOf(s.tailed("--from", third.Time.Format(time.RFC3339Nano))); !slices.Equal(got, all[2:]) {
				t.Errorf("from a time: %v", got)
			}
			if got := keysOf(s.tailed("--from", "-1h")); !slices.Equal(got, all) {
				t.Errorf("of the last hour: %v", got)
			}
			if got := s.tailed("--from", "end"); len(got) != 0 {
				t.Errorf("from the end: %v", got)
			}
			if got := keysOf(s.tailed("--from", "start", "--key", "c7")); !slices.Equal(got, []string{"c7"}) {
				t.Errorf("of a key: %v", got)
			}
			if got := keysOf(s.tailed("--from", "start", "--grep", `"amount":1[0-2]}`)); !slices.Equal(got, all[10:13]) {
				t.Errorf("matching: %v", got)
			}
			for _, e := range s.tailed("--from", "start", "--partition", "2") {
				if e.Partition != 2 {
					t.Errorf("of a partition: %+v", e)
				}
			}
			raw := s.tailed("--from", "start", "--limit", "1", "--raw")
			if len(raw) != 1 || raw[0].Fields["data"] == nil || raw[0].Record != nil {
				t.Errorf("raw: %+v", raw)
			}
			// A program without types reads the same.
			r := s.untyped("tail", "orders", "--from", "start", "--output", "json")
			if got := keysOf(shownEvents(t, r.out)); !slices.Equal(got, all) {
				t.Errorf("without types: %v of %+v", got, r)
			}
			r = s.untyped("tail", "orders", "-n", "1")
			if want := `^20\S+Z  \d/\d+-\d+  c14  {.*"amount":14.*}\n$`; !regexp.MustCompile(want).MatchString(r.out) {
				t.Errorf("no %s in %s", want, r.out)
			}
		})
	}
}

// tail shows several pages of each partition, and no event twice.
func TestTailOverManyPages(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 3, KeyField: "customer"})
	s.send(1000)
	seen := map[string]bool{}
	for _, e := range s.tailed("--from", "start") {
		if seen[*e.Key] {
			t.Fatalf("%s twice", *e.Key)
		}
		seen[*e.Key] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d events", len(seen))
	}
	if n := len(s.tailed("--from", "start", "--limit", "250")); n != 250 {
		t.Errorf("%d events, want 250", n)
	}
}

// tail shows the full number of events even while others are appended.
func TestTailOfABusyStream(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 3, KeyField: "customer"})
	s.send(50)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; i < 20_000; i++ {
			select {
			case <-stop:
				return
			default:
				s.orders.Send(context.Background(), order{Customer: fmt.Sprint("b", i)})
			}
		}
	}()
	for range 20 {
		if n := len(s.tailed()); n != tailedByDefault {
			t.Errorf("%d events, want %d", n, tailedByDefault)
		}
	}
	close(stop)
	<-stopped
}

// tail needs no consumer group, leaves none, and takes nothing from processors.
func TestTailTakesNothing(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1})
	s.send(5)
	if n := len(s.tailed("--from", "start")); n != 5 {
		t.Fatalf("%d events", n)
	}
	if groups := s.rdb.XInfoGroups(t.Context(), "__strm:shop.orders.0").Val(); len(groups) != 0 {
		t.Errorf("groups %v", groups)
	}
	handled := s.handled()
	w := s.start("worker")
	for range 5 {
		receive(t, handled, "event")
	}
	w.stop().want(t, 0, "", "worker stopped")
}

func TestTailFollows(t *testing.T) {
	for _, args := range [][]string{{"--from", "end"}, {"-n", "1"}} {
		t.Run(args[0], func(t *testing.T) { follows(t, args) })
	}
}

func follows(t *testing.T, args []string) {
	t.Helper()
	s := newShop(t, &runnel.StreamOptions{Partitions: 4, KeyField: "customer"})
	s.send(20)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, s.app, append(args, "tail", "orders", "-f", "--output", "json", "--redis-url", s.url), nil, w, io.Discard)
		w.Close()
	}()
	events := make(chan shownEvent, 100)
	go func() {
		for lines := json.NewDecoder(r); ; {
			var e shownEvent
			if lines.Decode(&e) != nil {
				close(events)
				return
			}
			events <- e
		}
	}()
	// Events from before tail began are not shown.
	began := false
	for i := 0; !began; i++ {
		s.sends(order{Customer: fmt.Sprint("first", i)})
		select {
		case e := <-events:
			began = strings.HasPrefix(*e.Key, "first")
			if !began && args[0] == "--from" {
				t.Fatalf("%+v was there before", e)
			}
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.sendOneByOne(12)
	var got []string
	for len(got) < 12 {
		if e := receive(t, events, "event"); !strings.HasPrefix(*e.Key, "first") {
			got = append(got, *e.Key)
		}
	}
	if got[0] != "c0" || got[11] != "c11" {
		t.Errorf("%v", got)
	}
	cancel()
	if c := receive(t, code, "end of the command"); c != 0 {
		t.Errorf("exit code %d", c)
	}
}

func TestTailOfEntriesThatCannotBeDecoded(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, KeyField: "customer"})
	s.send(1)
	for _, values := range [][]any{{"data", "\xc1"}, {"other", "x"}, {"json", `{"customer":"ada"`}, {"data", "\xc1", "__key", "a b"}} {
		s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: "__strm:shop.orders.0", Values: values})
	}
	for name, run := range map[string]func(...string) result{"typed": s.run, "untyped": s.untyped} {
		r := run("tail", "orders", "--output", "json")
		events := shownEvents(t, r.out)
		if len(events) != 5 || events[0].Err != "" {
			t.Fatalf("%s: %+v", name, r)
		}
		for _, e := range events[1:] {
			if e.Err == "" || e.Record != nil {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if got := keysOf(events); !slices.Equal(got, []string{"c0", "?", "?", "?", "a b"}) {
			t.Errorf("%s: keys %v", name, got)
		}
		run("tail", "orders").want(t, 0, `"a b"  cannot be decoded: `, "")
	}
}

func TestTailMistakes(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	s.send(1)
	s.untyped("tail").want(t, 2, "", "which stream?")
	s.untyped("tail", "nope").want(t, 1, "", `no stream "nope"`)
	s.untyped("tail", "orders", "--partition", "2").want(t, 1, "", "partition 2")
	s.untyped("tail", "orders", "--from", "soon").want(t, 2, "", `--from "soon" is none of start`)
	s.untyped("tail", "orders", "--from", "1h").want(t, 2, "", `--from "1h" is none of start`)
	s.untyped("tail", "orders", "--grep", "(").want(t, 2, "", "--grep: ")
	s.untyped("tail", "orders", "--limit", "0").want(t, 2, "", "--limit is at least 1")
}
