package stage

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// Calls for many partitions reach the nodes that have them. Where a slot stands still on its way, its
// partition refuses them, unchanged, and no other. IDs and payloads may be any bytes, and payloads large.
func TestSetsInACluster(t *testing.T) {
	const partitions, id = 37, "\xff\x00 id\n"
	k := redistest.StartCluster(t, 3, 0)
	c, err := store.Open(redisconn.Options{URL: k.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Cluster}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, payload := New(c, "offers", false, "geo"), strings.Repeat("\xfe\x00", 50<<10)
	save := func(what string, version int64, moving int) {
		t.Helper()
		var saves []*Save
		for n := range partitions {
			saves = append(saves, &Save{Partition: n, Changes: []Change{{id, payload, version}, {"b", "", Any}}})
		}
		s.Save(t.Context(), saves...)
		for n, one := range saves {
			if n == moving {
				if !redisconn.ReplyHas(one.Err, "TRYAGAIN") {
					t.Errorf("%s, partition %d: %v, %v", what, n, one.Saved, one.Err)
				}
				continue
			}
			if one.Err != nil || len(one.Saved) != 2 || one.Saved[0].Version == 0 {
				t.Errorf("%s, partition %d: %d saved, %v", what, n, len(one.Saved), one.Err)
			}
		}
	}
	save("at first", 0, -1)
	slot := k.Slot(s.key("ent", 1, ""))
	to := k.Nodes()[0]
	if k.Owner(slot) == to {
		to = k.Nodes()[1]
	}
	move := k.Begin(slot, to)
	move.Some(1)
	save("on its way", Any, 1)
	for move.Some(1) > 0 {
	}
	move.End()
	if e, err := s.Get(t.Context(), 1, id); err != nil || e.Version != 1 {
		t.Errorf("what was refused has version %d, %v", e.Version, err)
	}
	save("afterwards", Any, -1)
	for n := range partitions {
		owns(t, s, n, id, payload)
	}
}

// owns takes and commits all visits of a partition of two entities, as its owner.
func owns(t *testing.T, s *Set, n int, id, payload string) {
	t.Helper()
	if err := s.client.Redis().HSet(t.Context(), s.place(n).Own, "tenure", "o").Err(); err != nil {
		t.Fatal(err)
	}
	take := &Take{Partition: n, Fence: "o", Number: 1, MaxBytes: 1 << 20, Asks: []Ask{{Touch, 5}, {"geo", 5}}}
	s.Take(t.Context(), take)
	commit := &Commit{Partition: n, Fence: "o"}
	for _, v := range take.Visits {
		commit.Ends = append(commit.Ends, End{ID: v.ID, Number: 1, Mode: Put, Version: v.Entity.Version, Payload: v.Entity.Payload, Settle: []Settlement{{Touch, Ends, "", ""}}})
	}
	s.Commit(t.Context(), commit)
	e, err := s.Get(t.Context(), n, id)
	if take.Err != nil || commit.Err != nil || err != nil || e.Payload != payload || len(commit.Ended) != 2 || commit.Ended[0].Outcome != OK || commit.Ended[1].Outcome != OK {
		t.Errorf("partition %d: %v, %v, %v, %d visits, %d ended", n, take.Err, commit.Err, err, len(take.Visits), len(commit.Ended))
	}
}
