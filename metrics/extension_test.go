package metrics_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/test/notes"
	"github.com/runnel-go/runnel/metrics"
)

// What an extension counts in this process, workers serve; what it reads in Redis, the overview.
func TestMetricsOfAnExtension(t *testing.T) {
	s := newShop(t)
	extension.Register(s.app, notes.New())
	worker, overview := metrics.Handler(s.app, nil), metrics.OverviewHandler(s.app, nil)
	c, err := appview.Of(s.app).Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gate", "door"} {
		if _, err := notes.Add(t.Context(), c, name, "mind it"); err != nil {
			t.Fatal(err)
		}
	}
	stop := run(t, s.app)
	for _, tt := range []struct {
		name string
		got  map[string]string
		want string
	}{
		{"worker", scrape(t, worker), `runnel_notes_added_total{,replaced="no"} 0`},
		{"overview", scrape(t, overview), "runnel_app_notes_stored_notes{} 2"},
	} {
		var own []string
		for _, series := range slices.Sorted(maps.Keys(tt.got)) {
			if strings.Contains(series, "notes") {
				own = append(own, series+" "+tt.got[series])
			}
		}
		if len(own) != 1 || own[0] != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, own, tt.want)
		}
	}
	stop()
}
