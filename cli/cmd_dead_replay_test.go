package cli

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

func TestReplayReachesTheWorker(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	var broken atomic.Bool
	broken.Store(true)
	calls := s.failing(&broken, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 1}})
	w := s.start("worker")
	s.send(3)
	for range 3 {
		receive(t, calls, "call")
	}
	eventually(t, "three dead letters", func() bool { return s.processor().Totals.Dead == 3 })
	letters := printed[[]admin.DeadLetter](s, "dead", "ls", "orders/printer")
	for _, d := range letters {
		if d.Attempts != 1 || d.Reason != "failed" || d.Error != "no ink" || !strings.HasPrefix(d.Key, "c") || d.First == nil {
			t.Errorf("dead letter %+v", d)
		}
	}
	broken.Store(false)
	s.untyped("dead", "replay", "--yes", "orders/printer", "--key", "c1").want(t, 0, "1 dead letter replayed", "")
	if got := receive(t, calls, "call"); got != "c1" {
		t.Errorf("got %s", got)
	}
	s.untyped("dead", "replay", "--yes", "orders/printer").want(t, 0, "2 dead letters replayed", "")
	got := map[string]bool{receive(t, calls, "call"): true, receive(t, calls, "call"): true}
	eventually(t, "all is processed", func() bool { p := s.processor().Totals; return p.Lag == 0 && p.Dead == 0 && p.Parked == 0 })
	w.stop().want(t, 0, "", "worker stopped")
	if !got["c0"] || !got["c2"] || len(calls) != 0 {
		t.Errorf("got %v and %d more", got, len(calls))
	}
}

// fields returns the entries of a partition without their IDs.
func (s *shop) fields(stream string, partition int) (all []string) {
	s.t.Helper()
	entries, err := s.rdb.XRange(s.t.Context(), fmt.Sprintf("__strm:shop.%s.%d", stream, partition), "-", "+").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, fmt.Sprint(e.Values))
	}
	return all
}

// Events are replayed in the order in which they were sent, not in which they died.
func TestDeadReplay(t *testing.T) {
	s, ada, bob := two(t, 8)
	sent := [][]string{s.fields("orders", 0), s.fields("orders", 1)}
	slices.Reverse(ada.entries)
	ada.bury("ada", "no ink")
	bob.bury("bob", "no paper")
	dry := printed[replayedLetters](s, "dead", "replay", "--yes", "orders/printer", "--key", "ada", "--limit", "3", "--dry-run")
	if len(dry.Replayed) != 3 || !dry.DryRun || s.processor().Totals.Dead != 8 {
		t.Errorf("got %+v", dry)
	}
	got := printed[replayedLetters](s, "dead", "replay", "--yes", "orders/printer", "--key", "ada", "--limit", "3")
	for i, r := range got.Replayed {
		if r.ID != dry.Replayed[i].ID || r.ToStream != "orders" || r.ToPartition != 0 || r.ToEvent == "" {
			t.Errorf("replayed %+v", r)
		}
	}
	if now := s.fields("orders", 0); !slices.Equal(now, append(sent[0], sent[0][:3]...)) {
		t.Errorf("partition 0 has %q, began with %q", now, sent[0])
	}
	s.untyped("dead", "replay", "--yes", "orders/printer").matches(t, `(?m)^1/\S+ +\S+ +bob +\S+ ago +failed +→ +orders 1/\d+-\d+$`, `5 dead letters replayed\n$`)
	if now := s.fields("orders", 1); !slices.Equal(now, append(sent[1], sent[1]...)) {
		t.Errorf("partition 1 has %q, began with %q", now, sent[1])
	}
	p := s.processor()
	if p.Totals.Dead != 0 || p.Totals.Lag != 8 {
		t.Errorf("left %+v", p.Totals)
	}
	s.untyped("dead", "replay", "--yes", "orders/printer").want(t, 0, "0 dead letters replayed\n", "")
}

func TestDeadReplayToAnotherStream(t *testing.T) {
	s, ada, bob := two(t, 4)
	again := runnel.NewStream(s.app, "again", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: 5, Codec: codec.JSON})
	other := runnel.NewStream(s.app, "other", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: 1, Codec: codec.MsgPack})
	for _, stream := range []*runnel.Stream[order]{again, other} {
		if err := stream.Send(t.Context(), order{}); err != nil {
			t.Fatal(err)
		}
	}
	ada.bury("ada", "no ink")
	bob.bury("", "no paper") // with an unknown key
	s.untyped("dead", "replay", "--yes", "orders/printer", "--to", "none").want(t, 1, "", `no stream "none"`)
	s.untyped("dead", "replay", "--yes", "orders/printer", "--to", "other").want(t, 1, "", `stream other has the codec "msgpack", stream orders has "json"`)
	got := printed[replayedLetters](s, "dead", "replay", "--yes", "orders/printer", "--to", "again")
	if len(got.Replayed) != 4 || s.processor().Totals.Dead != 0 || len(s.fields("orders", 0)) != 2 {
		t.Fatalf("got %+v", got)
	}
	want := runnel.XXHash.Func("ada", 5)
	if fields := s.fields("again", want); !slices.Contains(fields, fmt.Sprint(map[string]any{"__key": "ada", "data": ada.entries[0].Values["data"]})) {
		t.Errorf("partition %d has %q", want, fields)
	}
	for _, r := range got.Replayed {
		if to := map[string]int{"ada": want, "": 1}[r.Key]; r.ToStream != "again" || r.ToPartition != to {
			t.Errorf("replayed to %+v", r)
		}
	}
	own := runnel.NewStream(s.app, "own", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: 3, Codec: codec.JSON,
		Partitioner: &runnel.Partitioner{Name: "last", Func: func(_ string, n int) int { return n - 1 }}})
	if err := own.Send(t.Context(), order{}); err != nil {
		t.Fatal(err)
	}
	owners := s.owners(2)
	owners[0].bury("ada", "no ink")
	s.untyped("dead", "replay", "--yes", "orders/printer", "--to", "own").want(t, 1, "", `the partitioner "last", which only the app knows`)
	s.run("dead", "replay", "--yes", "orders/printer", "--to", "own").want(t, 0, "own 2/", "")
	if fields := s.fields("again", 1); !slices.Contains(fields, fmt.Sprint(map[string]any{"data": bob.entries[0].Values["data"]})) {
		t.Errorf("partition 1 has %q", fields)
	}
}

