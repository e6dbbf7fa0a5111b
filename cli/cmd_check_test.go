package cli

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

func (s *shop) checked(code int, args ...string) (v verdict) {
	s.t.Helper()
	r := s.untyped(append([]string{"check", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != code || v.OK != (code == 0) {
		s.t.Fatalf("%v: %+v: %v, want code %d", args, r, err, code)
	}
	return v
}

// attended makes a processor look as if an idle worker ran it.
func (s *shop) attended() {
	s.t.Helper()
	c := s.client()
	const executor = "eeeeeeeeeeeeeeee"
	g := rebalance.Group{}.Join(executor, rebalance.Executor{Worker: "w1", JoinedAt: time.Now(), Expiry: time.Hour}, 2, "")
	for key, value := range map[string]string{c.Keys().Membership("orders", "printer"): string(g.Encode()), c.Keys().Beat("orders", "printer", executor): "{}"} {
		if err := s.rdb.Set(s.t.Context(), key, value, time.Hour).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestCheckHoldsAProcessorAgainstItsLimits(t *testing.T) {
	s := owned(t, 4)
	s.attended()
	s.untyped("check", "--max-lag", "0", "--max-age", "1s", "--max-dead", "0").want(t, 0, "OK: 1 processor, lag 0, oldest unacked event -\n", "")
	s.send(5)
	time.Sleep(2 * time.Millisecond)
	s.untyped("check", "--max-lag", "5", "--max-age", "1h").want(t, 0, "OK: 1 processor, lag 5, oldest unacked event ", "")
	s.untyped("check", "orders/printer", "--max-lag", "4").want(t, 3, "stream orders: processor printer: lag 5 is above 4; see docs/troubleshooting.md#events-wait\n", "")
	s.untyped("check", "--max-age", "1ms").want(t, 3, "has not been acked for ", "")
	if v := s.checked(3, "--max-lag", "4"); len(v.Findings) != 1 || v.Findings[0].What != "lag" || v.Findings[0].Value != 5 || v.Findings[0].Limit != 4 || v.Findings[0].Partition != nil {
		t.Errorf("%+v", v)
	}
	v := s.checked(3, "--max-age", "1ms")
	if len(v.Findings) == 0 || v.Findings[0].What != "age" || v.Findings[0].Partition == nil || v.Findings[0].Value <= 1 || v.Findings[0].Limit != 1 {
		t.Errorf("%+v", v)
	}
	s.untyped("check", "--max-lag", "-1").want(t, 2, "", "--max-lag -1 is below 0")
	s.untyped("check", "--max-age", "-1s").want(t, 2, "", "--max-age -1s is below 0")
	s.untyped("check", "nope").want(t, 1, "", `no stream "nope"`)
}

func TestCheckFindsWhatStandsStill(t *testing.T) {
	s := owned(t, 4)
	s.attended()
	c := s.client()
	p := c.Partition("orders", "printer", 1)
	me := store.Claim{Executor: "aaaaaaaaaaaaaaaa", Number: 1}
	if err := c.Lock(t.Context(), p, me, time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Takeover(t.Context(), p, me, "", 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Quarantine(t.Context(), p, me, store.Quarantine{Reason: "event 1/5-0: no ink", Event: "5-0", Worker: "w1", At: 1767225600123}); err != nil {
		t.Fatal(err)
	}
	s.untyped("check").want(t, 3, "stream orders partition 1: processor printer: quarantined since 2026-01-01T00:00:00Z, at event 1/5-0: no ink; see docs/troubleshooting.md#partition-quarantined\n", "")
	if v := s.checked(3); len(v.Findings) != 1 || v.Findings[0].What != "quarantine" || *v.Findings[0].Partition != 1 || v.Processors[0].Totals.Quarantined != 1 {
		t.Errorf("%+v", v)
	}
	s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.Dead, Values: []any{"data", "x"}})
	if v := s.checked(3, "--max-dead", "0"); len(v.Findings) != 2 || v.Findings[0].What != "dead" || v.Findings[0].Value != 1 {
		t.Errorf("%+v", v)
	}
}

// A worker that cannot read reports so in its heartbeat, before it gives up its partitions.
func TestAWorkerThatDoesNotReadIsReported(t *testing.T) {
	s := owned(t, 4)
	s.attended()
	c := s.client()
	const executor = "eeeeeeeeeeeeeeee"
	if err := c.Lock(t.Context(), c.Partition("orders", "printer", 1), store.Claim{Executor: executor, Number: 1}, time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	s.untyped("status", "orders").matches(t, `(?m)^1 .* ok\b`)
	beat := store.HeartbeatInfo{NotReading: map[int]time.Time{0: time.UnixMilli(1767225660000), 1: time.UnixMilli(1767225600000)}} // it does not own 0
	if err := s.rdb.Set(t.Context(), c.Keys().Beat("orders", "printer", executor), beat.Encode(), time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	s.untyped("status", "orders").matches(t, `(?m)^0 .* no owner\b`, `(?m)^1 .* not reading\b`)
	s.untyped("doctor").want(t, 3, "problem  app: stream orders: processor printer: worker w1 is not reading partitions 0-1 since 2026-01-01T00:00:00Z\n       → look at its log", "")
}

// An unreadable partition is an error of the check, not a finding.
func TestCheckOfAnUnreadablePartitionFails(t *testing.T) {
	s := owned(t, 4)
	key := "__strm:shop.orders.1"
	s.rdb.Del(t.Context(), key)
	s.rdb.Set(t.Context(), key, "x", 0)
	s.untyped("check", "--max-lag", "10").want(t, 1, "", "partition 1 cannot be looked at: stream orders partition 1: processor printer: view: ")
}

// If the server does not know the lag, entries are counted as far as needed.
func TestCheckCountsAsFarAsItsLimit(t *testing.T) {
	s := owned(t, 20)
	s.attended()
	key := "__strm:shop.orders.0"
	for range 25 {
		pipe := s.rdb.Pipeline()
		for range 1000 {
			pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: []any{"data", "x"}})
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	last := s.rdb.XRevRangeN(t.Context(), key, "+", "-", 2).Val()
	s.rdb.XDel(t.Context(), key, last[1].ID)
	for limit, code := range map[int]int{24_998: 3, 24_999: 0, 10: 3} {
		r := s.untyped("check", "--max-lag", fmt.Sprint(limit))
		if r.code != code {
			t.Errorf("limit %d: %+v", limit, r)
		}
	}
	s.untyped("status", "orders").want(t, 0, ">10000", "")
}

func TestCheckFindsThatNoWorkerRuns(t *testing.T) {
	s := owned(t, 4)
	s.untyped("check").want(t, 3, "1 finding: 1 processor, lag 0, oldest unacked event -\nstream orders: processor printer: no worker runs it: start one; see docs/troubleshooting.md#no-worker\n", "")
	if v := s.checked(3); len(v.Findings) != 1 || v.Findings[0].What != "workers" || v.Findings[0].Partition != nil {
		t.Errorf("%+v", v)
	}
	s.attended()
	s.checked(0)
	s.untypedRaw("check", "--app", "sohp").want(t, 1, "", "app sohp has no streams at redis ")
}

func TestCheckFindsAStreamWithoutProcessors(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	s.send(3)
	s.untyped("check").want(t, 3, "stream orders: it has no processor: start the workers that process it; see docs/troubleshooting.md#no-worker\n", "")
	if v := s.checked(3); len(v.Findings) != 1 || v.Findings[0].What != "processors" || v.Findings[0].Value != 3 {
		t.Errorf("%+v", v)
	}
}

func TestCheckFindsWhatIsLostHeldOrWithoutAnOwner(t *testing.T) {
	s := owned(t, 4)
	s.attended()
	c := s.client()
	s.rdb.HSet(t.Context(), c.Partition("orders", "printer", 0).Own, "lost", 7)
	s.untyped("check").want(t, 3, "stream orders: processor printer: 7 events lost, removed before they were processed, above 0; --max-lost 7 accepts that; see docs/troubleshooting.md#events-lost\n", "")
	s.untyped("check", "--max-lost", "7").want(t, 0, "OK", "")
	s.untyped("pause", "orders/printer").want(t, 0, "pause of processor:orders/printer", "")
	if v := s.checked(3, "--max-lost", "7"); len(v.Findings) != 2 || v.Findings[0].What != "held" || v.Processors[0].Totals.Held != 2 {
		t.Errorf("%+v", v)
	}
	s.untyped("resume", "orders/printer").want(t, 0, "is removed", "")
	// An event of two minutes ago, in a partition that the worker does not own.
	id := fmt.Sprint(time.Now().Add(-2*time.Minute).UnixMilli(), "-0")
	log := c.Partition("orders", "printer", 1).Log
	s.rdb.Del(t.Context(), log, c.Partition("orders", "printer", 1).Own)
	s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: log, ID: id, Values: []any{"data", "x"}})
	if v := s.checked(3, "--max-lost", "7"); len(v.Findings) != 1 || v.Findings[0].What != "owner" || *v.Findings[0].Partition != 1 || v.Findings[0].Value < 120_000 {
		t.Errorf("%+v", v)
	}
}

func TestWhatRedisForgetsAndEvictsIsFound(t *testing.T) {
	s := owned(t, 4)
	s.attended()
	ctx := t.Context()
	s.untyped("check").want(t, 0, "OK: ", "")
	own := s.client().Partition("orders", "printer", 1).Own
	store := func(at time.Time) {
		text := fmt.Sprintf(`{"v":1,"what":"partition","from":"1-1","to":"2-2","epoch":5,"at":%d}`, at.UnixMilli())
		if err := s.rdb.HSet(ctx, own, "forgotten", text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	store(time.Now())
	const gone = "it was deleted, renamed, evicted or flushed: what was sent behind 1-1, which reached 2-2 at least, and not processed is gone"
	if v := s.checked(3); len(v.Findings) != 1 || v.Findings[0].What != "forgotten" || *v.Findings[0].Partition != 1 || v.Processors[0].Totals.Forgotten != 1 {
		t.Errorf("%+v", v)
	}
	s.untyped("check").want(t, 3, gone, "")
	s.untyped("status", "orders").want(t, 0, gone, "")
	store(time.Now().Add(-25 * time.Hour))
	s.untyped("check").want(t, 0, "OK: ", "")

	for name, value := range map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"} {
		s.configure(name, value)
	}
	const evicts = "maxmemory-policy is allkeys-lru, with maxmemory 100 MiB"
	s.untyped("check").want(t, 3, evicts, "")
	s.untyped("status", "orders").want(t, 0, evicts, "")
	if v := s.checked(3); len(v.Findings) != 1 || v.Findings[0].What != "eviction" {
		t.Errorf("%+v", v)
	}
	s.configure("maxmemory", "0") // nothing is evicted yet
	s.untyped("check").want(t, 0, "OK: ", "")
	s.untyped("status", "orders").want(t, 0, "nothing is evicted as long as maxmemory is not set", "")
}
