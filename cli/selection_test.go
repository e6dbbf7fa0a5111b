package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/admin"
)

func TestFlagsThatSelect(t *testing.T) {
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

const twin = "1700000000000-0"

// twins is a shop whose two partitions each have an event of the same entry ID, and one after it.
func twins(t *testing.T) (s *shop, ada, bob *owner) {
	t.Helper()
	s, _, _ = two(t, 2)
	for _, key := range s.rdb.Keys(t.Context(), "__*:shop.orders.*").Val() { // all but its metadata
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

// An entry ID is unique only within its partition. Without the partition it is refused if two
// partitions have it.
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
	left := printed[[]admin.DeadLetter](s, "dead", "ls", "orders/printer")
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

// A dead letter's ID may equal that of an event of the same partition.
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
