package inspect

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/rebalance"
)

// A user that may only watch, and not change the rules, may look at everything.
func TestLookWithTheRightsOfAWatcher(t *testing.T) {
	server, ctx := redistest.Start(t), t.Context()
	open := func(url string, protocol int) *store.Client {
		o, err := redis.ParseURL(url)
		must(t, err)
		o.Protocol = protocol
		shared := redis.NewClient(o)
		t.Cleanup(func() { shared.Close() })
		c, err := store.Open(redisconn.Options{Redis: shared, Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	root := open(server.URL(), 3)
	user := []any{"ACL", "SETUSER", "shop", "on", ">secret"}
	for _, rule := range root.Rule(keys.Watch) {
		user = append(user, rule)
	}
	must(t, server.Client(t).Do(ctx, user...).Err())
	stream(t, root, "orders", "printer")
	_, err := root.SetRule(ctx, rules.Rule{Kind: rules.Pause, Scope: rules.App(), Who: "root"}, 0)
	must(t, err)
	for _, protocol := range []int{2, 3} {
		a, err := App(ctx, open(strings.Replace(server.URL(), "redis://", "redis://shop:secret@", 1), protocol), "", 0)
		must(t, err)
		if len(a.Streams) != 1 || a.RulesErr != "" || len(a.Rules) != 1 || a.Streams[0].Processors[0].Partitions[3].Held != "pause" {
			t.Errorf("protocol %d: %+v", protocol, a)
		}
	}
}

// A key of a wrong type is reported, and the rest can be read.
func TestLookAtKeysOfAWrongType(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		ctx := t.Context()
		stream(t, c, "orders", "printer")
		must(t, c.Redis().ZAdd(ctx, c.Keys().Delayed("orders", 1).Due, redis.Z{Score: 1, Member: "7"}).Err())
		must(t, c.Redis().Set(ctx, c.Partition("orders", "printer", 1).Dead, "x", 0).Err())
		must(t, c.Redis().Set(ctx, c.Keys().Delayed("orders", 2).Due, "x", 0).Err())
		a, err := App(ctx, c, "", 0)
		must(t, err)
		p := a.Streams[0].Processors[0]
		if a.Streams[0].Delayed != 1 || p.Totals.Unknown != 2 || !strings.Contains(p.Partitions[2].Err, "wrong Redis type") {
			t.Errorf("%d delayed, %+v", a.Streams[0].Delayed, p)
		}

		must(t, c.Redis().Del(ctx, c.Keys().Streams()).Err())
		must(t, c.Redis().Set(ctx, c.Keys().Streams(), "x", 0).Err())
		if a, err := App(ctx, c, "orders", 0); err != nil || len(a.Streams) != 1 {
			t.Errorf("the named stream: %+v, %v", a, err)
		}
		if _, err := App(ctx, c, "", 0); err == nil || !strings.Contains(err.Error(), "(__meta:shop): key holds a wrong Redis type") {
			t.Errorf("all streams: %v", err)
		}
	})
}

// A key of a wrong type outside of partitions is reported once, with its remedy, and the rest can
// be read.
func TestLookAtSharedKeysOfAWrongType(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		ctx, k := t.Context(), c.Keys()
		stream(t, c, "orders", "printer")
		stream(t, c, "returns", "printer")
		g := rebalance.Group{}.Join(alice, rebalance.Executor{Worker: "w", Expiry: time.Second}, 4, "")
		_, err := c.Group("orders", "printer").Swap(ctx, nil, g.Encode())
		must(t, err)
		beat := k.Beat("orders", "printer", alice)
		for _, key := range []string{k.Leader(), k.Meta("returns"), beat} {
			must(t, c.Redis().Del(ctx, key).Err())
			must(t, c.Redis().RPush(ctx, key, "x").Err())
		}
		a, err := App(ctx, c, "", 0)
		must(t, err)
		told := func(key, text, remedy string) {
			t.Helper()
			if strings.Count(text, key) != 1 || strings.Count(text, "delete") != 1 || !strings.Contains(text, remedy) {
				t.Errorf("%s: got %q", key, text)
			}
		}
		told(k.Leader(), a.LeaderErr, "look what it is, then delete or rename it")
		told(k.Meta("returns"), a.Unreadable["returns"], "delete that key, and the next worker or sender")
		told(beat, a.Streams[0].Processors[0].MembersErr, "look what it is, then delete or rename it")
	})
}

// A limit above the number of kept actions returns all.
func TestAuditOfAll(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		_, err := c.BeginAudit(t.Context(), store.Audit{Who: "ada", What: "drop"})
		must(t, err)
		if got, err := Audit(t.Context(), c, math.MaxInt/2+1); err != nil || len(got) != 1 || got[0].Who != "ada" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
