package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const membershipKey = "__memb:post.parcels.check"

// An invalid value under the membership key stops no owner. Ready, status and doctor name the key
// and the remedy, which repairs everything.
func TestAMembershipThatCannotBeReadStopsNoOwner(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, rdb *redis.Client)
	}{
		{"another type", func(t *testing.T, rdb *redis.Client) { spoil(t, rdb, membershipKey) }},
		{"garbage", func(t *testing.T, rdb *redis.Client) { rdb.Set(t.Context(), membershipKey, "garbage", 0) }},
		{"another object", func(t *testing.T, rdb *redis.Client) { rdb.Set(t.Context(), membershipKey, `{"n":7}`, 0) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			rdb, tr := srv.Client(t), newTracker(history.Memory())
			workers := []*parcelApp{}
			for _, name := range []string{"w1", "w2", "w3"} {
				a := newParcelApp(t, srv.URL(), name, func(o *runnel.Options) {
					o.Stream.Partitions, o.Processor.Lease = 4, shortExpiry
				})
				tr.process(a, "check", nil, nil)
				workers = append(workers, a)
			}
			owners, late := workers[:2], workers[2]
			for _, a := range owners {
				a.run()
			}
			await(t, "both to be members", 30*time.Second, func() bool { return owners[0].members(t) == "w1 w2" })
			ready(t, 30*time.Second, owners...)
			f := startFlow(t, newProducer(t, srv.URL(), 4), tr.history, 4, 20*time.Millisecond)
			tt.spoil(t, rdb)
			late.run() // it waits

			goOn(t, tr, f, owners, late)
			rdb.Del(t.Context(), membershipKey)
			await(t, "all to be members", 60*time.Second, func() bool { return owners[0].members(t) == "w1 w2 w3" })
			ready(t, 30*time.Second, workers...)
			f.stop()
			last := f.round.Load()
			await(t, "the rest", 60*time.Second, func() bool { return tr.passed("check", 4, last) })
			for _, a := range workers {
				a.stop()
			}
			tr.judge(t, srv, 4, history.Options{Processors: []string{"check"}})
		})
	}
}

func lookedAt(t *testing.T, a *parcelApp) {
	t.Helper()
	client, err := appview.Of(a.app).Client()
	if err != nil {
		t.Fatal(err)
	}
	state, err := inspect.App(t.Context(), client, "", 0)
	if err != nil {
		t.Fatalf("status: %v", err)
	}
	p := state.Streams[0].Processors[0]
	if !strings.Contains(p.MembersErr, "__memb:") || p.Totals.Owned != 4 {
		t.Errorf("status has %d owned partitions and of the members: %q", p.Totals.Owned, p.MembersErr)
	}
	found, err := inspect.Diagnose(t.Context(), client, keys.Work)
	if err != nil {
		t.Fatalf("doctor: %v", err)
	}
	for _, d := range found {
		if d.Check == "app" {
			if d.Level != inspect.LevelProblem || !strings.Contains(d.Found, "__memb:") || !strings.Contains(d.Found, "delete that key") {
				t.Errorf("doctor: %+v", d)
			}
			return
		}
	}
	t.Errorf("doctor does not look at the app: %+v", found)
}

// goOn checks that the owners and the late worker name the key, and that nothing is lost.
func goOn(t *testing.T, tr *tracker, f *flow, owners []*parcelApp, late *parcelApp) {
	t.Helper()
	named := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), membershipKey) && strings.Contains(err.Error(), "delete that key")
	}
	for _, a := range append(slices.Clone(owners), late) {
		await(t, "Ready of "+a.name+" to name the key", 30*time.Second, func() bool { return named(a.app.Ready()) })
		await(t, "the log of "+a.name+" to name the key", 30*time.Second, func() bool { return a.log.line(membershipKey, "delete that key") != "" })
	}
	for _, a := range owners {
		counters := appview.Of(a.app).Stats().Processors[0].Counters
		before := counters.Refreshes.Load()
		await(t, "leases to be renewed", 30*time.Second, func() bool { return counters.Refreshes.Load() > before+9 })
		if n := counters.Rejoins.Load() + counters.LostPartitions.Load(); n > 0 {
			t.Errorf("%s: %d partitions lost or rejoins", a.name, n)
		}
	}
	round := f.round.Load() + 1
	await(t, "all partitions to go on", 30*time.Second, func() bool { return tr.passed("check", 4, round) })
	lookedAt(t, owners[0])
}
