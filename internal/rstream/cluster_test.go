package rstream

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/testredis"
)

func TestSlotOf(t *testing.T) {
	s := testredis.Start(t, "--cluster-enabled", "yes")
	rdb := s.Client(t)
	for _, key := range []string{"", "a", "123456789", "{", "{}", "{}x", "a{b}c", "a{b}{c}", "{a}b", "a{{b}}", "__strm:{shop.3}.orders", "{unended"} {
		want, err := rdb.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("slot of %q", key), int64(slotOf(key)), want)
	}
}

func clustered(t *testing.T, k *testredis.Cluster) *Client {
	t.Helper()
	c, err := Open(Options{URL: k.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Cluster}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRoutes(t *testing.T) {
	k := testredis.StartCluster(t, 3, 0)
	c := clustered(t, k)
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 3 {
		t.Fatalf("nodes %v, %v", nodes, err)
	}
	pipe := c.once.Pipeline()
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
		got[i] = c.ordinary.Get(t.Context(), fmt.Sprint("k", i))
		equal(t, "value", got[i].Val(), fmt.Sprint(i))
	}
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