// A replay that fails in the middle reports how far it came. After a repetition each event is there
// once, in order.
func TestDeadReplayThatEndsInTheMiddle(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{"before": faultproxy.CloseBefore, "after": faultproxy.CloseAfter} {
		t.Run(name, func(t *testing.T) {
			s, ada, _ := two(t, 12)
			sent := s.fields("orders", 0)
			ada.bury("ada", "no ink")
			letters := printed[[]admin.DeadLetter](s, "dead", "ls", "orders/printer")
			proxy := faultproxy.Start(t, strings.TrimPrefix(s.url, "redis://"))
			for _, command := range []string{"EVAL", "EVALSHA"} { // whichever is sent
				proxy.On(command, faultproxy.Every).Containing(strings.TrimPrefix(letters[3].ID, "0/")).Do(action)
			}
			r := s.untyped("dead", "replay", "--yes", "orders/printer", "--redis-url", "redis://"+proxy.Addr())
			r.want(t, 1, "3 dead letters replayed\n", "replay dead letter "+letters[3].ID)
			if !strings.Contains(r.err, "repeat the command") {
				t.Errorf("stderr: %s", r.err)
			}
			left := map[string]int{"before": 3, "after": 2}[name]
			s.untyped("dead", "replay", "--yes", "orders/printer").want(t, 0, fmt.Sprintf("%d dead letters replayed\n", left), "")
			if now := s.fields("orders", 0); !slices.Equal(now, append(sent, sent...)) {
				t.Errorf("partition 0 has %q, began with %q", now, sent)
			}
			if n := s.processor().Totals.Dead; n != 0 {
				t.Errorf("%d dead letters left", n)
			}
		})
	}
}

func TestReplayNamesTheProcessorsThatItReaches(t *testing.T) {
	s, ada, _ := two(t, 2)
	ada.bury("ada", "no ink")
	if _, err := ada.c.EnsureMeta(t.Context(), "orders", metaOf("mail")); err != nil {
		t.Fatal(err)
	}
	const seen = "all 2 processors see them, "
	s.untyped("dead", "replay", "orders/printer").want(t, 2, "", seen)
	s.untyped("dead", "replay", "orders/printer", "--dry-run").want(t, 0, seen, "")
	got := printed[replayedLetters](s, "dead", "replay", "orders/printer", "--yes")
	if len(got.SeenBy) != 2 || len(got.Replayed) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestDeadRetry(t *testing.T) {
	s, ada, bob := two(t, 6)
	ada.bury("ada", "no ink")
	bob.bury("bob", "no paper")
	one := eventID(0, ada.entries[0].ID)
	s.untyped("dead", "retry", "orders/printer", "--key", "ada", "--dry-run").want(t, 0, "3 dead letters would be retried:\nID", "")
	s.untyped("dead", "retry", "orders/printer", "--id", one).want(t, 0, "1 dead letter retried\n", "")
	parked := printed[[]admin.ParkedEvent](s, "parked", "ls", "orders/printer")
	if len(parked) != 1 || parked[0].Event != one || parked[0].Key != "ada" || parked[0].State != admin.ParkedDue || parked[0].Attempts != 0 || parked[0].First != nil {
		t.Errorf("parked %+v", parked)
	}
	got := printed[retriedLetters](s, "dead", "retry", "orders/printer", "--yes")
	if len(got.Retried) != 5 || got.DryRun || s.processor().Totals.Dead != 0 || s.processor().Totals.Parked != 6 {
		t.Errorf("got %+v, %+v", got, s.processor().Totals)
	}
	s.untyped("dead", "retry", "orders/printer").want(t, 0, "0 dead letters retried\n", "")
}

// At most MaxLen events can be parked; the other dead letters stay.
func TestDeadRetryOfMoreThanHasRoom(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, MaxLen: 3, KeyField: "customer"})
	o := s.owners(3)[0]
	o.bury("ada", "no ink")
	s.rdb.HSet(t.Context(), o.place.Parked, "7-0", "x")
	s.rdb.HSet(t.Context(), o.place.Retry, "7-0", `{"v":1,"lane":"k","n":1}`)
	s.untyped("dead", "retry", "orders/printer").want(t, 1, "2 dead letters retried\n", "3 events are parked, as many as MaxLen allows")
	if n := s.processor().Totals.Dead; n != 1 {
		t.Errorf("%d dead letters are left", n)
	}
}
