package views

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/sets"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
	"github.com/runnel-go/runnel/stage"
	"github.com/runnel-go/runnel/web"
)

type listing struct {
	ID, Place string
	N         int
}

// market declares a set whose stages each have their own trouble.
func market() (*runnel.App, *stage.Set[listing]) {
	app := runnel.New("market", &runnel.Options{LogLevel: "error"})
	set := stage.New(app, "listings", func(l listing) string { return l.ID }, &stage.Options{
		Partitions: 4, Lease: 2 * time.Second, Grace: time.Second, Retry: &runnel.Retry{Max: 3, MinBackoff: time.Hour, MaxBackoff: time.Hour, Jitter: -1},
	})
	set.Stage("geocode", func(l listing) bool { return l.Place == "" }, func(ctx context.Context, l *listing) (stage.Result, error) {
		switch {
		case strings.HasPrefix(l.ID, "bad"):
			return stage.Untouched, runnel.DeadLetter(errors.New("no such place"))
		case strings.HasPrefix(l.ID, "late"):
			return stage.Untouched, errors.New("the geocoder is down")
		case l.ID == "slow":
			<-ctx.Done()
			return stage.Untouched, ctx.Err()
		}
		l.Place = "Ulm"
		return stage.Updated, nil
	}, nil)
	set.Stage("flip", func(l listing) bool { return l.ID == "loop" }, func(_ context.Context, l *listing) (stage.Result, error) {
		l.N++
		return stage.Updated, nil
	}, nil)
	other := func(l listing) bool { return l.ID != "loop" && l.ID != "slow" }
	set.Stage("close", other, func(context.Context, *listing) (stage.Result, error) { return stage.Untouched.After(time.Hour), nil }, nil)
	set.Stage("price", other, func(context.Context, *listing) (stage.Result, error) { return stage.Untouched, nil }, nil)
	return app, set
}

// setTruth are the numbers of the scene: price is paused, so its visits are due and late.
var setTruth = sets.State{
	Set: "listings", Entities: 7, Slowed: 1,
	Touches: sets.StageState{Waiting: 1, Failing: 1},
	Stages: []sets.StageState{
		{Stage: "close", Waiting: 5}, {Stage: "flip"}, {Stage: "geocode", Waiting: 1, Running: 1, Failing: 1, Dead: 2}, {Stage: "price", Waiting: 5, Due: 5, Held: "pause"},
	},
}

// isTrue reports whether a state is the truth; what is due must be late.
func isTrue(all []sets.State) bool {
	if len(all) != 1 {
		return false
	}
	one := all[0]
	for i := range one.Stages {
		s := &one.Stages[i]
		if (s.Late > 0) != (s.Due > 0) {
			return false
		}
		s.Late = 0
	}
	return reflect.DeepEqual(one, setTruth)
}

