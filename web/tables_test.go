package web

import (
	"net/http"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
)

// A processor's tables are listed with their rows, and the row of a key is found where it lies, decoded.
func TestTablesOfAProcessor(t *testing.T) {
	s := newShop(t, 2, nil)
	totals := runnel.NewTable[float64](s.orders, "totals", nil) // typed here
	if got := get[listedTables](s, "/api/tables?processor=orders/printer"); len(got.Tables) != 0 {
		t.Errorf("before there are any: %+v", got)
	}
	_, err := s.c.EnsureMeta(t.Context(), "orders", store.Meta{Processors: []string{"printer"}, Tables: map[string]store.TableMeta{
		"totals": {Processor: "printer", Codec: "msgpack"}, "seen": {Processor: "printer", Codec: "json", Local: true}, "other": {Processor: "mailer", Codec: "json"},
	}})
	s.must(err)
	at := runnel.XXHash.Func("ada", 2)
	rdb := s.redis.Client(t)
	rdb.HSet(t.Context(), s.c.Table("orders", "totals", at).Rows, "ada", "\x07")
	for n := range 2 {
		rdb.HSet(t.Context(), s.c.Table("orders", "seen", n).Rows, "ada", `{"at": 1}`)
	}
	got := get[listedTables](s, "/api/tables?processor=orders/printer")
	if len(got.Tables) != 2 || got.Tables[0].Table != "seen" || got.Tables[0].Rows != 2 || got.Tables[1].Rows != 1 || len(got.Rows) != 0 {
		t.Errorf("%+v", got)
	}
	got = get[listedTables](s, "/api/tables?processor=orders/printer&key=ada")
	if len(got.Rows) != 3 || got.Rows[0].Record.Text != `{"at":1}` || got.Rows[1].Partition != 1 || got.Rows[2].Table != "totals" || got.Rows[2].Partition != at || got.Rows[2].Record.Text != "7" {
		t.Errorf("%+v", got.Rows)
	}
	if got := get[listedTables](s, "/api/tables?processor=orders/printer&key=bob"); len(got.Rows) != 0 {
		t.Errorf("of another key: %+v", got.Rows)
	}
	if r, text := s.request(http.MethodGet, "/api/tables?processor=orders/nobody", ""); r.StatusCode != http.StatusNotFound {
		t.Errorf("of no processor: %d %s", r.StatusCode, text)
	}
	if _, ok, err := totals.Get(t.Context(), "bob"); ok || err != nil {
		t.Error(ok, err)
	}
}
