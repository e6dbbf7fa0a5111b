package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// set is the metadata of a set with these stages, as a worker has it.
func set(stages ...string) Meta {
	m := orders("stages")
	m.Kind, m.Parts = "set", stages
	return m
}

// A release that knows version 1 alone refuses streams with a kind, and reads all others.
func TestMetaOfKinds(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		stored := func(stream string) string { return e.raw.Get(e.ctx(), e.Keys().Meta(stream)).Val() }
		try(e.EnsureMeta(e.ctx(), "listings", set("price", "geocode"))).must(t)
		try(e.EnsureMeta(e.ctx(), "listings", set("close", "price"))).must(t)
		sender := set()
		sender.Processors = nil
		got := try(e.EnsureMeta(e.ctx(), "listings", sender)).must(t)
		equal(t, "parts", got.Parts, []string{"close", "geocode", "price"})
		equal(t, "set", stored("listings"), `{"v":2,"partitions":16,"size":1000,"codec":"json","partitioner":"xxh64","key_field":"customer","layout":"standalone","processors":["stages"],"kind":"set","parts":["close","geocode","price"]}`)
		try(e.EnsureMeta(e.ctx(), "orders", orders("printer"))).must(t)
		equal(t, "ordinary stream", stored("orders"), `{"v":1,"partitions":16,"size":1000,"codec":"json","partitioner":"xxh64","key_field":"customer","layout":"standalone","processors":["printer"]}`)
		if gone := try(e.Unregister(e.ctx(), "listings", "stages")).must(t); !gone || !strings.HasPrefix(stored("listings"), `{"v":2,`) {
			t.Errorf("stored %s", stored("listings"))
		}
	})
}

func TestKindsConflict(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		try(e.EnsureMeta(e.ctx(), "listings", set())).must(t)
		try(e.EnsureMeta(e.ctx(), "orders", orders())).must(t)
		topic := orders()
		topic.Kind = "topic"
		for _, tt := range []struct {
			stream string
			own    Meta
			want   string
		}{
			{"listings", orders("printer"), "stream listings is a set, and for this process it is an ordinary stream: "},
			{"listings", topic, "stream listings is a set, and for this process it is a topic: "},
			{"orders", set(), "stream orders is an ordinary stream, and for this process it is a set: "},
			{"orders", Meta{Partitions: 16, Kind: "moon"}, `and for this process it is of the kind "moon", which this release does not know: `},
		} {
			_, err := e.EnsureMeta(e.ctx(), tt.stream, tt.own)
			checked := e.CheckMeta(e.ctx(), tt.stream, tt.own)
			for _, err := range []error{err, checked} {
				if !errors.As(err, new(*MetaConflictError)) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			}
		}
		for _, stream := range []string{"listings", "orders"} {
			if _, err := e.EnsureMeta(e.ctx(), stream, Meta{}); err != nil { // it declares nothing
				t.Error(err)
			}
		}
	})
}

func TestNothingIsSentToStreamsWithAKind(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for kind, want := range map[string]string{
			"set":      `is a set: store entities with Set.Put, visit them with "stage visit"`,
			"schedule": "is a scheduler: start runs with", "bus": "is a bus: publish", "topic": "is a topic: publish",
			"moon": `is of the kind "moon", which this release does not know: send with a release that does`,
		} {
			m := orders()
			m.Kind = kind
			try(e.EnsureMeta(e.ctx(), kind, m)).must(t)
			now, later := Append{Stream: kind}, Append{Stream: kind, Partition: 1}
			now.Add([]string{"data", "x"}, "id", nil)
			later.Add([]string{"data", "x"}, "", &Due{After: time.Hour})
			before := e.raw.DBSize(e.ctx()).Val()
			for _, sent := range e.Append(e.ctx(), []Append{now, later}) {
				refused := (*SendKindError)(nil)
				if !errors.As(sent.Err, &refused) || sent.Unknown || len(sent.IDs) > 0 || !strings.Contains(sent.Err.Error(), "stream "+kind+" "+want) {
					t.Errorf("got %+v, want %q", sent, want)
				}
			}
			from := e.Partition("orders", "printer", 0)
			e.must(e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: from.Dead, ID: "5-1", Values: []any{"data", "x"}}).Err())
			for n := range 2 { // of the same partition, and of another one
				_, _, err := e.Replay(e.ctx(), Replay{From: from, ID: "5-1", Stream: kind, Partition: n})
				if !errors.As(err, new(*SendKindError)) {
					t.Errorf("replay: %v", err)
				}
			}
			equal(t, "dead letters", e.raw.XLen(e.ctx(), from.Dead).Val(), 1)
			e.must(e.raw.Del(e.ctx(), from.Dead).Err())
			equal(t, "keys", e.raw.DBSize(e.ctx()).Val(), before)
		}
	})
}

