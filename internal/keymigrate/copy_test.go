package keymigrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func nodesOf(t *testing.T, c *redistest.Cluster) (out []*redis.Client) {
	for _, n := range c.Nodes() {
		out = append(out, n.Client(t))
	}
	return out
}

func TestToACluster(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	cluster := redistest.StartCluster(t, 3, 0)
	nodes := nodesOf(t, cluster)
	scene(t, rdb)
	before, _ := contents(t, rdb)
	here, _ := contents(t, rdb)
	for name := range here {
		if strings.HasPrefix(name, "{Kind") {
			delete(here, name)
		}
	}
	to := Options{Target: cluster.URL()}
	if _, err := mover(t, rdb, to).Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.DBSize(t.Context()).Val() != 0 {
			t.Error("planning wrote something")
		}
	}
	move(t, rdb, to)
	there, names := contents(t, nodes...)
	for name, text := range here { // other apps'
		there[name] = text
	}
	differ(t, before, there)
	if names["standalone"] != 0 {
		t.Errorf("names there: %v", names)
	}
	kept, _ := contents(t, rdb)
	differ(t, before, strip(kept))
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		for _, stream := range []string{"orders", "a.b"} {
			_, err := open(t, rdb, layout).EnsureMeta(t.Context(), stream, store.Meta{})
			if err == nil || !strings.Contains(err.Error(), "its keys were moved to the redis at "+cluster.Nodes()[0].Addr()) {
				t.Errorf("%v: %v", layout, err)
			}
		}
	}
	if _, err := mover(t, rdb, to).Run(t.Context()); !errors.Is(err, ErrNothing) {
		t.Errorf("again: %v", err)
	}
	to.Delete = true
	move(t, rdb, to)
	left, names := contents(t, rdb)
	differ(t, here, left)
	if names["cluster"] != 0 || names["fence"] == 0 {
		t.Errorf("names left: %v", names)
	}
}

// strip removes from metadata what refers to a move.
func strip(all map[string]string) map[string]string {
	for name, text := range all {
		if before, after, ok := strings.Cut(text, `"layout":"moved to `); ok {
			_, after, _ = strings.Cut(after, `"`)
			all[name] = before + `"layout":""` + after
		}
	}
	return all
}

// A later move replaces copies that were taken back.
func TestCopiesThatWereTakenBack(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	other := redistest.Start(t)
	scene(t, rdb)
	m := mover(t, rdb, Options{Target: other.URL()})
	ctx, cancel := context.WithCancel(t.Context())
	m.o.Report = func(step string, done, _ int) {
		if step == "keys copied" && done > 10 {
			cancel()
		}
	}
	if _, err := m.Run(ctx); err == nil {
		t.Fatal("not interrupted")
	}
	if err := runError(t, rdb, Options{}); !strings.Contains(err, "a move to the redis at "+other.Addr()+" was begun") {
		t.Error(err)
	}
	move(t, rdb, Options{Back: true})
	must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: plain.Partition("orders", 0), Values: []any{"data", "new"}}).Err())
	must(t, rdb.Del(t.Context(), plain.Dead("orders", "printer", 0), plain.Dead("orders", "printer", 1)).Err())
	before, _ := contents(t, rdb)
	move(t, rdb, Options{Target: other.URL()})
	there, _ := contents(t, other.Client(t))
	for name, text := range before {
		if !strings.HasPrefix(name, "{Kind") {
			there[name] = text
		}
	}
	differ(t, before, there)
}

func runError(t *testing.T, rdb *redis.Client, o Options) string {
	t.Helper()
	_, err := mover(t, rdb, o).Run(t.Context())
	return fmt.Sprint(err)
}

func TestTargetIsRefused(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	other := redistest.Start(t)
	raw := other.Client(t)
	ctx := t.Context()
	scene(t, rdb)
	before, _ := contents(t, rdb)
	for name, tt := range map[string]struct {
		prepare func()
		want    string
	}{
		"the app":        {func() { raw.HSet(ctx, tagged.Streams(), "orders", "1") }, "has keys of this app that did not come from here, such as __meta:{shop}"},
		"the app, plain": {func() { raw.HSet(ctx, plain.Streams(), "orders", "1") }, "such as __meta:shop"},
		"a key of it":    {func() { raw.XAdd(ctx, &redis.XAddArgs{Stream: tagged.Partition("x", 3), Values: []any{"a", "b"}}) }, "such as __strm:{shop.3}.x"},
		"another move": {func() {
			raw.HSet(ctx, tagged.Streams(), store.MarkField, store.Mark{State: store.MarkClaimed, ID: "1", Source: "10.0.0.1:1"}.Encode())
		}, "is getting the keys of this app from the one at 10.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, raw.FlushAll(ctx).Err())
			tt.prepare()
			if err := runError(t, rdb, Options{Target: other.URL()}); !strings.Contains(err, tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			after, names := contents(t, rdb)
			differ(t, before, after)
			if names["cluster"] != 0 {
				t.Errorf("%v", names)
			}
		})
	}
}

// A deadline counts requests and fails everything after the last one.
type deadline struct {
	left    atomic.Int64
	replies bool // the last request is executed, its reply lost
	end     func()
}

