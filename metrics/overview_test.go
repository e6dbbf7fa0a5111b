package metrics_test

import (
	"testing"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
)

// overview returns the series of the app as a whole by name and labels.
func (s *shop) overview(t *testing.T) map[string]string {
	return scrape(t, metrics.OverviewHandler(s.app, nil))
}

// The overview shows an app with and without a worker.
func TestOverviewTellsOfAnAppWithoutWorkers(t *testing.T) {
	s := newShop(t)
	const at = `{,processor="print",stream="parcels"}`
	stop := run(t, s.app)
	redistest.Eventually(t, "all partitions are owned", func() bool { return s.overview(t)["runnel_app_owned_partitions"+at] == "4" })
	check(t, s.overview(t), map[string]string{
		`runnel_app_up{}`: "1", "runnel_app_members" + at: "1", "runnel_app_partitions" + at: "4", "runnel_app_lag_events" + at: "0",
	})
	stop()
	send(t, s.parcels, 7, 0)
	check(t, s.overview(t), map[string]string{
		`runnel_app_up{}`: "1", "runnel_app_members" + at: "0", "runnel_app_owned_partitions" + at: "0",
		"runnel_app_partitions" + at: "4", "runnel_app_lag_events" + at: "7", "runnel_app_lag_at_least" + at: "0",
		"runnel_app_held_partitions" + at: "0", "runnel_app_quarantined_partitions" + at: "0", "runnel_app_unknown_partitions" + at: "0",
		"runnel_app_lost_events_total" + at: "0", `runnel_app_delayed_events{,stream="parcels"}`: "0",
	})
	if err := admin.New(s.app).Pause(t.Context(), admin.PartitionScope("parcels", "print", 2), nil); err != nil {
		t.Fatal(err)
	}
	check(t, s.overview(t), map[string]string{"runnel_app_held_partitions" + at: "1"})
}

// Without Redis the overview has only runnel_app_up.
func TestOverviewWithoutRedis(t *testing.T) {
	s := newShop(t)
	s.server.Kill()
	got := s.overview(t)
	check(t, got, map[string]string{`runnel_app_up{}`: "0"})
	if len(got) != 1 {
		t.Errorf("%d series: %v", len(got), got)
	}
}
