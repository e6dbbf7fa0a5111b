package collector_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/test/notes"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
	"github.com/runnel-go/runnel/metrics/collector"
)

// A registry with the collectors serves what the handlers serve, with histograms and escaped
// labels.
func TestCollectorsServeWhatHandlersServe(t *testing.T) {
	srv, err := embedded.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + srv.Addr(), Logger: slog.New(slog.DiscardHandler), WorkerName: `a\"b"`})
	defer app.Close()
	numbers := runnel.NewStream(app, "numbers", func(n int) string { return "k" }, &runnel.StreamOptions{Partitions: 3})
	numbers.Process("add", runnel.Each(func(context.Context, *runnel.Event, int) error { return nil }), nil)
	extension.Register(app, notes.New())
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector.New(app, nil), collector.NewOverview(app, nil))
	registry := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	handlers := []http.Handler{metrics.Handler(app, nil), metrics.OverviewHandler(app, nil)}
	equal := func() bool { return slices.Equal(lines(registry), lines(handlers...)) }
	different := func() string {
		return strings.Join(lines(registry), "\n") + "\n\nwant\n" + strings.Join(lines(handlers...), "\n")
	}
	redistest.Eventually(t, "the same before Run", equal, different)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	if err := numbers.Send(t.Context(), 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "histograms", func() bool {
		return slices.ContainsFunc(lines(registry), func(l string) bool {
			return strings.HasPrefix(l, "runnel_handler_seconds_count") && strings.HasSuffix(l, " 3")
		})
	}, different)
	redistest.Eventually(t, "the same while it runs", equal, different)
	if text := strings.Join(lines(registry), "\n"); !strings.Contains(text, "runnel_notes_added_total{") || !strings.Contains(text, "runnel_app_notes_stored_notes{") {
		t.Errorf("no metrics of an extension in\n%s", text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lines returns the lines about Runnel's metrics, sorted.
func lines(handlers ...http.Handler) (lines []string) {
	for _, h := range handlers {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		for line := range strings.Lines(rec.Body.String()) {
			if name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "); strings.HasPrefix(name, "runnel_") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
