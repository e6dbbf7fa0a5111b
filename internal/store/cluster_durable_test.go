package store

import (
	"errors"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A send waits for the replicas of each node it goes to, and reports only those that lag.
func TestClusterWaitsForReplicasOfEachNode(t *testing.T) {
	k := redistest.StartCluster(t, 3, 1)
	c, err := Open(redisconn.Options{URL: k.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Cluster}, MinReplicas: 1, ReplicationTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.EnsureMeta(t.Context(), "orders", Meta{Partitions: 16, MaxLen: 1000, Codec: "json", Partitioner: "xxh64"}); err != nil {
		t.Fatal(err)
	}
	send := func() (all []Appended) {
		as := make([]Append, 16)
		for n := range as {
			as[n] = Append{Stream: "orders", Partition: n, Log: c.Keys().Partition("orders", n), Records: [][]string{{"data", "x"}}}
		}
		return c.Append(t.Context(), as)
	}
	for n, a := range send() {
		if a.Err != nil {
			t.Errorf("partition %d: %v", n, a.Err)
		}
	}
	master := k.Owner(k.Slot(c.Keys().Partition("orders", 3)))
	replica := k.ReplicaOf(master)
	replica.Freeze()
	defer replica.Thaw()
	for n, a := range send() {
		weak := k.Owner(k.Slot(c.Keys().Partition("orders", n))) == master
		if errors.Is(a.Err, redisconn.ErrNotReplicated) != weak || !weak && a.Err != nil {
			t.Errorf("partition %d, replica frozen %v: got %v", n, weak, a.Err)
		}
	}
}