var errDead = errors.New("dead")

func (d *deadline) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.left.Load() <= 0 {
		return nil, errDead
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	return &mortal{Conn: c, d: d}, err
}

type mortal struct {
	net.Conn
	d *deadline
}

func (c *mortal) Write(b []byte) (int, error) {
	switch left := c.d.left.Add(-1); {
	case left > 0:
		return c.Conn.Write(b)
	case left == 0 && c.d.replies:
		n, err := c.Conn.Write(b)
		if err == nil { // its reply proves that it was executed
			_, err = c.Conn.Read(make([]byte, 1))
		}
		c.d.end()
		return n, errors.Join(err, errDead)
	}
	c.d.end()
	return 0, errDead
}

// dying runs a move that is cut off after a number of requests, and reports whether it was.
func dying(t *testing.T, source *redistest.Server, target []string, requests int, replies bool, o Options) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := &deadline{replies: replies, end: cancel}
	d.left.Store(int64(requests))
	o.App, o.Source.Redis = app, redis.NewClient(&redis.Options{Addr: source.Addr(), Dialer: d.dial, DisableIdentity: true})
	m, err := Open(o)
	must(t, err)
	defer m.Close()
	if m.target != nil {
		m.target.client.Close()
		m.target.client, err = store.Open(redisconn.Options{Keys: m.source.to, Redis: redis.NewClusterClient(&redis.ClusterOptions{Addrs: target, Dialer: d.dial, DisableIdentity: true})})
		must(t, err)
	}
	_, err = m.Run(ctx)
	return err != nil && !errors.Is(err, ErrNothing)
}

// Wherever a move is cut off, every process is refused until a second run has completed it.
func TestInterruptedAnywhere(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	for _, replies := range []bool{false, true} {
		for n := 1; ; n += stride {
			must(t, rdb.FlushAll(t.Context()).Err())
			scene(t, rdb)
			before, was := contents(t, rdb)
			died := dying(t, server, nil, n, replies, Options{})
			halfway(t, rdb)
			if died && n%7 == 0 { // the way back is always open
				if err := runError(t, rdb, Options{Back: true}); err != "<nil>" && !strings.Contains(err, ErrNothing.Error()) {
					t.Fatal(err)
				}
				after, is := contents(t, rdb)
				differ(t, before, after)
				if is["standalone"] != was["standalone"] || is["cluster"] != 0 {
					t.Errorf("request %d: back: %v", n, is)
				}
			}
			if err := runError(t, rdb, Options{}); err != "<nil>" && !strings.Contains(err, ErrNothing.Error()) {
				t.Fatal(err)
			}
			after, names := contents(t, rdb)
			differ(t, before, after)
			if names["standalone"] != 0 || t.Failed() {
				t.Fatalf("request %d, executed: %v: names %v", n, replies, names)
			}
			if !died {
				t.Logf("%d requests", n)
				break
			}
		}
	}
}

// halfway checks that an incomplete move lets no worker run under either names.
func halfway(t *testing.T, rdb *redis.Client) {
	t.Helper()
	works := 0
	_, names := contents(t, rdb)
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		_, err := open(t, rdb, layout).EnsureMeta(t.Context(), "orders", store.Meta{})
		if err == nil {
			works++
			if other := map[string]string{keys.Standalone: "cluster", keys.Cluster: "standalone"}[layout]; names[other] > 0 {
				t.Fatalf("a process with layout %v may work on %v", layout, names)
			}
		} else if conflict := (*store.MetaConflictError)(nil); !errors.As(err, &conflict) {
			t.Fatal(err)
		}
	}
	if works > 1 {
		t.Fatal("both may work")
	}
}

func TestInterruptedAnywhereOnTheWayToACluster(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	cluster := redistest.StartCluster(t, 3, 0)
	nodes := nodesOf(t, cluster)
	var addrs []string
	for _, n := range cluster.Nodes() {
		addrs = append(addrs, n.Addr())
	}
	o := Options{Target: cluster.URL(), Delete: true}
	for _, replies := range []bool{false, true} {
		for n := 1; ; n += stride {
			for _, rdb := range append(nodes, rdb) {
				must(t, rdb.FlushAll(t.Context()).Err())
			}
			scene(t, rdb)
			before, _ := contents(t, rdb)
			died := dying(t, server, addrs, n, replies, o)
			works := 0
			for _, c := range []*store.Client{open(t, rdb, keys.Standalone), open(t, rdb, keys.Cluster), open(t, cluster.Client(t), keys.Cluster)} {
				if m, err := c.EnsureMeta(t.Context(), "orders", store.Meta{}); err == nil && m.Partitions > 0 {
					works++
				}
			}
			if works > 1 {
				t.Fatalf("request %d: %d may work", n, works)
			}
			if err := runError(t, rdb, o); err != "<nil>" && !strings.Contains(err, ErrNothing.Error()) {
				t.Fatalf("request %d: %v", n, err)
			}
			after, _ := contents(t, append(nodes, rdb)...)
			differ(t, before, after)
			if t.Failed() {
				t.Fatalf("request %d, executed: %v", n, replies)
			}
			if !died {
				t.Logf("%d requests", n)
				break
			}
		}
	}
}
