package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/inspect"
)

// A total is a row of the table orders/totals.
type total struct {
	Sum   float64
	Times int
}

// summed is a shop whose processor sum has counted orders in the tables totals, by customer, and seen, which is
// local, by amount. No worker runs any more.
func summed(t *testing.T, orders ...order) *shop {
	t.Helper()
	s := newShop(t, &runnel.StreamOptions{Partitions: 3, KeyField: "customer"})
	totals, _ := s.declareTables()
	s.sends(orders...)
	worker := s.start("worker")
	eventually(t, "all is summed", func() bool {
		n := 0
		for row, err := range totals.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n += row.Value.Times
		}
		return n == len(orders) && s.untyped("processor", "info", "orders/sum").code == 0 && s.stateOf("sum").Totals.Owned == 3
	})
	s.run("table", "rm", "orders/totals", "--yes").want(t, 1, "", "stop these workers first; nothing was changed")
	worker.stop().want(t, 0, "", "worker stopped")
	return s
}

func (s *shop) declareTables() (*runnel.Table[total], *runnel.Table[bool]) {
	totals := runnel.NewTable[total](s.orders, "totals", nil)
	seen := runnel.NewTable[bool](s.orders, "seen", &runnel.TableOptions{Local: true, TTL: time.Hour, Codec: codec.JSON})
	s.orders.Process("sum", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		totals.Rows(ctx).Update(o.Customer, func(t total) total { return total{t.Sum + o.Amount, t.Times + 1} })
		seen.Rows(ctx).Set(fmt.Sprint("n", o.Amount), true)
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{totals, seen}})
	return totals, seen
}

var sales = []order{{"ada", 1}, {"bob", 2}, {"ada", 3}, {"cleo", 4}}

func TestTableLs(t *testing.T) {
	s := summed(t, sales...)
	s.untyped("table", "ls").matches(t, `^TABLE +PROCESSOR +CODEC +TTL +LOCAL +ROWS +OVERDUE +BYTES\n`,
		`(?m)^orders/seen +sum +json +1h0m0s +yes +4 +0 +\d+$`, `(?m)^orders/totals +sum +msgpack +- +no +3 +0 +\d+$`)
	got := printed[[]inspect.TableState](s, "table", "ls", "orders")
	if len(got) != 2 || got[0].Bytes < 100 {
		t.Fatalf("%+v", got)
	}
	got[1].Bytes = 0
	if want := (inspect.TableState{Stream: "orders", Table: "totals", Processor: "sum", Codec: "msgpack", Rows: 3}); got[1] != want {
		t.Errorf("%+v", got[1])
	}
	s.untyped("processor", "info", "orders/sum").matches(t, `(?m)^total +0 owned`, `(?m)\n\nTABLE +PROCESSOR .*\norders/seen +sum .*\norders/totals +sum `)
	if p := s.stateOf("sum"); len(p.Tables) != 2 || p.Tables[1].Rows != 3 {
		t.Errorf("%+v", p.Tables)
	}
	s.untyped("table", "ls", "nothing").want(t, 1, "", `no stream "nothing"`)
	s.rdb.Set(t.Context(), "__rows:shop.orders.seen.1", "x", 0)
	s.untyped("table", "ls").matches(t, `(?m)^orders/seen +sum +stream orders: table seen: .*__rows:shop.orders.seen.1`)
}

