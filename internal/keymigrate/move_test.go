package keymigrate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// Everything gets its other name, and back again, and is unchanged.
func TestThereAndBack(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scene(t, rdb)
	before, names := contents(t, rdb)
	if names["standalone"] < 50 || names["cluster"] != 0 {
		t.Fatalf("the scene has %v", names)
	}
	dry, err := mover(t, rdb, Options{}).Plan(t.Context())
	must(t, err)
	unchanged, same := contents(t, rdb)
	differ(t, before, unchanged)
	if same["standalone"] != names["standalone"] || dry.Keys() != names["standalone"]-1 { // without the list of streams
		t.Errorf("%d planned of %v, then %v", dry.Keys(), names, same)
	}
	for round := range 2 {
		move(t, rdb, Options{})
		after, names := contents(t, rdb)
		differ(t, before, after)
		if names["standalone"] != 0 || names["fence"] == 0 {
			t.Errorf("round %d: there: %v", round, names)
		}
		if _, err := mover(t, rdb, Options{}).Run(t.Context()); !errors.Is(err, ErrNothing) {
			t.Errorf("again: %v", err)
		}
		move(t, rdb, Options{Back: true})
		after, names = contents(t, rdb)
		differ(t, before, after)
		if names["cluster"] != 0 {
			t.Errorf("round %d: back: %v", round, names)
		}
	}
}

// A plan says how much there is of what an extension has, and a partition of its stream moves whole.
func TestKeysOfExtensionsMoveWithTheirPartition(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scene(t, rdb)
	m := mover(t, rdb, Options{})
	plan, err := m.Plan(t.Context())
	must(t, err)
	got := map[string]int64{}
	for _, c := range plan.Kinds {
		got[c.Kind] = c.Items
	}
	for what, want := range map[string]int64{"entities": 2, "visits": 5, "failed visits": 2, "dead visits": 2, "rows": 8} {
		if got[what] != want {
			t.Errorf("%d %s, want %d", got[what], what, want)
		}
	}
	of := func(name string) []string {
		i := slices.IndexFunc(m.st.streams, func(s stream) bool { return s.name == name })
		return m.renamer().partition(&m.st.streams[i], 0).names
	}
	together := of("listings")
	for _, kind := range keys.Kinds {
		for _, part := range []string{"close", "price"} {
			if key := kind.Key(plain, "listings", part, "", 0); kind.Extension == "stage" && !slices.Contains(together, key) {
				t.Errorf("%s does not move with its partition", key)
			}
		}
	}
	for _, kind := range []string{"rows", "until"} {
		for _, table := range []string{"totals", "seen"} {
			if key := keys.MustKind(kind).Key(plain, "orders", table, "", 0); !slices.Contains(of("orders"), key) {
				t.Errorf("%s does not move with its partition", key)
			}
		}
	}
}

// Processes with old settings are refused, those with new ones are not.
func TestOldSettingsAreRefused(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	scene(t, rdb)
	old, running := open(t, rdb, keys.Standalone), open(t, rdb, keys.Standalone)
	_, err := running.EnsureMeta(t.Context(), "orders", store.Meta{})
	must(t, err)
	move(t, rdb, Options{})
	refused := func(what string, err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %q", what, err, text)
		}
	}
	for _, stream := range []string{"orders", "never seen"} {
		_, err = old.EnsureMeta(t.Context(), stream, store.Meta{Partitions: 3})
		refused(stream, err, "this process is set to standalone")
	}
	// It goes by cached metadata for ten seconds: the fence refuses it.
	sent := running.Append(t.Context(), []store.Append{{Stream: "orders", Partition: 2, Log: plain.Partition("orders", 2), Records: [][]string{{"data", "{}"}}}})
	if !errors.Is(sent[0].Err, redisconn.ErrWrongType) {
		t.Errorf("a late send: %+v", sent[0])
	}
	late := running.Append(t.Context(), []store.Append{{Stream: "orders", Partition: 0, Records: [][]string{{"data", "{}"}}, Due: []store.Due{{After: 1e12}}}})
	if late[0].Err == nil {
		t.Errorf("a late delayed send: %+v", late[0])
	}
	fresh := open(t, rdb, keys.Cluster)
	_, err = fresh.EnsureMeta(t.Context(), "orders", store.Meta{})
	must(t, err)
	sent = fresh.Append(t.Context(), []store.Append{{Stream: "orders", Partition: 2, Log: tagged.Partition("orders", 2), Records: [][]string{{"data", "{}"}}}})
	must(t, sent[0].Err)
}

