package security

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/stage"
)

type listing struct{ ID, Place string }

// market is an app with a set, for one user; its code may have more stages.
func market(t *testing.T, url, layout string, more ...string) (*runnel.App, *stage.Set[listing]) {
	app := runnel.New("shop", &runnel.Options{RedisURL: url, KeyLayout: runnel.KeyLayout(layout), LogLevel: "error"})
	t.Cleanup(func() { app.Close() })
	set := stage.New(app, "listings", func(l listing) string { return l.ID }, &stage.Options{Partitions: 2})
	set.Stage("geocode", func(l listing) bool { return l.Place == "" }, func(_ context.Context, l *listing) (stage.Result, error) {
		if strings.HasPrefix(l.ID, "bad") {
			return stage.Untouched, runnel.DeadLetter(context.Canceled)
		}
		l.Place = "Ulm"
		return stage.Updated.After(time.Hour), nil
	}, nil)
	for _, name := range more {
		set.Stage(name, nil, func(context.Context, *listing) (stage.Result, error) { return stage.Untouched.After(time.Hour), nil }, nil)
	}
	return app, set
}

// Sets work with the documented rights of each role, and with no more.
func TestSetsNeedWhatIsDocumented(t *testing.T) {
	for layout, of := range layouts {
		t.Run(layout, func(t *testing.T) {
			server, admin := guarded(t, layout)
			for _, line := range block(t, layout+", set") {
				do(t, admin, line)
			}
			app := func(role string) (*runnel.App, *stage.Set[listing]) {
				return market(t, urlOf(server, "shop-"+role), of)
			}
			worker, _ := market(t, urlOf(server, "shop-worker"), of, "old")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- worker.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			_, set := app("producer")
			must := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			must("put", set.Put(ctx, listing{ID: "a"}, listing{ID: "b"}, listing{ID: "bad1"}, listing{ID: "bad2"}))
			if !redistest.Within(redistest.Patience, func() bool { e, err := set.Get(ctx, "a"); return err == nil && e.Value.Place == "Ulm" }) {
				t.Fatal("not geocoded")
			}
			_, err := set.Update(ctx, "a", func(l *listing) error { l.Place = "Bonn"; return nil })
			must("update", err)
			must("touch", set.Touch(ctx, "a"))
			must("visit", set.Visit(ctx, "geocode", time.Now(), "a"))
			_, err = set.TouchAll(ctx, nil)
			must("touch all", err)
			_, err = set.Delete(ctx, "b")
			must("delete", err)

			run := func(role, want string, args ...string) {
				t.Helper()
				own, _ := app(role)
				var out, errs bytes.Buffer
				if code := cli.Main(ctx, own, args, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(out.String(), want) {
					t.Errorf("%s %v: code %d: %s%s", role, args, code, out.String(), errs.String())
				}
			}
			operateSets(run)
		})
	}
}

// operateSets runs the commands of sets.
func operateSets(run func(role, want string, args ...string)) {
	for _, role := range []string{"watcher", "operator"} {
		run(role, "listings", "stage", "ls")
		run(role, "Bonn", "stage", "show", "listings", "a")
		run(role, "bad1", "dead", "ls", "listings/geocode")
		run(role, "1 set with 3 entities", "status")
	}
	run("operator", "1 ID of listings", "stage", "touch", "listings", "a")
	run("operator", "1 ID of listings/geocode", "stage", "visit", "listings/geocode", "a")
	run("operator", "3 entities of listings touched", "stage", "touch", "listings", "--all", "--yes")
	run("operator", "dropped", "dead", "drop", "listings/geocode", "--id", "bad1", "--yes")
	run("operator", "retried", "dead", "retry", "listings/geocode", "--id", "bad2", "--yes")
	run("operator", "stage old of set listings forgotten", "stage", "rm", "listings/old", "--yes")
	run("operator", "pause of processor:listings/geocode", "pause", "listings/geocode", "--wait")
}
