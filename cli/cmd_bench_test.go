package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func (s *shop) allKeys() []string {
	s.t.Helper()
	keys, err := s.rdb.Keys(s.t.Context(), "*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

func TestBenchMeasuresAndLeavesNothing(t *testing.T) {
	s := owned(t, 4)
	before := s.allKeys()
	r := s.untyped("bench", "--yes", "--duration", "500ms", "--partitions", "4", "--batch", "50", "--senders", "2", "--output", "json")
	out := parse[benched](t, r)
	if !strings.HasPrefix(out.App, "shop-bench-") || "redis://"+out.Redis != s.url || out.Partitions != 4 || out.Version == "" || out.Limit == "" {
		t.Errorf("%+v", out)
	}
	var names []string
	for _, m := range out.Measures {
		names = append(names, m.Name)
		if m.Events < 1 || m.Took <= 0 || m.Took > 20_000 || m.Rate < 1 || m.RedisCPU == nil || *m.RedisCPU < 0 {
			t.Errorf("%+v", m)
		}
		if timed := m.Name != stageDrain; timed != (m.P50 != nil) || timed && (*m.P50 <= 0 || *m.P99 < *m.P50) {
			t.Errorf("%s: p50 %v, p99 %v", m.Name, m.P50, m.P99)
		}
	}
	if want := []string{stagePing, stageSingle, stageLatency, stageBatches, stageDrain}; !slices.Equal(names, want) {
		t.Fatalf("measured %q", names)
	}
	if sent, drained := out.Measures[1].Events+out.Measures[3].Events, out.Measures[4].Events; drained > sent {
		t.Errorf("%d sent, %d drained", sent, drained)
	}
	if after := s.allKeys(); !slices.Equal(after, before) {
		t.Errorf("keys %q, before %q", after, before)
	}
	s.untyped("bench", "-y", "--duration", "500ms").matches(t, `(?m)^MEASURE +EVENTS +PER SECOND +P50 +P99 +REDIS CPU\nping +\d+ +\d+ +\S+s +\S+s +\d+ %\n(.*\n){3}drain +\d+ +\d+ +- +- +\d+ %\nwhat limits sending in batches: .*core`)
}

// The stages share the memory for large records.
func TestBenchWithLargeRecords(t *testing.T) {
	s := newShop(t, nil)
	out := printed[benched](s, "bench", "--yes", "--size", "1048576", "--batch", "4")
	var written int64
	for _, m := range out.Measures[1:4] {
		written += m.Events * int64(out.Size)
		if m.Events == 0 {
			t.Errorf("%+v", m)
		}
	}
	if written > benchBytes {
		t.Errorf("%d MiB were written", written>>20)
	}
}

// An interrupt leaves nothing behind, whenever it comes.
func TestBenchInterrupted(t *testing.T) {
	s := newShop(t, nil)
	for _, tt := range []struct{ duration, key string }{
		{"20s", "__strm:shop-bench-*.load.*"}, {"20s", "__strm:shop-bench-*.paced.*"}, {"2s", "__own:shop-bench-*.load.drain.*"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan result, 1)
		go func() { done <- run(ctx, nil, "", "bench", "--yes", "--app", "shop", "--duration", tt.duration) }()
		eventually(t, tt.key, func() bool {
			keys, err := s.rdb.Keys(t.Context(), tt.key).Result()
			return err == nil && len(keys) > 0
		})
		cancel()
		r := receive(t, done, "end of the bench")
		if r.code != 0 || tt.duration == "20s" { // else the last stage may just have ended
			r.want(t, 1, "", ": interrupted\n")
		}
		if keys := s.allKeys(); len(keys) != 0 {
			t.Errorf("%s: left %q", tt.key, keys)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	master := redistest.Start(t)
	replica := master.Replica(t)
	run(t.Context(), newShopApp(), "", "bench", "--yes", "--redis-url", replica.URL()).want(t, 1, "", "is a replica, which takes no events: say --redis-url of its master, 127.0.0.1:")
	full := redistest.Start(t, "--maxmemory", "64mb")
	run(t.Context(), newShopApp(), "", "bench", "--yes", "--redis-url", full.URL()).want(t, 1, "", "raise maxmemory")
	for _, server := range []*redistest.Server{master, full} {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer rdb.Close()
		if n, err := rdb.DBSize(t.Context()).Result(); err != nil || n != 0 {
			t.Errorf("%d keys, %v", n, err)
		}
	}
}

func TestBenchMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"bench":                                   "say --yes",
		"bench --yes orders":                      `unexpected argument "orders"`,
		"bench --yes --duration 1h":               "--duration 1h0m0s is not between 500ms and 1m",
		"bench --yes --partitions 0":              "--partitions 0 is not between 1 and 1024",
		"bench --yes --size 2000000":              "--size 2000000 is not between",
		"bench --yes --batch 0":                   "--batch 0 is not between",
		"bench --yes --senders 300":               "--senders 300 is not between",
		"bench --yes --size 1000000 --batch 1000": "MiB at once, more than 16",
	} {
		run(t.Context(), newShopApp(), "", strings.Fields(args)...).want(t, 2, "", want)
	}
}

// An embedded server needs no warning, and has no CPU of its own to report.
func TestBenchOfAnEmbeddedServer(t *testing.T) {
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := Main(ctx, nil, []string{"bench", "--dev", "--app", "shop", "--duration", "500ms"}, strings.NewReader(""), &out, &errs)
	if code != 0 || !strings.Contains(out.String(), "drain") || !strings.Contains(out.String(), "unknown: the server does not report") {
		t.Errorf("%d: %s%s", code, out.String(), errs.String())
	}
}

func TestBenchNames(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, app := range []string{"shop", long} {
		name := benchName(app)
		if _, err := newApp(name); err != nil || !strings.HasPrefix(name, app[:4]) || name == benchName(app) {
			t.Errorf("%q, %v", name, err)
		}
	}
}
