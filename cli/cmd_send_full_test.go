package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
)

func TestSendWithAnIDIsOnce(t *testing.T) {
	s := newShop(t, nil)
	for i, send := range []func(...string) result{s.run, s.untyped} {
		id := fmt.Sprint("invoice-", i)
		first := send("send", "orders", `{"customer":"ada"}`, "--id", id)
		first.want(t, 0, "orders ", "")
		send("send", "orders", `{"customer":"ada"}`, "--id", id).want(t, 0, strings.TrimSpace(first.out)+" duplicate\n", "")
		again := parse[sentRecord](t, send("--output", "json", "send", "orders", `{"customer":"ada"}`, "--id", id))
		if !again.Duplicate || !strings.Contains(first.out, again.ID) {
			t.Errorf("%+v", again)
		}
		if n := s.count(); n != i+1 {
			t.Errorf("%d entries", n)
		}
	}
}

func TestSendToAFullStreamSaysWhoHoldsItBack(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, MaxLen: 3, KeyField: "customer"})
	client := s.client()
	own := store.Meta{Partitions: 1, MaxLen: 3, KeyField: "customer", Processors: []string{"printer"}}
	if _, err := client.EnsureMeta(t.Context(), "orders", own); err != nil {
		t.Fatal(err)
	}
	s.run("sendmany", "orders", file(t, "a.ndjson", jsonLines(10))).
		want(t, 1, "sent 3, failed 7\n", "lines 4-10: not sent: partition 0 of stream orders is full, 3 of 3 entries: processor printer")
	for _, send := range []func(...string) result{s.run, s.untyped} {
		send("send", "orders", `{"customer":"ada"}`).want(t, 1, "", "processor rm orders/printer")
	}
	if n := s.count(); n != 3 {
		t.Errorf("%d entries", n)
	}
}
