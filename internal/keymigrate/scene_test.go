package keymigrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const app = "shop"

var (
	plain  = keys.Keys{App: app, Layout: keys.Standalone}
	tagged = keys.Keys{App: app, Layout: keys.Cluster}
)

// scene writes everything that an app may have, and some keys of two others.
func scene(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	c := open(t, rdb, keys.Standalone)
	for stream, partitions := range map[string]int{"orders": 3, "a.b": 1} {
		_, err := c.EnsureMeta(ctx, stream, store.Meta{Partitions: partitions, MaxLen: 100, Codec: "json", Partitioner: "xxh64", KeyField: "k", DedupWindow: 60000, Processors: []string{"printer", "mailer"},
			Tables: map[string]store.TableMeta{"totals": {Processor: "printer", Codec: "json", TTL: 5000}, "seen": {Processor: "mailer", Codec: "msgpack", Local: true}}})
		must(t, err)
	}
	_, err := c.EnsureMeta(ctx, "listings", store.Meta{Partitions: 1, Codec: "json", Partitioner: "xxh64", Processors: []string{"stages"}, Kind: "set", Parts: []string{"close", "price"}})
	must(t, err)
	pipe := rdb.Pipeline()
	sceneOfSet(ctx, pipe)
	for n := range 2 { // partition 2 never had an event
		log := plain.Partition("orders", n)
		for i := range 5 {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: log, ID: fmt.Sprintf("%d-%d", 1000+n, i+1), Values: []any{"data", fmt.Sprintf(`{"k":"%d"}`, i)}})
		}
		pipe.XGroupCreate(ctx, log, "printer@0123", "0")
		pipe.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "printer@0123", Consumer: "c", Count: 3, Streams: []string{log, ">"}})
		pipe.XAck(ctx, log, "printer@0123", fmt.Sprintf("%d-1", 1000+n))
		pipe.XDel(ctx, log, fmt.Sprintf("%d-1", 1000+n))
		for _, p := range []string{"printer", "removed"} {
			pipe.HSet(ctx, plain.Ownership("orders", p, n), "epoch", 7, "floor", "1000-1", "quarantine", "it failed")
			pipe.HSet(ctx, plain.Parked("orders", p, n), "999-1", "packed")
			pipe.HSet(ctx, plain.Retry("orders", p, n), "999-1", `{"attempt":2}`)
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: plain.Dead("orders", p, n), ID: "5-1", Values: []any{"data", "dead"}})
		}
		sceneOfTables(ctx, pipe, n)
		due := plain.Delayed("orders", n)
		pipe.ZAdd(ctx, due.Due, redis.Z{Score: 5e12, Member: "0001"})
		pipe.ZAdd(ctx, plain.Name(keys.Part{Kind: "duerun", Names: "orders", Partition: n}), redis.Z{Score: 5e12, Member: "0002"})
		for _, key := range []string{due.Versions, due.Data, plain.Name(keys.Part{Kind: "dueatt", Names: "orders", Partition: n})} {
			pipe.HSet(ctx, key, "0001", "x")
		}
		pipe.Set(ctx, due.Sequence, 2, 0)
		for i := range 7 {
			pipe.Set(ctx, plain.Once("orders", n, fmt.Sprintf("id:%d", i)), "1000-1", time.Hour)
		}
	}
	for i := range 400 { // a hash too large for the compact encoding
		pipe.HSet(ctx, plain.Parked("a.b", "mailer", 0), fmt.Sprintf("1-%d", i), strings.Repeat("x", 100))
	}
	pipe.Set(ctx, plain.Membership("orders", "printer"), `{"v":1,"generation":9,"partitions":3,"executors":{"0123":{"worker":"w1","joined_at":1,"expiry_ms":1000,"partitions":[0]}},"pins":{"1":"w2"}}`, 0)
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: plain.Control("orders", "printer"), Values: []any{"v", "1", "kind", "join"}})
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: plain.AppControl(), Values: []any{"v", "1", "kind", "rules"}})
	pipe.HSet(ctx, plain.Rules(), "generation", 5, "pause:app", `{"v":1}`)
	pipe.HSet(ctx, plain.Blocks(), "generation", 6, "block app", `{"v":1}`)
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: plain.Audit(), Values: []any{"v", "1"}})
	pipe.HSet(ctx, plain.Tasks(), "nightly", `{"v":1,"last":1}`)
	for _, other := range []keys.Keys{{App: "shop2", Layout: keys.Standalone}, {App: "sho", Layout: keys.Cluster}} {
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: other.Partition("orders", 0), ID: "1-1", Values: []any{"a", "b"}})
		pipe.Set(ctx, other.Once("orders", 0, "x:shop.orders.1"), "1-1", time.Hour)
	}
	pipe.Set(ctx, "unrelated", "1", 0)
	_, err = pipe.Exec(ctx)
	must(t, err)
}