// TestEverySurfaceTellsTheTruthOfSets checks all surfaces against one scene.
func TestEverySurfaceTellsTheTruthOfSets(t *testing.T) {
	t.Setenv("RUNNEL_REDIS_URL", redistest.Start(t).URL())
	worker, _ := market()
	app, set := market()
	s := &scene{t: t, app: app, keys: keys.Keys{App: "market", Layout: keys.Standalone}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		worker.Close()
		app.Close()
	})
	s.await("the worker to be ready", func() bool { return worker.Ready() == nil })
	s.run(nil, "pause", "listings/price", "--wait")
	for _, id := range []string{"a", "b", "bad1", "bad2", "late", "slow", "loop"} {
		if err := set.Put(t.Context(), listing{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	var all []sets.State
	redistest.Eventually(t, "the set comes to its troubles", func() bool {
		all = nil
		s.run(&all, "stage", "ls")
		return isTrue(all)
	}, func() string { return fmt.Sprintf("%+v", all) })
	t.Run("commands", s.setCommands)
	t.Run("metrics of the app", s.setMetrics)
	t.Run("metrics of the worker", func(t *testing.T) { s.workerOfSets(t, worker) })
	t.Run("dashboard", s.pageOfSets)
}

// says runs a command with the code, and requires some texts of it; none that begins with "no ".
func (s *scene) says(t *testing.T, code int, args []string, texts ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := cli.Main(t.Context(), s.app, args, strings.NewReader(""), &out, &errs); got != code {
		t.Errorf("%q: code %d, want %d: %s%s", args, got, code, out.String(), errs.String())
	}
	for _, text := range texts {
		if text, not := strings.CutPrefix(text, "no "); strings.Contains(out.String(), text) == not {
			t.Errorf("%q: %q there: %v, in\n%s", args, text, !not, out.String())
		}
	}
}

// Limits at the true number hold, those below it do not; what is held back on purpose is not late.
func (s *scene) setCommands(t *testing.T) {
	s.says(t, 0, []string{"stage", "ls", "listings"}, "listings: 7 entities in Redis, 1 slowed down")
	s.says(t, 0, []string{"status"}, "1 set with 7 entities in Redis; 11 visits waiting, 5 due, 1 failed, 2 dead")
	s.says(t, 0, []string{"rules", "ls"}, "processor:listings/price")
	s.says(t, 0, []string{"stage", "show", "listings", "loop"}, "slowed down", "stages have changed the entity 100 times within a minute; the last one is flip")
	const slowed, dead = "listings: stages change 1 entities more than 100 times a minute", "listings/geocode: 2 dead visits; see dead ls listings/geocode"
	s.says(t, 3, []string{"check", "--max-dead", "2", "--max-age", "1ms"}, slowed, "no dead visits", "no has been due")
	s.says(t, 3, []string{"check", "listings", "--max-dead", "1"}, slowed, dead)
	s.says(t, 3, []string{"doctor"}, slowed)
	var gone, parked []struct{ ID, State string }
	s.run(&gone, "dead", "ls", "listings/geocode")
	s.run(&parked, "parked", "ls", "listings/geocode")
	slices.SortFunc(gone, func(a, b struct{ ID, State string }) int { return strings.Compare(a.ID, b.ID) })
	if fmt.Sprint(gone, parked) != "[{bad1 dead} {bad2 dead}] [{late waiting}]" {
		t.Errorf("%v, %v", gone, parked)
	}
}

func (s *scene) setMetrics(t *testing.T) {
	server := httptest.NewServer(metrics.OverviewHandler(s.app, nil))
	defer server.Close()
	series := s.ofMarket(server.URL)
	want := map[string]int64{
		`stored_entities{set="listings"}`: 7, `slowed_entities{set="listings"}`: 1,
		`stored_waiting_visits{set="listings",stage="!"}`: 1, `stored_failing_visits{set="listings",stage="!"}`: 1,
	}
	for _, one := range setTruth.Stages {
		labels := fmt.Sprintf(`{set="listings",stage=%q}`, one.Stage)
		for name, n := range map[string]int64{"waiting": one.Waiting, "due": one.Due, "running": one.Running, "failing": one.Failing, "dead": one.Dead} {
			want["stored_"+name+"_visits"+labels] = n
		}
		if late := series["runnel_app_stage_oldest_due_seconds"+labels]; (late > 0) != (one.Due > 0 && one.Held == "") {
			t.Errorf("%s is %v seconds late with %d due, held by %q", one.Stage, late, one.Due, one.Held)
		}
	}
	for name, n := range want {
		if got, there := series["runnel_app_stage_"+name]; !there || got != float64(n) {
			t.Errorf("%s is %v (%v), want %d", name, got, there, n)
		}
	}
}

// The worker has counted each visit, and each call that ended in both histograms.
func (s *scene) workerOfSets(t *testing.T, worker *runnel.App) {
	server := httptest.NewServer(metrics.Handler(worker, nil))
	defer server.Close()
	series := s.ofMarket(server.URL)
	for name, want := range map[string]float64{
		`visits_total{result="dead",set="listings",stage="geocode"}`:    2,
		`visits_total{result="failed",set="listings",stage="geocode"}`:  1,
		`visits_total{result="updated",set="listings",stage="geocode"}`: 3,
		`seconds_count{set="listings",stage="geocode"}`:                 6,
		`lateness_seconds_count{set="listings",stage="geocode"}`:        6,
		`lateness_seconds_count{set="listings",stage="price"}`:          0,
		`seconds_count{set="listings",stage="flip"}`:                    100,
	} {
		if got, there := series["runnel_stage_"+name]; !there || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, there, want)
		}
	}
}

func (s *scene) ofMarket(url string) map[string]float64 {
	out := map[string]float64{}
	for name, value := range s.scrape(url) {
		out[strings.Replace(name, `app="market",`, "", 1)] = value
	}
	return out
}

func (s *scene) pageOfSets(t *testing.T) {
	server := httptest.NewServer(web.Handler(s.app, nil))
	defer server.Close()
	read := func(path string, into any) {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: code %d, %v: %s", path, resp.StatusCode, err, text)
		}
		s.decode(text, into)
	}
	var all []sets.State
	if read("/api/stage/ls", &all); !isTrue(all) {
		t.Errorf("%+v", all)
	}
	var e struct {
		sets.EntityState
		Text string
	}
	read("/api/stage/entity?set=listings&id=bad1", &e)
	states := []string{}
	for _, v := range e.Visits {
		states = append(states, fmt.Sprintf("%s waits=%v dead=%v runs=%v", v.Stage, v.Due != nil, v.Died != nil, v.Running))
	}
	want := []string{"close waits=true dead=false runs=false", "geocode waits=false dead=true runs=false", "price waits=true dead=false runs=false"}
	if !slices.Equal(states, want) || e.Text != `{"ID":"bad1","Place":"","N":0}` || e.Version == 0 {
		t.Errorf("%+v\n%q", e, states)
	}
}
