package cli

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/admin"
)

const twin = "1700000000000-0"

// twins is a shop of which both partitions have an event of one entry ID, and behind it
// another one.
func twins(t *testing.T) (s *shop, ada, bob *owner) {
	t.Helper()
	s, _, _ = two(t, 2)
	for _, key := range s.rdb.Keys(t.Context(), "__*:shop.orders.*").Val() { // only its metadata is left
		s.rdb.Del(t.Context(), key)
	}
	for i, key := range []string{"__strm:shop.orders.0", "__strm:shop.orders.1"} {
		record := `{"customer":"` + []string{"ada", "bob"}[i] + `"}`
		if err := s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: key, ID: twin, Values: []any{"json", record}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	owners := s.owners(2)
	return s, owners[0], owners[1]
}

// An entry ID is unique within its partition only: without the partition it is no event,
// where two have it.
func TestABareIDOfSeveralEventsIsRefused(t *testing.T) {
	s, ada, bob := twins(t)
	ada.bury("ada", "no ink")
	bob.bury("bob", "no paper")
	for _, command := range []string{"ls", "show", "drop", "drop --dry-run", "drop --limit 1", "replay", "replay --dry-run"} {
		args := append([]string{"dead"}, strings.Fields(command)...)
		r := s.untyped(append(args, "orders/printer", "--id", twin)...)
		r.want(t, 1, "", "ID "+twin+" is that of 2 events: ")
		for _, event := range []string{"(event 0/" + twin + ")", "(event 1/" + twin + ")"} {
			if !strings.Contains(r.err, event) {
				t.Errorf("dead %s: %s does not name %s", command, r.err, event)
			}
		}
	}
	if n := s.processor().Totals.Dead; n != 4 {
		t.Fatalf("%d dead letters are left of 4", n)
	}
	s.untyped("dead", "drop", "--yes", "orders/printer", "--id", twin, "--key", "ada", "--dry-run").want(t, 0, "1 dead letter would be dropped", "")
	s.untyped("dead", "drop", "--yes", "orders/printer", "--id", "1/"+twin).want(t, 0, "1 dead letter dropped\n", "")
	s.untyped("dead", "drop", "--yes", "orders/printer", "--id", twin).want(t, 0, "1 dead letter dropped\n", "") // the only one now
	left := told[[]admin.DeadLetter](s, "dead", "ls", "orders/printer")
	if len(left) != 2 || left[0].Key == left[1].Key {
		t.Errorf("left %+v", left)
	}
}

func TestABareIDOfSeveralParkedEventsIsRefused(t *testing.T) {
	s, ada, bob := twins(t)
	ada.park("ada")
	bob.park("bob")
	for _, command := range []string{"ls", "retry", "drop", "drop --limit 1"} {
		args := append([]string{"parked"}, strings.Fields(command)...)
		s.untyped(append(args, "orders/printer", "--id", twin)...).want(t, 1, "", "ID "+twin+" is that of 2 events: 0/"+twin+", 1/"+twin+"; say which one")
	}
	s.untyped("parked", "retry", "orders/printer", "--id", "0/"+twin).want(t, 0, "0/"+twin+"\n1 event due now\n", "")
	s.untyped("parked", "drop", "--yes", "orders/printer", "--id", "1/"+twin).want(t, 0, "1/"+twin+"\n1 event dropped\n", "")
	s.untyped("parked", "drop", "--yes", "orders/printer", "--id", twin).want(t, 0, "0/"+twin+"\n1 event dropped\n", "")
	if n := s.processor().Totals.Parked; n != 2 {
		t.Errorf("%d events are left", n)
	}
}

// The ID of a dead letter may be that of an event of the same partition.
func TestAnIDOfALetterAndOfAnEventIsRefused(t *testing.T) {
	s, ada, _ := two(t, 4)
	ada.bury("ada", "no ink")
	letters := s.rdb.XRange(t.Context(), "__dead:shop.orders.printer.0", "-", "+").Val()
	values := []any{}
	for name, value := range letters[0].Values {
		if name == "__dead.id" {
			value = letters[1].ID
		}
		values = append(values, name, value)
	}
	id := s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: "__dead:shop.orders.printer.0", Values: values}).Val()
	s.untyped("dead", "drop", "--yes", "orders/printer", "--id", "0/"+letters[1].ID).want(t, 1, "", "0/"+id+" (event 0/"+letters[1].ID+")")
	s.untyped("dead", "drop", "--yes", "orders/printer", "--id", "0/"+id).want(t, 0, "1 dead letter dropped\n", "")
}

// What a list or the log calls an event is what positions take, too.
func TestAnEventIsAPosition(t *testing.T) {
	s, _, _ := two(t, 6)
	all := s.entries()["__strm:shop.orders.1"]
	one := eventID(1, all[1].ID)
	for _, key := range s.rdb.Keys(t.Context(), "__lock:*").Val() {
		s.rdb.Del(t.Context(), key)
	}
	shown := s.untyped("tail", "orders", "--from", one, "--partition", "1")
	if lines := strings.Split(strings.TrimSpace(shown.out), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "  "+one+"  ") {
		t.Errorf("shown %q", shown.out)
	}
	moves := told[[]admin.Move](s, "processor", "reset", "orders/printer", "--to", one, "--yes")
	if len(moves) != 1 || moves[0].Partition != 1 || moves[0].New != all[1].ID {
		t.Errorf("moved %+v", moves)
	}
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", one, "--partitions", "1").want(t, 2, "", "--to says which partition")
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "2/1-0").want(t, 1, "", "stream orders has no partition 2")
}
