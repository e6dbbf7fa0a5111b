package security

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// till is an app with a table, for one user.
func till(t *testing.T, url, layout string) (*runnel.App, *runnel.Stream[order], *runnel.Table[int]) {
	app := runnel.New("shop", &runnel.Options{RedisURL: url, KeyLayout: runnel.KeyLayout(layout), LogLevel: "error"})
	t.Cleanup(func() { app.Close() })
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Key }, &runnel.StreamOptions{Partitions: 2})
	table := runnel.NewTable[int](orders, "counts", nil)
	orders.Process("count", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
		table.Rows(ctx).Update(o.Key, func(n int) int { return n + 1 })
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{table}})
	return app, orders, table
}

// Tables work with the documented rights of each role, and with no more.
func TestTablesNeedWhatIsDocumented(t *testing.T) {
	for layout, of := range layouts {
		t.Run(layout, func(t *testing.T) {
			server, admin := guarded(t, layout)
			for _, line := range block(t, layout+", table") {
				do(t, admin, line)
			}
			_, orders, table := till(t, urlOf(server, "shop-producer"), of)
			if err := orders.Send(t.Context(), order{Key: "a"}, order{Key: "b"}, order{Key: "a"}); err != nil {
				t.Fatal(err)
			}
			counted := func() {
				t.Helper()
				worker, _, _ := till(t, urlOf(server, "shop-worker"), of)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- worker.Run(ctx) }()
				if !redistest.Within(redistest.Patience, func() bool {
					a, _, err := table.Get(ctx, "a")
					b, _, err2 := table.Get(ctx, "b")
					return err == nil && err2 == nil && a == 2 && b == 1
				}) {
					t.Error("not counted")
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			counted()
			_, _, read := till(t, urlOf(server, "shop-watcher"), of)
			readable(t, table)
			readable(t, read)
			run := func(role, want string, args ...string) {
				t.Helper()
				app, _, _ := till(t, urlOf(server, "shop-"+role), of)
				var out, errs bytes.Buffer
				if code := cli.Main(t.Context(), app, args, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(out.String(), want) {
					t.Errorf("%s %v: code %d: %s%s", role, args, code, out.String(), errs.String())
				}
			}
			for _, role := range []string{"watcher", "operator"} {
				run(role, `"rows":2,"overdue":0`, "table", "ls", "--output", "json")
				run(role, "2\n", "table", "get", "orders/counts", "a")
				run(role, `"key":"b"`, "table", "dump", "orders/counts")
				run(role, "orders/counts", "processor", "info", "orders/count")
			}
			run("operator", "ROWS CLEARED", "processor", "reset", "orders/count", "--to", "start", "--rows", "clear", "--yes")
			counted()
			run("operator", "with 2 rows", "table", "rm", "orders/counts", "--yes")
			if outbox(t, admin, of) {
				run("watcher", `"outputs":1`, "processor", "info", "orders/count", "--output", "json")
			}
			run("operator", "orders/count removed", "processor", "rm", "orders/count", "--rows", "--yes") // with what is in its outbox
		})
	}
}

// readable reads rows of the table as a program does that only reads.
func readable(t *testing.T, table *runnel.Table[int]) {
	t.Helper()
	if a, ok, err := table.Get(t.Context(), "a"); a != 2 || !ok || err != nil {
		t.Errorf("row a is %d, %v, %v", a, ok, err)
	}
	for _, err := range table.All(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
}

// outbox puts an output of count for another partition where its commits would put it, and reports whether that is an outbox.
func outbox(t *testing.T, admin *redis.Client, layout string) bool {
	t.Helper()
	if layout != keys.Cluster {
		return false
	}
	key := keys.MustKind("out").Key(keys.Keys{App: "shop", Layout: layout}, "orders", "count", "", 0)
	if err := admin.XAdd(t.Context(), &redis.XAddArgs{Stream: key, ID: "1-1", Values: []any{"to", "1 orders", "data", "x"}}).Err(); err != nil {
		t.Fatal(err)
	}
	return true
}