func TestTableGet(t *testing.T) {
	s := summed(t, sales...)
	s.run("table", "get", "orders/totals", "ada").want(t, 0, `{"Sum":4,"Times":2}`+"\n", "")
	s.untyped("table", "get", "orders/totals", "ada").want(t, 0, `{"Sum":4,"Times":2}`+"\n", "")
	row := printed[shownRow](s, "table", "get", "orders/totals", "ada")
	if string(row.Value) != `{"Sum":4,"Times":2}` || row.Key != "ada" || row.Until != nil {
		t.Errorf("%+v", row)
	}
	there, other := fmt.Sprint(row.Partition), fmt.Sprint((row.Partition+1)%3)
	s.untyped("table", "get", "orders/totals", "ada", "--partition", there).want(t, 0, "Sum", "")
	s.untyped("table", "get", "orders/totals", "ada", "--partition", other).want(t, 1, "", `no row with key "ada": partition `+other+" has none")
	s.untyped("table", "get", "orders/totals", "ada", "--partition", "3").want(t, 1, "", "no partition 3")
	if local := printed[shownRow](s, "table", "get", "orders/seen", "n3"); local.Partition != row.Partition || string(local.Value) != "true" || local.Until == nil {
		t.Errorf("of a local table: %+v", local)
	}
	s.untyped("table", "get", "orders/nothing", "ada").want(t, 1, "", `stream orders has no table "nothing"; it has seen, totals`)
	s.untyped("table", "get", "orders/totals").want(t, 2, "", "which row?")
	s.untyped("table", "get", "orders", "ada").want(t, 2, "", "which table? say STREAM/TABLE")
	s.untyped("table", "get", "orders/totals", "ada", "bob").want(t, 2, "", `unexpected argument "bob"`)

	s.rdb.HSet(t.Context(), "__rows:shop.orders.totals."+there, "ada", "\xc1")
	s.run("table", "get", "orders/totals", "ada").want(t, 1, "", "cannot be decoded")
	if row := printed[shownRow](s, "table", "get", "orders/totals", "ada"); row.Err == "" || row.Value != nil {
		t.Errorf("of what cannot be decoded: %+v", row)
	}
}

// dumped returns the rows that `table dump` writes, sorted.
func (r result) dumped() []string {
	all := strings.Split(strings.TrimSpace(r.out), "\n")
	slices.Sort(all)
	return all
}

func TestTableDump(t *testing.T) {
	s := summed(t, sales...)
	typed, untyped := s.run("table", "dump", "orders/totals"), s.untyped("table", "dump", "orders/totals", "--output", "json")
	if got := typed.dumped(); len(got) != 3 || !slices.Equal(got, untyped.dumped()) {
		t.Errorf("%q, %q", typed.out, untyped.out)
	}
	row := parse[shownRow](t, s.untyped("table", "dump", "orders/totals", "--prefix", "a"))
	if row.Key != "ada" || string(row.Value) != `{"Sum":4,"Times":2}` {
		t.Errorf("%+v", row)
	}
	parse[shownRow](t, s.untyped("table", "dump", "orders/totals", "--limit", "1"))
	in := s.untyped("table", "dump", "orders/totals", "--partition", fmt.Sprint(row.Partition))
	if !strings.Contains(in.out, `"key":"ada"`) || strings.Count(in.out, fmt.Sprintf(`{"partition":%d,`, row.Partition)) != len(in.dumped()) {
		t.Errorf("of a partition: %+v", in)
	}
	s.untyped("table", "dump", "orders/totals", "--limit", "0").want(t, 2, "", "at least 1")
}

func TestTableRm(t *testing.T) {
	s := summed(t, sales...)
	s.untyped("table", "rm", "orders/totals").want(t, 2, "", "with 3 rows")
	s.untyped("table", "rm", "orders/totals", "--dry-run").want(t, 0, "orders/totals would be removed, with 3 rows", "")
	got := printed[removedTable](s, "table", "rm", "orders/totals", "--yes")
	if want := (removedTable{admin.RemovedTable{Stream: "orders", Table: "totals", Processor: "sum", Rows: 3}, false}); got != want {
		t.Errorf("%+v", got)
	}
	if left, err := s.rdb.Keys(t.Context(), "__*totals*").Result(); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	s.untyped("table", "rm", "orders/totals", "--yes").want(t, 1, "", `no table "totals"; it has seen`)
	if p := s.stateOf("sum"); p.Totals.Lag != 0 || p.Totals.Owned != 0 {
		t.Errorf("the processor has %+v", p.Totals)
	}
	if done := printed[[]inspect.AuditState](s, "audit", "ls"); len(done) != 1 || done[0].What != "table/rm" || done[0].On != "orders/totals" || done[0].Outcome != "done" {
		t.Errorf("audited: %+v", done)
	}
	// The processor goes on, with a table that is empty.
	s.sends(order{"ada", 10})
	worker := s.start("worker")
	eventually(t, "a new row", func() bool { return s.run("table", "get", "orders/totals", "ada").out == `{"Sum":10,"Times":1}`+"\n" })
	worker.stop().want(t, 0, "", "worker stopped")
}

