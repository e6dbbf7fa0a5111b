package metrics_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
)

// A worker tells how many rows it wrote, asked Redis for, and holds, and how many are stored.
func TestTables(t *testing.T) {
	app := runnel.New("shop", &runnel.Options{RedisURL: redistest.Start(t).URL(), Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	parcels := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: 1})
	counts := runnel.NewTable[int](parcels, "counts", &runnel.TableOptions{Memory: 1}) // Redis is asked for what is new
	parcels.Process("count", runnel.Each(func(ctx context.Context, _ *runnel.Event, p parcel) error {
		counts.Rows(ctx).Update(p.Key, func(n int) int { return n + 1 })
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{counts}})
	handler := metrics.Handler(app, nil)
	stop := run(t, app)
	const of = `{,processor="count",stream="parcels"}`
	const table = `{,processor="count",stream="parcels",table="counts"}`
	for i, key := range []string{"a", "b", "c"} {
		if err := parcels.Send(t.Context(), parcel{Key: key}); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the row is written", func() bool {
			return scrape(t, handler)["runnel_rows_written_total"+table] == fmt.Sprint(i+1)
		})
	}
	redistest.Eventually(t, "the rows are stored", func() bool { return scrape(t, handler)["runnel_stored_rows"+table] == "3" })
	s := scrape(t, handler)
	check(t, s, map[string]string{"runnel_commits_total" + of: "3"})
	if n := s["runnel_rows_asked_total"+table]; n != "2" && n != "3" { // the first one too, if it came before the loader
		t.Errorf("asked for %s rows", n)
	}
	if s["runnel_rows_memory_bytes"+table] == "" {
		t.Error("nothing says what the rows take in memory")
	}
	stop()
	check(t, scrape(t, handler), map[string]string{"runnel_rows_written_total" + table: ""})
}

// A worker tells how many outputs wait in outboxes and how many came, and so does a look at the whole app.
func TestOutboxes(t *testing.T) {
	server := redistest.Start(t)
	app := runnel.New("shop", &runnel.Options{RedisURL: server.URL(), KeyLayout: runnel.LayoutCluster, Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	at := func(n int) *runnel.StreamOptions {
		return &runnel.StreamOptions{Partitions: 2, Partitioner: &runnel.Partitioner{Name: fmt.Sprint("at", n), Func: func(string, int) int { return n }}}
	}
	parcels := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, at(0))
	labels := runnel.NewStream(app, "labels", func(p parcel) string { return p.Key }, at(1))
	parcels.Process("label", runnel.Each(func(ctx context.Context, _ *runnel.Event, p parcel) error { return labels.Emit(ctx, p) }), &runnel.ProcessorOptions{Atomic: true})
	worker, overview := metrics.Handler(app, nil), metrics.OverviewHandler(app, nil)
	stop := run(t, app)
	defer stop()
	const of = `{,processor="label",stream="parcels"}`
	redistest.Eventually(t, "it is owned", func() bool { return scrape(t, worker)["runnel_owned_partitions"+of] == "2" })
	taken := keys.Keys{App: "shop", Layout: keys.Cluster}.Partition("labels", 1)
	rdb := server.Client(t)
	rdb.Set(t.Context(), taken, "no stream", 0)
	if err := parcels.Send(t.Context(), parcel{Key: "a"}, parcel{Key: "b"}, parcel{Key: "c"}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "three wait", func() bool { return scrape(t, worker)["runnel_outbox_entries"+of] == "3" })
	check(t, scrape(t, overview), map[string]string{"runnel_app_outbox_entries" + of: "3"})
	check(t, scrape(t, worker), map[string]string{"runnel_hops_total" + of: "0"})
	rdb.Del(t.Context(), taken)
	redistest.Eventually(t, "they came", func() bool {
		s := scrape(t, worker)
		return s["runnel_hops_total"+of] == "3" && s["runnel_outbox_entries"+of] == "0"
	})
}