// Entries that came under an old name whose fence was gone are appended.
func TestStragglersAreAppended(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scene(t, rdb)
	move(t, rdb, Options{})
	log := plain.Partition("orders", 1)
	must(t, rdb.Del(t.Context(), log).Err())
	for range 3 {
		must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: log, Values: []any{"data", "late"}}).Err())
	}
	move(t, rdb, Options{})
	got := rdb.XRange(t.Context(), tagged.Partition("orders", 1), "-", "+").Val()
	if len(got) != 4+3 || got[6].Values["data"] != "late" {
		t.Errorf("%v", got)
	}
	if kind := rdb.Type(t.Context(), log).Val(); kind != "string" {
		t.Errorf("the fence is a %s", kind)
	}
}

func TestItRefuses(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	ctx := t.Context()
	for name, tt := range map[string]struct {
		prepare func()
		options Options
		want    string
	}{
		"a heartbeat":     {func() { rdb.Set(ctx, plain.Beat("orders", "printer", "0123"), "x", 0) }, Options{}, "orders/printer is run by worker w1: stop it first"},
		"a lock":          {func() { rdb.Set(ctx, plain.Lock("a.b", "mailer", 0), "0999:0000000000000001", 0) }, Options{}, `a.b/mailer: "0999" holds the lock __lock:shop.a.b.mailer.0`},
		"a lock, new":     {func() { rdb.Set(ctx, tagged.Lock("orders", "mailer", 2), "x:1", 0) }, Options{}, "holds the lock __lock:{shop.2}.orders.mailer"},
		"a leader":        {func() { rdb.Set(ctx, plain.Leader(), "w7/0011-500", 0) }, Options{}, "its tasks are run by worker w7"},
		"an older leader": {func() { rdb.Set(ctx, plain.OldLeader(), "w6/0011-500", 0) }, Options{}, "its tasks are run by worker w6"},
		"a name is taken": {func() { rdb.HSet(ctx, tagged.Dead("orders", "removed", 1), "a", "b") }, Options{}, "there is a key __dead:{shop.1}.orders.removed already"},
		"another version": {func() { rdb.Set(ctx, plain.Meta("orders"), `{"v":3}`, 0) }, Options{}, "it has version 3, this program knows 1 and 2"},
		"the same server": {func() {}, Options{Target: server.URL()}, "--to names the redis that has the keys"},
		"to, too late":    {func() { move(t, rdb, Options{}) }, Options{Target: "redis://127.0.0.1:1"}, "go --back first, then say --to"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, rdb.FlushAll(ctx).Err())
			scene(t, rdb)
			tt.prepare()
			before, was := contents(t, rdb)
			_, err := mover(t, rdb, tt.options).Run(ctx)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			after, is := contents(t, rdb)
			differ(t, before, after)
			if was["standalone"] != is["standalone"] {
				t.Errorf("names: %v, then %v", was, is)
			}
		})
	}
}

// The script finds a worker that came between the first look and the rename of its partition.
func TestWorkerThatComesMeanwhile(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scene(t, rdb)
	before, _ := contents(t, rdb)
	lock := plain.Lock("orders", "mailer", 1)
	m := mover(t, rdb, Options{})
	m.o.Report = func(_ string, done, _ int) {
		if done == 2 {
			must(t, rdb.Set(t.Context(), lock, "x:1", 0).Err())
		}
	}
	if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "a worker holds "+lock) {
		t.Fatalf("got %v", err)
	}
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		for stream, partitions := range map[string]int{"orders": 3, "a.b": 1, "another": 4} {
			_, err := open(t, rdb, layout).EnsureMeta(t.Context(), stream, store.Meta{Partitions: partitions})
			if err == nil || !strings.Contains(err.Error(), "being moved") || !strings.Contains(err.Error(), "move-layout") {
				t.Errorf("%v, %s: %v", layout, stream, err)
			}
		}
	}
	must(t, rdb.Del(t.Context(), lock).Err())
	move(t, rdb, Options{})
	after, _ := contents(t, rdb)
	differ(t, before, after)
}

// A move that slept while another process went the way back does no harm when it wakes.
func TestMoveThatSlept(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scene(t, rdb)
	before, was := contents(t, rdb)
	m := mover(t, rdb, Options{})
	m.o.Report = func(_ string, done, _ int) {
		if done == 2 {
			m.o.Report = func(string, int, int) {}
			move(t, rdb, Options{Back: true})
		}
	}
	if _, err := m.Run(t.Context()); !errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	after, is := contents(t, rdb)
	differ(t, before, after)
	if is["standalone"] != was["standalone"] {
		t.Errorf("%v, then %v", was, is)
	}
	if _, err := open(t, rdb, keys.Standalone).EnsureMeta(t.Context(), "orders", store.Meta{}); err != nil {
		t.Error(err)
	}
}