// A stream is dropped with every key of its extension, and with no other one's.
func TestStreamsAreDroppedWithWhatExtensionsHave(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, stream := range []string{"listings", "others"} {
			try(e.EnsureMeta(e.ctx(), stream, set("price", "close"))).must(t)
			for _, kind := range keys.Kinds {
				for _, part := range []string{"price", "close"} {
					for n := range 16 {
						e.putOne(kind, kind.Key(e.Keys(), stream, part, "", n))
					}
				}
			}
		}
		m, _, err := e.LoadMeta(e.ctx(), "listings")
		e.must(err)
		extents := try(e.Extents(e.ctx(), "listings", m)).must(t)
		// One entity a partition; a visit of the set, two of its stages, one that runs.
		equal(t, "extents", extents, []Extent{{"entities", 16}, {"visits", 64}, {"failed visits", 16}, {"dead visits", 32}})
		equal(t, "of an ordinary stream", len(try(e.Extents(e.ctx(), "listings", orders())).must(t)), 0)
		e.must(e.DropStream(e.ctx(), "listings", m))
		left := map[string]int{}
		for _, key := range e.raw.Keys(e.ctx(), "*").Val() {
			part, _ := e.Keys().Parse(key)
			of, _, _ := strings.Cut(part.Names, ".")
			left[of+" "+part.Kind]++
		}
		for _, kind := range keys.Kinds {
			if kind.Extension == "stage" && (left["listings "+kind.Name] > 0 || left["others "+kind.Name] == 0) {
				t.Errorf("%s: %d left, and %d of the other set", kind.Name, left["listings "+kind.Name], left["others "+kind.Name])
			}
		}
	})
}

// putOne puts one thing into a key of a kind that an extension counts.
func (e *env) putOne(kind keys.Kind, key string) {
	e.t.Helper()
	switch {
	case kind.Extension == "":
	case kind.Count == "HLEN":
		e.must(e.raw.HSet(e.ctx(), key, "42", "x").Err())
	case kind.Count == "ZCARD":
		e.must(e.raw.ZAdd(e.ctx(), key, redis.Z{Member: "42", Score: 1}).Err())
	default:
		e.must(e.raw.Set(e.ctx(), key, 1, 0).Err())
	}
}

// Roles have rights to the keys of an extension where the app has such streams, and nowhere else.
func TestRightsToKeysOfExtensions(t *testing.T) {
	c, err := Open(redisconn.Options{URL: "redis://127.0.0.1:1", Keys: example})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := map[keys.Role][]string{}
	for _, role := range keys.Roles() {
		before[role] = c.Rule(role)
		if slices.Contains(before[role], "~__ent:example.*") {
			t.Errorf("%s: %q", role, before[role])
		}
	}
	c.Uses("")
	c.Uses("moon")
	for _, role := range keys.Roles() {
		equal(t, role.String(), c.Rule(role), before[role])
	}
	c.Uses("set")
	for _, role := range keys.Roles() {
		more := slices.DeleteFunc(c.Rule(role), func(r string) bool { return slices.Contains(before[role], r) })
		var want []string
		for _, kind := range keys.Kinds {
			if kind.Extension == "stage" && kind.Roles&role != 0 {
				want = append(want, "~__"+kind.Name+":example.*")
			}
		}
		slices.Sort(want)
		commands := map[keys.Role][]string{
			keys.Produce: {"+hdel", "+hscan", "+zrem"}, keys.Watch: {"+zcount", "+zscore"}, keys.Operate: {"+zcount"},
		}
		equal(t, role.String()+" of sets", more, append(want, commands[role]...))
		if len(more) < 5 {
			t.Errorf("%s: %q", role, more)
		}
	}
}