// Nothing is removed of a table whose processor owns a partition, though no member lives.
func TestTableRmOfWhatIsOwned(t *testing.T) {
	s := summed(t, sales...)
	s.rdb.Set(t.Context(), s.client().Partition("orders", "sum", 1).Lock, "aaaaaaaaaaaaaaaa:1", time.Minute)
	s.untyped("table", "rm", "orders/totals", "--yes").want(t, 1, "", "partition 1: processor sum: owned by executor aaaaaaaaaaaaaaaa")
	if got := printed[[]inspect.TableState](s, "table", "ls"); got[1].Rows != 3 {
		t.Errorf("%+v", got)
	}
	if lock := s.rdb.Exists(t.Context(), s.client().Partition("orders", "sum", 0).Lock).Val(); lock != 0 {
		t.Error("another partition is still locked")
	}
}

func TestProcessorRmWithTables(t *testing.T) {
	s := summed(t, sales...)
	s.untyped("processor", "rm", "orders/sum", "--yes").want(t, 1, "", "orders/sum has 7 rows in tables seen, totals")
	s.untyped("processor", "rm", "orders/sum", "--rows").want(t, 2, "", "and 7 rows?")
	if got := printed[admin.RemovedProcessor](s, "processor", "rm", "orders/sum", "--rows", "--yes"); got.Rows != 7 {
		t.Errorf("%+v", got)
	}
	if left, err := s.rdb.Keys(t.Context(), "__*.orders.*.?").Result(); err != nil || slices.ContainsFunc(left, func(key string) bool { return !strings.HasPrefix(key, "__strm:") }) {
		t.Errorf("left: %q, %v", left, err)
	}
	if got := printed[[]inspect.TableState](s, "table", "ls"); len(got) != 0 {
		t.Errorf("tables: %+v", got)
	}
}

// Tables without rows hold no processor back.
func TestProcessorRmWithEmptyTables(t *testing.T) {
	s := summed(t)
	s.untyped("processor", "rm", "orders/sum", "--yes").want(t, 0, "orders/sum removed", "")
}