// sceneOfSet fills every kind of keys that an extension has.
func sceneOfSet(ctx context.Context, pipe redis.Pipeliner) {
	for _, kind := range keys.Kinds {
		for _, part := range []string{"close", "price"} {
			switch key := kind.Key(plain, "listings", part, "", 0); {
			case kind.Extension != "stage":
			case kind.Count == "HLEN":
				pipe.HSet(ctx, key, "42", "1 0 x", "43", "2 0 y")
			case kind.Count == "ZCARD":
				pipe.ZAdd(ctx, key, redis.Z{Member: "42", Score: 5e12})
			default:
				pipe.Set(ctx, key, 2, 0)
			}
		}
	}
}

// sceneOfTables fills the tables of orders in a partition.
func sceneOfTables(ctx context.Context, pipe redis.Pipeliner, n int) {
	for _, table := range []string{"totals", "seen"} {
		pipe.HSet(ctx, keys.MustKind("rows").Key(plain, "orders", table, "", n), "ada", "\xc1\x00", "bob", "2")
		pipe.ZAdd(ctx, keys.MustKind("until").Key(plain, "orders", table, "", n), redis.Z{Score: 5e12, Member: "ada"})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, rdb redis.UniversalClient, layout string) *store.Client {
	t.Helper()
	c, err := store.Open(redisconn.Options{Redis: rdb, Keys: keys.Keys{App: app, Layout: layout}})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// contents returns what the servers hold but for fences and marks: keys of the app by their part,
// others by name. names counts the app's keys by layout, and the fences.
func contents(t *testing.T, nodes ...*redis.Client) (all map[string]string, names map[string]int) {
	t.Helper()
	ctx := context.Background()
	all, names = map[string]string{}, map[string]int{}
	for _, rdb := range nodes {
		found, err := rdb.Keys(ctx, "*").Result()
		must(t, err)
		slices.Sort(found) // a rehash changes their order
		for _, key := range found {
			text := content(t, rdb, key)
			if strings.HasPrefix(text, "string moved: ") {
				names["fence"]++
				continue
			}
			if text == "hash []" { // streams of an app that has none
				continue
			}
			name := key
			for _, k := range []keys.Keys{plain, tagged} {
				if p, ok := k.Parse(key); ok {
					name = fmt.Sprintf("%+v", p)
					names[k.Layout]++
				}
			}
			if all[name] != "" {
				name += " a second time"
			}
			all[name] = text
		}
	}
	return all, names
}

// content returns what a key holds. Metadata are compared without their layout.
func content(t *testing.T, rdb *redis.Client, key string) string {
	t.Helper()
	ctx := context.Background()
	kind := rdb.Type(ctx, key).Val()
	left := ""
	if rdb.PTTL(ctx, key).Val() > 0 {
		left = " for a while"
	}
	switch kind {
	case "string":
		text := rdb.Get(ctx, key).Val()
		for _, layout := range []string{`"standalone"`, `"cluster"`} {
			text = strings.Replace(text, `"layout":`+layout, `"layout":""`, 1)
		}
		return "string " + text + left
	case "hash":
		fields := rdb.HGetAll(ctx, key).Val()
		delete(fields, store.MarkField)
		var text []string
		for _, f := range slices.Sorted(maps.Keys(fields)) {
			text = append(text, f+"="+fields[f])
		}
		return fmt.Sprint("hash ", text, left)
	case "zset":
		return fmt.Sprint("zset ", rdb.ZRangeWithScores(ctx, key, 0, -1).Val(), left)
	case "stream":
		in, err := contentOf(ctx, rdb, key)
		must(t, err)
		return fmt.Sprint("stream ", in, left)
	}
	t.Fatalf("%s is a %s", key, kind)
	return ""
}

// differ reports each difference as an error.
func differ(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s:\nbefore %.300s\nafter  %.300s", name, text, after[name])
		}
	}
	for name, text := range after {
		if before[name] == "" {
			t.Errorf("%s is new: %.300s", name, text)
		}
	}
}

// mover returns a Mover from the server of a client.
func mover(t *testing.T, rdb *redis.Client, o Options) *Mover {
	t.Helper()
	o.App, o.Source.Redis = app, rdb
	m, err := Open(o)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func move(t *testing.T, rdb *redis.Client, o Options) *Plan {
	t.Helper()
	p, err := mover(t, rdb, o).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
