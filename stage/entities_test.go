package stage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/stage"
)

// onServer runs fn with a set of an app, on both servers, and with a client of the server.
func onServer(t *testing.T, fn func(t *testing.T, app *runnel.App, s items, rdb *redis.Client)) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr})
		defer app.Close()
		s := stage.New(app, "items", func(e item) string { return e.ID }, &stage.Options{Partitions: 3})
		s.Stage("copy", func(e item) bool { return e.A != e.B }, func(_ context.Context, e *item) (stage.Result, error) {
			e.B = e.A
			return stage.Updated, nil
		}, nil)
		rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
		defer rdb.Close()
		fn(t, app, s, rdb)
	})
}

func TestSaveNeedsTheStoredVersion(t *testing.T) {
	onServer(t, func(t *testing.T, _ *runnel.App, s items, _ *redis.Client) {
		ctx := t.Context()
		one, err := s.Save(ctx, stage.Entity[item]{Value: item{ID: "a", A: 1}})
		if err != nil || one.Version == 0 {
			t.Fatal(one, err)
		}
		if _, err := s.Save(ctx, stage.Entity[item]{Value: item{ID: "a"}}); !errors.Is(err, stage.ErrConflict) {
			t.Errorf("a second one: %v", err)
		}
		one.Value.A = 2
		two, err := s.Save(ctx, one)
		if err != nil || two.Version <= one.Version {
			t.Errorf("%+v, %v", two, err)
		}
		if _, err := s.Save(ctx, one); !errors.Is(err, stage.ErrConflict) {
			t.Errorf("an old version: %v", err)
		}
		if e, err := s.Get(ctx, "a"); err != nil || e != two {
			t.Errorf("%+v, %v", e, err)
		}
		if n, err := s.Delete(ctx, "a", "a"); n != 1 || err != nil {
			t.Errorf("deleted %d, %v", n, err)
		}
		again, err := s.Save(ctx, stage.Entity[item]{Value: item{ID: "a"}})
		if err != nil || again.Version <= two.Version {
			t.Errorf("after its deletion: %+v, %v", again, err)
		}
	})
}

