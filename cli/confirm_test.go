package cli

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/store"
)

// A command that cannot be undone is refused without a terminal to ask at and without
// --yes, as a mistake in the command line, and changes nothing.
func TestWhatDestroysWantsYes(t *testing.T) {
	s, ada, bob := two(t, 4)
	ada.bury("ada", "no ink")
	bob.park("bob")
	bob.must(bob.c.Quarantine(t.Context(), bob.place, bob.tenure, store.Quarantine{Reason: "no ink", Event: "5-0", Worker: "w1", At: 1}))
	s.untyped("send", "orders", `{"customer":"ada"}`, "--after", "1h").want(t, 0, "orders ", "")
	before := s.rdb.DBSize(t.Context()).Val()
	for _, command := range []string{
		"dead drop orders/printer --all", "dead replay orders/printer", "parked drop orders/printer --all", "delayed cancel orders --all",
		"delayed cancel orders 0/0000000000000001", "processor rm orders/printer", "processor reset orders/printer --to start",
		"quarantine release orders/printer --partition 1 --skip", "stream rm orders",
	} {
		r := s.untyped(strings.Fields(command)...)
		r.want(t, 2, "", "There is no terminal to ask at: say --yes; nothing was changed")
	}
	if p := s.processor(); p.Totals.Dead != 2 || p.Totals.Parked != 2 || p.Totals.Quarantined != 1 || s.rdb.DBSize(t.Context()).Val() != before {
		t.Errorf("left %+v", p.Totals)
	}
	s.untyped("dead", "drop", "orders/printer", "--key", "nobody").want(t, 0, "0 dead letters dropped\n", "") // nothing is destroyed
}

func TestReplayNamesWhomItReaches(t *testing.T) {
	s, ada, _ := two(t, 2)
	ada.bury("ada", "no ink")
	if _, err := ada.c.EnsureMeta(t.Context(), "orders", metaOf("mail")); err != nil {
		t.Fatal(err)
	}
	const seen = "all 2 processors see them, "
	s.untyped("dead", "replay", "orders/printer").want(t, 2, "", seen)
	s.untyped("dead", "replay", "orders/printer", "--dry-run").want(t, 0, seen, "")
	got := told[replayedLetters](s, "dead", "replay", "orders/printer", "--yes")
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
	parked := told[[]admin.ParkedEvent](s, "parked", "ls", "orders/printer")
	if len(parked) != 1 || parked[0].Event != one || parked[0].Key != "ada" || parked[0].State != admin.ParkedDue || parked[0].Attempts != 0 || parked[0].First != nil {
		t.Errorf("parked %+v", parked)
	}
	got := told[retriedLetters](s, "dead", "retry", "orders/printer", "--yes")
	if len(got.Retried) != 5 || got.DryRun || s.processor().Totals.Dead != 0 || s.processor().Totals.Parked != 6 {
		t.Errorf("got %+v, %+v", got, s.processor().Totals)
	}
	s.untyped("dead", "retry", "orders/printer").want(t, 0, "0 dead letters retried\n", "")
}

// As many events may be parked as the partition may be long; the rest stay dead letters.
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
