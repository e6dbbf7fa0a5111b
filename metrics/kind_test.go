package metrics_test

import (
	"context"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/metrics"
)

// What is behind in an internal stream means nothing outside of its extension; who owns it does.
func TestLagOfInternalStreamsIsNotExported(t *testing.T) {
	s := newShop(t)
	listings := runnel.NewStream(s.app, "listings", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: 2})
	extension.Declare(listings, "set", nil)
	listings.Process("stages", func(_ context.Context, events *runnel.Events[parcel]) error {
		for range events.Raw() {
			continue
		}
		return nil
	}, nil)
	handler := metrics.Handler(s.app, nil)
	stop := run(t, s.app)
	defer stop()
	got, overview := scrape(t, handler), s.overview(t)
	const internal, public = `{,processor="stages",stream="listings"}`, `{,processor="print",stream="parcels"}`
	const first = `{,partition="0",processor="stages",stream="listings"}`
	for _, name := range []string{"runnel_lag_events", "runnel_lag_at_least", "runnel_oldest_event_age_seconds", "runnel_pending_events"} {
		without(t, got, name, internal, public)
	}
	for _, name := range []string{"runnel_partition_lag_events", "runnel_partition_lag_at_least", "runnel_partition_oldest_event_age_seconds"} {
		without(t, got, name, first, `{,partition="0",processor="print",stream="parcels"}`)
	}
	for _, name := range []string{"runnel_app_lag_events", "runnel_app_lag_at_least", "runnel_app_oldest_event_age_seconds", "runnel_app_pending_events"} {
		without(t, overview, name, internal, public)
	}
	without(t, overview, "runnel_app_delayed_events", `{,stream="listings"}`, `{,stream="parcels"}`)
	check(t, got, map[string]string{"runnel_owned_partitions" + internal: "2", "runnel_stored_dead_letters" + internal: "0", "runnel_partition_length_entries" + first: "0"})
	check(t, overview, map[string]string{"runnel_app_owned_partitions" + internal: "2", "runnel_app_dead_letters" + internal: "0", "runnel_app_members" + internal: "1"})
}

// without checks that a metric has a series for one and not for the other.
func without(t *testing.T, got map[string]string, name, missing, there string) {
	t.Helper()
	if _, is := got[name+missing]; is {
		t.Errorf("%s%s is exported", name, missing)
	}
	if _, is := got[name+there]; !is {
		t.Errorf("%s%s is not exported", name, there)
	}
}