// Updates of many at once are all there.
func TestUpdatesAtOnceAreAllThere(t *testing.T) {
	onServer(t, func(t *testing.T, _ *runnel.App, s items, _ *redis.Client) {
		ctx := t.Context()
		if err := s.Put(ctx, item{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 25 {
					if _, err := s.Update(ctx, "a", func(e *item) error { e.A++; return nil }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if e, err := s.Get(ctx, "a"); err != nil || e.Value.A != 200 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// Many values, of all partitions, in steps; those that cannot be stored are named, and no other is lost.
func TestPutNamesWhatItHasNotStored(t *testing.T) {
	onServer(t, func(t *testing.T, _ *runnel.App, s items, rdb *redis.Client) {
		ctx := t.Context()
		var all []item
		for n := range 1000 {
			all = append(all, item{ID: fmt.Sprint("n", n), Text: strings.Repeat("x", 20*n)})
		}
		all[7].ID = ""
		err := s.Put(ctx, all...)
		failed := (*stage.PutError)(nil)
		if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0].Index != 7 || !strings.Contains(err.Error(), "the ID is empty") {
			t.Fatalf("put: %v", err)
		}
		count := int64(0)
		for n := range 3 {
			count += rdb.HLen(ctx, fmt.Sprintf("__ent:shop.items.%d", n)).Val()
			if touched := rdb.ZCard(ctx, fmt.Sprintf("__touch:shop.items.%d", n)).Val(); touched != rdb.HLen(ctx, fmt.Sprintf("__ent:shop.items.%d", n)).Val() {
				t.Errorf("partition %d: %d touched", n, touched)
			}
		}
		if count != 999 {
			t.Errorf("%d stored", count)
		}
		if n, err := s.TouchAll(ctx, &stage.TouchAllOptions{Rate: 100_000}); n != 999 || err != nil {
			t.Errorf("touched %d, %v", n, err)
		}
	})
}

// What is too large is named.
func TestPutNamesWhatIsTooLarge(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr})
		t.Cleanup(func() { app.Close() })
		small := stage.New(app, "small", func(e item) string { return e.ID }, &stage.Options{MaxRecord: 1 << 20})
		err := small.Put(t.Context(), item{ID: "fits"}, item{ID: "large", Text: strings.Repeat("x", 1<<20)})
		failed := (*stage.PutError)(nil)
		if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0].ID != "large" || !errors.Is(err, codec.ErrTooLarge) {
			t.Errorf("put: %v", err)
		}
	})
}

// A server without memory refuses what is put, and says so; what is stored can be visited and deleted.
func TestAFullServerRefusesWhatIsPut(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, real bool) {
		if !real {
			return // it has no limit
		}
		app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr})
		defer app.Close()
		s := stage.New(app, "items", func(e item) string { return e.ID }, nil)
		s.Stage("copy", func(e item) bool { return e.A != e.B }, func(_ context.Context, e *item) (stage.Result, error) {
			e.B = e.A
			return stage.Updated, nil
		}, nil)
		rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
		defer rdb.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		within(t, func() bool { return app.Ready() == nil })
		if err := s.Put(ctx, item{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		if err := s.Put(ctx, item{ID: "a", A: 5}); err != nil {
			t.Fatal(err)
		}
		if err := rdb.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		within(t, func() bool {
			e, err := s.Get(ctx, "a")
			return err == nil && e.Value.B == 5
		})
		for what, err := range map[string]error{"put": s.Put(ctx, item{ID: "b"}), "touch": s.Touch(ctx, "a"), "visit": s.Visit(ctx, "copy", time.Now(), "a")} {
			if err == nil || !strings.Contains(err.Error(), "maxmemory") {
				t.Errorf("%s on a full server: %v", what, err)
			}
		}
	})
}

func within(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 20 s")
		}
	}
}

// Mistakes are found at once, and named.
func TestMistakesOfSetsAreNamed(t *testing.T) {
	id := func(e item) string { return e.ID }
	do := func(context.Context, *item) (stage.Result, error) { return stage.Untouched, nil }
	app := runnel.New("shop", nil)
	runnel.NewStream(app, "orders", id, nil)
	s := stage.New(app, "items", id, nil)
	s.Stage("one", nil, do, nil)
	for want, mistake := range map[string]func(){
		"the app has a stream of that name already": func() { stage.New(app, "orders", id, nil) },
		"a name has letters":                        func() { s.Stage("a b", nil, do, nil) },
		"the name is reserved":                      func() { s.Stage("stages", nil, do, nil) },
		"the set has a stage of that name already":  func() { s.Stage("one", nil, do, nil) },
		"nil function":                              func() { s.Stage("two", nil, nil, nil) },
		"Concurrency -1 is negative":                func() { s.Stage("two", nil, do, &stage.StageOptions{Concurrency: -1}) },
		"Order is of events": func() {
			s.Stage("three", nil, do, &stage.StageOptions{Retry: &runnel.Retry{Max: 1, Order: runnel.OrderKey}})
		},
		"nil store":                           func() { stage.NewExternal[item](app, "others", id, nil, nil) },
		"set others1: nil ID function":        func() { stage.New[item](app, "others1", nil, nil) },
		"a FieldCodec stores no single value": func() { stage.New(app, "others2", id, &stage.Options{Codec: codec.Fields}) },
		"Retry: Max 0 is below 1":             func() { stage.New(app, "others3", id, &stage.Options{Retry: &runnel.Retry{}}) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
					t.Errorf("%s, want %s", text, want)
				}
			}()
			mistake()
		}()
	}
	if err := s.Visit(t.Context(), "none", time.Now(), "a"); err == nil || !strings.Contains(err.Error(), `no stage "none"; there are one`) {
		t.Errorf("an unknown stage: %v", err)
	}
}
