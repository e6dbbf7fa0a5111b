package inspect

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	alice = "aaaaaaaaaaaaaaaa"
	bob   = "bbbbbbbbbbbbbbbb"
)

// both runs a test on a redis-server and on the embedded server.
func both(t *testing.T, test func(t *testing.T, c *store.Client)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		c, err := store.Open(redisconn.Options{URL: "redis://" + addr, Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		test(t, c)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stream(t *testing.T, c *store.Client, name string, processors ...string) {
	t.Helper()
	_, err := c.EnsureMeta(t.Context(), name, store.Meta{Partitions: 4, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: processors})
	must(t, err)
}

// checkAge checks the age of the oldest event, whose ID is of 1970.
func checkAge(t *testing.T, p *ProcessorState, age int64) {
	t.Helper()
	at := time.Now().Add(-time.Duration(age) * time.Millisecond)
	if at.Before(time.UnixMilli(-60_000)) || at.After(time.UnixMilli(60_000)) {
		t.Errorf("the oldest event is of %v", at)
	}
	if p.Totals.Age != age {
		t.Errorf("the oldest of all is %d ms old, not %d", p.Totals.Age, age)
	}
}

func TestProcessor(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		ctx, joined := t.Context(), time.UnixMilli(1767225600123).UTC()
		stream(t, c, "orders", "printer")
		g := rebalance.Group{}.
			Join(alice, rebalance.Executor{Worker: "w1", JoinedAt: joined, Expiry: time.Second}, 4, "").
			Join(bob, rebalance.Executor{Worker: "w0", JoinedAt: joined, Expiry: time.Second}, 4, "")
		_, err := c.Group("orders", "printer").Swap(ctx, nil, g.Encode())
		must(t, err)
		must(t, c.Redis().Set(ctx, c.Keys().Beat("orders", "printer", alice), "1", time.Hour).Err())
		mine := c.Partition("orders", "printer", 2)
		for i := range 10 {
			must(t, c.Redis().XAdd(ctx, &redis.XAddArgs{Stream: mine.Log, ID: fmt.Sprint("1-", i+1), Values: []any{"data", "x"}}).Err())
		}
		tenure := store.Claim{Executor: alice, Number: 3}
		must(t, c.Lock(ctx, mine, tenure, time.Hour, 0))
		pos, err := c.Takeover(ctx, mine, tenure, "", 0)
		must(t, err)
		r := c.NewReader()
		defer r.Close()
		_, err = r.Read(ctx, store.GroupName("printer", alice), "c", []string{mine.Log}, 6, 0)
		must(t, err)
		must(t, c.Ack(ctx, store.GroupName("printer", alice), []store.Ack{{Place: mine, IDs: []string{"1-1"}}})[0])

		p, err := Processor(ctx, c, "orders", "printer", 0)
		must(t, err)
		if p.Generation != g.Generation || len(p.Members) != 2 || len(p.Partitions) != 4 {
			t.Fatalf("%+v", p)
		}
		if left := p.Members[1].HeartbeatLeft; left <= 59*60_000 || left > 3_600_000 {
			t.Errorf("heartbeat left %d ms", left)
		}
		p.Members[1].HeartbeatLeft = 0
		want := []MemberState{
			{Executor: bob, Worker: "w0", JoinedAt: joined, Assigned: g.Executors[bob].Partitions},
			{Executor: alice, Worker: "w1", JoinedAt: joined, Alive: true, Assigned: g.Executors[alice].Partitions},
		}
		if !reflect.DeepEqual(p.Members, want) {
			t.Errorf("members %+v\nwant %+v", p.Members, want)
		}
		got := p.Partitions[2]
		if got.LockLeft <= 59*60_000 || got.LockLeft > 3_600_000 {
			t.Errorf("lock left %d ms", got.LockLeft)
		}
		checkAge(t, p, got.Age)
		got.LockLeft, got.Age, got.Appended, p.Totals.Age = 0, 0, 0, 0
		if want := (PartitionState{
			Partition: 2, Executor: alice, Worker: "w1", Epoch: pos.Epoch, Tenure: "0000000000000003", Group: "printer@" + alice,
			Pending: 5, Lag: 9, Length: 10, Floor: "1-1", End: "1-10", Oldest: "1-2",
		}); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if want := (Totals{Owned: 1, Pending: 5, Lag: 9, Length: 10}); p.Totals != want {
			t.Errorf("totals %+v, want %+v", p.Totals, want)
		}
		if empty := p.Partitions[3]; empty.Executor != "" || empty.Lag != 0 {
			t.Errorf("%+v", empty)
		}
	})
}

func TestApp(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		ctx := t.Context()
		a, err := App(ctx, c, "", 0)
		must(t, err)
		if a.App != "shop" || a.Redis != c.Addr() || a.Leader != "" || len(a.Streams) != 0 {
			t.Errorf("%+v", a)
		}
		stream(t, c, "b", "x", "y")
		stream(t, c, "a.b")
		must(t, c.Redis().Set(ctx, c.Keys().Leader(), "host/1/0a1b2c3d", time.Hour).Err())
		if a, err = App(ctx, c, "", 0); err != nil || a.Leader != "host/1" || len(a.Streams) != 2 || a.Streams[0].Stream != "a.b" {
			t.Errorf("%+v, %v", a, err)
		}
		for only, want := range map[string]int{"b": 2, "a.b": 0} {
			a, err := App(ctx, c, only, 0)
			if err != nil || len(a.Streams) != 1 || a.Streams[0].Stream != only || len(a.Streams[0].Processors) != want || a.Streams[0].Partitions != 4 {
				t.Errorf("%+v, %v", a, err)
			}
		}
		if a, err := App(ctx, c, "c", 0); err != nil || len(a.Streams) != 0 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// A look must neither extend nor shorten a heartbeat.
func TestMembersChangesNoHeartbeat(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		ctx := t.Context()
		g := rebalance.Group{}.Join(alice, rebalance.Executor{Worker: "w", Expiry: time.Second}, 4, "")
		_, err := c.Group("orders", "printer").Swap(ctx, nil, g.Encode())
		must(t, err)
		beat := c.Keys().Beat("orders", "printer", alice)
		must(t, c.Redis().Set(ctx, beat, "1", 0).Err()) // without a TTL
		_, members, err := Members(ctx, c, "orders", "printer")
		must(t, err)
		if !members[0].Alive || c.Redis().PTTL(ctx, beat).Val() != -1 {
			t.Errorf("%+v, life %v", members, c.Redis().PTTL(ctx, beat).Val())
		}
	})
}

func TestBrokenMembershipIsAnError(t *testing.T) {
	both(t, func(t *testing.T, c *store.Client) {
		stream(t, c, "orders", "printer")
		must(t, c.Redis().Set(t.Context(), c.Keys().Membership("orders", "printer"), `{"v":2}`, 0).Err())
		if _, err := Processor(t.Context(), c, "orders", "printer", 0); err == nil {
			t.Error("a membership of another version was read")
		}
		if _, err := Processor(t.Context(), c, "nope", "printer", 0); err == nil {
			t.Error("a stream without metadata was read")
		}
	})
}
