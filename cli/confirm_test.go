package cli

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

// Without a terminal and without --yes, a destructive command is a usage error, and changes
// nothing.
func TestCommandsThatDestroyNeedYes(t *testing.T) {
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