func TestStreamRmWithTables(t *testing.T) {
	s := summed(t, sales...)
	s.untyped("stream", "rm", "orders").want(t, 2, "", "rows: 7")
	got := printed[admin.RemovedStream](s, "stream", "rm", "orders", "--yes")
	if !slices.Contains(got.Extents, admin.Extent{What: "rows", Count: 7}) {
		t.Errorf("%+v", got)
	}
	if left, err := s.rdb.Keys(t.Context(), "__*orders*").Result(); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestResetWithTables(t *testing.T) {
	s := summed(t, sales...)
	reset := func(args ...string) []admin.Move {
		return printed[[]admin.Move](s, append([]string{"processor", "reset", "orders/sum", "--yes"}, args...)...)
	}
	rows := func(moves []admin.Move) (n int64) {
		for _, m := range moves {
			n += m.Rows
		}
		return n
	}
	s.untyped("processor", "reset", "orders/sum", "--yes", "--to", "start").want(t, 2, "", "orders/sum has tables (seen, totals)")
	s.untyped("processor", "reset", "orders/sum", "--yes", "--to", "start", "--rows", "drop").want(t, 2, "", "--rows is keep or clear")
	s.untyped("processor", "reset", "orders/sum", "--to", "start", "--rows", "clear").want(t, 2, "", "and remove the rows of its tables there?")
	s.untyped("processor", "reset", "orders/sum", "--yes", "--to", "start", "--rows", "clear", "--dry-run").matches(t, `(?m)^PARTITION .* ROWS CLEARED$`)
	s.untyped("processor", "reset", "orders/sum", "--export", "-").want(t, 0, `"processor": "sum"`, "")
	if n := rows(reset("--to", "+0", "--rows", "keep")); n != 0 || len(s.run("table", "dump", "orders/totals").dumped()) != 3 {
		t.Errorf("keep cleared %d rows", n)
	}
	if n := rows(reset("--to", "start", "--rows", "clear")); n != 7 {
		t.Errorf("cleared %d rows, want 7", n)
	}
	for _, table := range printed[[]inspect.TableState](s, "table", "ls") {
		if table.Rows != 0 {
			t.Errorf("%+v", table)
		}
	}
	// All is built again.
	worker := s.start("worker")
	eventually(t, "the rows are back", func() bool {
		return s.run("table", "get", "orders/totals", "ada").out == `{"Sum":4,"Times":2}`+"\n" && s.run("table", "get", "orders/totals", "cleo").code == 0
	})
	worker.stop().want(t, 0, "", "worker stopped")
}

func (s *shop) stateOf(processor string) inspect.ProcessorState {
	return printed[inspect.ProcessorState](s, "processor", "info", "orders/"+processor)
}

// doctor names a table that cannot be committed to, and one that no processor keeps up any more.
func TestDoctorOfTables(t *testing.T) {
	s := summed(t, sales...)
	clean := s.untyped("doctor")
	s.rdb.Set(t.Context(), "__until:shop.orders.totals.1", "x", 0)
	s.untyped("doctor").want(t, 3, "__until:shop.orders.totals.1", "")
	s.rdb.Del(t.Context(), "__until:shop.orders.totals.1")
	if _, err := s.client().Unregister(t.Context(), "orders", "sum"); err != nil {
		t.Fatal(err)
	}
	r := s.untyped("doctor")
	if strings.Contains(clean.out, "table totals") || !strings.Contains(r.out, "stream orders: table totals: its processor sum is not registered any more, and nothing keeps its rows (3) up") {
		t.Errorf("before: %s\nafter: %s", clean.out, r.out)
	}
	s.untyped("table", "rm", "orders/totals", "--yes").want(t, 0, "removed, with 3 rows", "")
	s.untyped("table", "rm", "orders/seen", "--yes").want(t, 0, "removed, with 4 rows", "")
	if left, err := s.rdb.Keys(t.Context(), "__[lru]*").Result(); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	if groups := s.rdb.XInfoGroups(t.Context(), "__strm:shop.orders.0").Val(); slices.ContainsFunc(groups, func(g redis.XInfoGroup) bool { return !strings.HasPrefix(g.Name, "sum@") }) || len(groups) > 1 {
		t.Errorf("groups: %+v", groups)
	}
}

// The rows of a table that has no TTL any more stay, whatever times are left of them.
func TestTimesThatAreLeftAreNone(t *testing.T) {
	s := summed(t, sales...)
	for n := range 3 {
		s.rdb.ZAdd(t.Context(), fmt.Sprintf("__until:shop.orders.totals.%d", n), redis.Z{Score: 1, Member: "ada"})
	}
	s.run("table", "get", "orders/totals", "ada").want(t, 0, `{"Sum":4,"Times":2}`, "")
	for _, row := range strings.Split(strings.TrimSpace(s.run("table", "dump", "orders/totals").out), "\n") {
		if strings.Contains(row, "until") {
			t.Error(row)
		}
	}
	for _, table := range printed[[]inspect.TableState](s, "table", "ls") {
		if table.Overdue != 0 {
			t.Errorf("%+v", table)
		}
	}
	if r := s.untyped("doctor"); strings.Contains(r.out, "has come") {
		t.Error(r.out)
	}
}

// Rows whose time has come while no worker runs are counted, and the doctor tells.
func TestOverdueRowsAreShown(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 3, KeyField: "customer"})
	open := runnel.NewTable[total](s.orders, "open", nil)
	var told atomic.Int64
	open.OnExpire(func(context.Context, string, total) error { told.Add(1); return nil })
	s.orders.Process("windows", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		open.Rows(ctx).SetUntil(o.Customer, total{o.Amount, 1}, time.Now().Add(time.Second))
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{open}})
	s.sends(order{"ada", 1}, order{"bob", 2})
	worker := s.start("worker")
	eventually(t, "the rows are there", func() bool {
		tables := printed[[]inspect.TableState](s, "table", "ls")
		return len(tables) == 1 && (tables[0].Rows == 2 || told.Load() > 0)
	})
	worker.stop()
	left := 2 - told.Load() // a busy machine may have told one in time
	eventually(t, "they are overdue", func() bool { return printed[[]inspect.TableState](s, "table", "ls")[0].Overdue == left })
	if left > 0 {
		s.untyped("doctor").matches(t, `(?m)table open: the time of \d rows? has come, and no worker runs processor windows`)
	}
	worker = s.start("worker")
	eventually(t, "they are told", func() bool { return printed[[]inspect.TableState](s, "table", "ls")[0].Rows == 0 && told.Load() == 2 })
	worker.stop().want(t, 0, "", "worker stopped")
}
