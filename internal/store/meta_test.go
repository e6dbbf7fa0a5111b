package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

func orders(processors ...string) Meta {
	return Meta{Partitions: 16, MaxLen: 1000, Codec: "json", Partitioner: "xxh64", KeyField: "customer", Processors: processors}
}

func TestEnsureMeta(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		if _, ok, err := e.LoadMeta(e.ctx(), "orders"); ok || err != nil {
			t.Fatalf("before: %v, %v", ok, err)
		}
		if _, err := e.EnsureMeta(e.ctx(), "orders", Meta{}); err == nil {
			t.Error("a stream without a number of partitions was created")
		}
		first := try(e.EnsureMeta(e.ctx(), "orders", orders())).must(t)
		want := orders()
		want.Version, want.Layout = 1, "standalone"
		equal(t, "first", first, want)

		worker := orders("printer")
		worker.MaxLen = 5000
		got := try(e.EnsureMeta(e.ctx(), "orders", worker)).must(t)
		want.MaxLen, want.Processors = 5000, []string{"printer"}
		equal(t, "after a worker", got, want)
		got, err := e.EnsureMeta(e.ctx(), "orders", orders()) // a producer with another MaxLen
		e.must(err)
		equal(t, "after a producer", got, want)
		got = try(e.EnsureMeta(e.ctx(), "orders", Meta{})).must(t)
		equal(t, "after one that knows nothing", got, want)
		worker.Processors = []string{"mailer"}
		got = try(e.EnsureMeta(e.ctx(), "orders", worker)).must(t)
		equal(t, "processors", got.Processors, []string{"mailer", "printer"})
		loaded, ok, err := e.LoadMeta(e.ctx(), "orders")
		if !ok || err != nil {
			t.Fatalf("loaded: %v, %v", ok, err)
		}
		equal(t, "loaded", loaded, got)
	})
}

// A newer release's fields stay where they are, whatever this one changes.
func TestMetaKeepsUnknownFields(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		const newer = `,"things":["a","b"],"x":{"y":[1e400,"é"]}}`
		stored := func() string { return e.raw.Get(e.ctx(), e.Keys().Meta("orders")).Val() }
		try(e.EnsureMeta(e.ctx(), "orders", orders("printer"))).must(t)
		e.must(e.raw.Set(e.ctx(), e.Keys().Meta("orders"), strings.TrimSuffix(stored(), "}")+newer, 0).Err())
		for _, change := range []func() error{
			func() error { _, err := e.EnsureMeta(e.ctx(), "orders", orders("mailer")); return err },
			func() error { _, err := e.Unregister(e.ctx(), "orders", "printer"); return err },
		} {
			before := stored()
			e.must(change())
			if after := stored(); after == before || !strings.HasSuffix(after, newer) {
				t.Errorf("stored %s, before %s", after, before)
			}
		}
	})
}

func TestMetaConflicts(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		try(e.EnsureMeta(e.ctx(), "orders", orders("printer"))).must(t)
		for _, tt := range []struct {
			field, stored, own string
			change             func(*Meta)
		}{
			{"partitions", "16", "4", func(m *Meta) { m.Partitions = 4 }},
			{"codec", "json", "msgpack", func(m *Meta) { m.Codec = "msgpack" }},
			{"partitioner", "xxh64", "mine", func(m *Meta) { m.Partitioner = "mine" }},
		} {
			m := orders("printer")
			tt.change(&m)
			_, err := e.EnsureMeta(e.ctx(), "orders", m)
			conflict(t, err, MetaConflictError{"orders", tt.field, tt.stored, tt.own})
		}
		other, err := Open(redisconn.Options{URL: "redis://" + e.addr, Keys: keys.Keys{App: "example", Layout: keys.Cluster}})
		e.must(err)
		defer other.Close()
		_, err = other.EnsureMeta(e.ctx(), "orders", orders())
		conflict(t, err, MetaConflictError{"orders", "key layout", "standalone", "cluster"})
		try(other.EnsureMeta(e.ctx(), "returns", orders())).must(t)
		_, err = e.EnsureMeta(e.ctx(), "returns", orders())
		conflict(t, err, MetaConflictError{"returns", "key layout", "cluster", "standalone"})
	})
}

func conflict(t *testing.T, err error, want MetaConflictError) {
	t.Helper()
	var got *MetaConflictError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
		return
	}
	for _, part := range []string{want.Stream, want.Field, want.Stored, want.Own} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
}

func TestMetaOfAnotherVersion(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for value, remedy := range map[string]string{
			`{"v":3,"partitions":16}`: "it has version 3, this program knows 1 and 2: use a release that knows it",
			`{"partitions":16}`:       "it has no version: delete that key",
			`{}`:                      "it has no version: delete that key",
			`no json`:                 "delete that key",
		} {
			e.must(e.raw.Set(e.ctx(), "__meta:example.orders", value, 0).Err())
			_, _, loadErr := e.LoadMeta(e.ctx(), "orders")
			_, ensureErr := e.EnsureMeta(e.ctx(), "orders", orders())
			for _, err := range []error{loadErr, ensureErr} {
				if err == nil || !strings.Contains(err.Error(), "stream orders: metadata __meta:example.orders: ") || !strings.Contains(err.Error(), remedy) {
					t.Errorf("%s: got %v", value, err)
				}
			}
			equal(t, "value", e.raw.Get(e.ctx(), "__meta:example.orders").Val(), value)
		}
	})
}

func TestEnsureMetaOfManyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := e.EnsureMeta(e.ctx(), "orders", orders(fmt.Sprintf("p%02d", i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		m, _, err := e.LoadMeta(e.ctx(), "orders")
		e.must(err)
		equal(t, "processors", len(m.Processors), 20)
	})
}

// A stream with metadata is listed, whether it was created or dropped last.
func TestStreamsThatAreDroppedMeanwhile(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		left := 0
		for range 400 {
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := e.EnsureMeta(e.ctx(), "orders", orders()); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := e.DropStream(e.ctx(), "orders", Meta{Partitions: 1}); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			_, there, err := e.LoadMeta(e.ctx(), "orders")
			e.must(err)
			names := try(e.Streams(e.ctx())).must(t)
			if there && len(names) == 0 {
				left++
			}
		}
		equal(t, "times that it had metadata and was not listed", left, 0)
	})
}

func TestStreams(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, layout := range []string{keys.Standalone, keys.Cluster} {
			c, err := Open(redisconn.Options{URL: "redis://" + e.addr, Keys: keys.Keys{App: "app" + layout, Layout: layout}})
			e.must(err)
			defer c.Close()
			for _, name := range []string{"b", "a.b", "a"} {
				try(c.EnsureMeta(e.ctx(), name, orders())).must(t)
			}
			got := try(c.Streams(e.ctx())).must(t)
			equal(t, layout, got, []string{"a", "a.b", "b"})
		}
		got := try(e.Streams(e.ctx())).must(t)
		equal(t, "another app", len(got), 0)
	})
}

func TestMetaThatMakesNoSenseIsRefused(t *testing.T) {
	for _, stored := range []string{
		`{"v":1,"partitions":1000000000}`, `{"v":1,"partitions":-1}`, `{"v":1,"partitions":1` + strings.Repeat(" ", mostMeta) + "}",
	} {
		if m, err := parseMeta([]byte(stored)); err == nil || !strings.Contains(err.Error(), "stored metadata ") {
			t.Errorf("%d bytes: %+v, %v", len(stored), m, err)
		}
	}
	if _, err := parseMeta([]byte(`{"v":1,"partitions":65536}`)); err != nil {
		t.Error(err)
	}
}
