package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestSlotOf(t *testing.T) {
	s := redistest.Start(t, "--cluster-enabled", "yes")
	rdb := s.Client(t)
	for _, key := range []string{"", "a", "123456789", "{", "{}", "{}x", "a{b}c", "a{b}{c}", "{a}b", "a{{b}}", "__strm:{shop.3}.orders", "{unended"} {
		want, err := rdb.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("slot of %q", key), int64(Slot(key)), want)
	}
}

func clustered(t *testing.T, k *redistest.Cluster) *Conn {
	t.Helper()
	c, err := Open(Options{URL: k.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Cluster}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRoutes(t *testing.T) {
	k := redistest.StartCluster(t, 3, 0)
	c := clustered(t, k)
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 3 {
		t.Fatalf("nodes %v, %v", nodes, err)
	}
	pipe := c.NoRetry.Pipeline()
	for i := range 100 {
		pipe.Set(t.Context(), fmt.Sprint("k", i), i, 0)
	}
	wait := pipe.Do(t.Context(), "WAIT", 0, 10)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := wait.Int(); err != nil || n != 0 {
		t.Errorf("WAIT: %v, %v", n, err)
	}
	got := make([]*redis.StringCmd, 100)
	for i := range got {
		got[i] = c.Retrying.Get(t.Context(), fmt.Sprint("k", i))
		equal(t, "value", got[i].Val(), fmt.Sprint(i))
	}
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	const own = "__own:{shop.3}.orders.printer"
	if err := c.Retrying.Set(t.Context(), own, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := Classify(c.NoRetry.HDel(t.Context(), own, "parked").Err()); !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), own) {
		t.Errorf("%v does not name %s", err, own)
	}
}

// proxied returns a connection to a cluster whose nodes are behind proxies.
func proxied(t *testing.T, k *redistest.Cluster) (*Conn, map[string]*faultproxy.Proxy) {
	t.Helper()
	by := map[string]*faultproxy.Proxy{}
	var seeds []string
	for _, n := range k.Nodes() {
		by[n.Addr()] = faultproxy.Start(t, n.Addr())
		seeds = append(seeds, n.Addr())
	}
	shared := redis.NewClusterClient(&redis.ClusterOptions{Addrs: seeds, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, by[addr].Addr())
	}})
	t.Cleanup(func() { shared.Close() })
	c, err := Open(Options{Redis: shared, Keys: keys.Keys{App: "shop", Layout: keys.Cluster}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, by
}

// A command that lost its reply is repeated only where harmless; parts to other nodes are
// unaffected.
func TestRoutesRepeatNothingOfUnknownOutcome(t *testing.T) {
	k := redistest.StartCluster(t, 3, 0)
	c, by := proxied(t, k)
	broken := by[k.Owner(Slot("k0")).Addr()]
	c.NoRetry.Get(t.Context(), "k0") // so that the slots are known

	rule := broken.On("INCR", 1).Do(faultproxy.CloseAfter)
	pipe := c.NoRetry.Pipeline()
	replies := map[string]*redis.IntCmd{}
	for i := range 20 {
		key := fmt.Sprint("k", i)
		replies[key] = pipe.Incr(t.Context(), key)
	}
	pipe.Exec(t.Context())
	rule.Wait(t)
	for key, reply := range replies {
		hit := k.Owner(Slot(key)) == k.Owner(Slot("k0"))
		if err := Classify(reply.Err()); errors.Is(err, ErrUnknownOutcome) != hit || !hit && err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if n := c.Retrying.Get(t.Context(), key).Val(); n != "1" {
			t.Errorf("%s was incremented to %s", key, n)
		}
	}

	rule = broken.On("GET", 1).Do(faultproxy.CloseAfter)
	equal(t, "read again", c.Retrying.Get(t.Context(), "k0").Val(), "1")
	rule.Wait(t)
}

// While a slot moves, a key that has not arrived is read at the old node, others at the new one,
// and a script over both waits until they are together.
func TestRoutesFollowASlotOnItsWay(t *testing.T) {
	k := redistest.StartCluster(t, 3, 0)
	c := clustered(t, k)
	ctx := t.Context()
	for _, key := range []string{"{x}a", "{x}b", "{x}c"} {
		if err := c.NoRetry.Set(ctx, key, "old", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	slot := Slot("{x}a")
	to := k.Nodes()[0]
	if k.Owner(slot) == to {
		to = k.Nodes()[1]
	}
	move := k.Begin(slot, to)
	equal(t, "moved", move.Some(1), 1)
	for _, key := range []string{"{x}a", "{x}b", "{x}c", "{x}new"} {
		if err := c.NoRetry.Append(ctx, key, "+").Err(); err != nil {
			t.Errorf("%s while its slot moves: %v", key, err)
		}
	}
	both := redis.NewScript(`return redis.call('GET', KEYS[1]) .. redis.call('GET', KEYS[2]) .. redis.call('GET', KEYS[3])`)
	_, err := both.Run(ctx, c.NoRetry, []string{"{x}a", "{x}b", "{x}c"}).Text()
	if !ReplyHas(err, "TRYAGAIN") || !Unavailable(err) {
		t.Errorf("a script over a slot that has half moved: %v", err)
	}
	done := make(chan string)
	go func() {
		text := ""
		for err := error(ScriptError("TRYAGAIN")); ReplyHas(err, "TRYAGAIN"); {
			text, err = both.Run(ctx, c.NoRetry, []string{"{x}a", "{x}b", "{x}c"}).Text()
		}
		done <- text
	}()
	move.End()
	equal(t, "what the script read", <-done, "old+old+old+")
	equal(t, "made on the way", c.Retrying.Get(ctx, "{x}new").Val(), "+")
}

// A command that was redirected before its connection broke is not repeated either.
func TestRoutesRepeatNothingAfterARedirection(t *testing.T) {
	k := redistest.StartCluster(t, 3, 0)
	c, by := proxied(t, k)
	ctx, all := t.Context(), []string{"{y}a", "{y}b", "{y}c"}
	c.NoRetry.Get(ctx, all[0]) // so that the slots are known
	slot := Slot(all[0])
	to := k.Nodes()[0]
	if k.Owner(slot) == to {
		to = k.Nodes()[1]
	}
	k.Begin(slot, to).End()

	rule := by[to.Addr()].On("INCR", 1).Do(faultproxy.CloseAfter)
	pipe := c.NoRetry.Pipeline()
	replies := map[string]*redis.IntCmd{}
	for _, key := range all {
		replies[key] = pipe.Incr(ctx, key)
	}
	pipe.Exec(ctx)
	rule.Wait(t)
	for key, reply := range replies {
		if n, _ := c.Retrying.Get(ctx, key).Int(); n > 1 {
			t.Errorf("%s was incremented to %d", key, n)
		}
		if err := Classify(reply.Err()); !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestRedirection(t *testing.T) {
	for text, want := range map[string]string{
		"MOVED 3999 127.0.0.1:6381": "3999 127.0.0.1:6381 false",
		"ASK 0 ::1:7000":            "0 [::1]:7000 true",
		"ASK 0 [::1]:7000":          "0 [::1]:7000 true",
		"MOVED 1 :6379":             "1 :6379 false",
		"MOVED 1 node-1.example:1":  "1 node-1.example:1 false",
		"MOVED 16384 a:1":           "0  false",
		"MOVED -1 a:1":              "0  false",
		"ASK 1 a":                   "0  false",
		"TRYAGAIN Multiple keys":    "0  false",
	} {
		slot, addr, asking := redirection(ScriptError(text))
		equal(t, text, fmt.Sprint(slot, " ", addr, " ", asking), want)
	}
}
