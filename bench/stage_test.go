package main

import (
	"fmt"
	"testing"
)

func TestEntitiesHaveTheSizeThatWasAskedFor(t *testing.T) {
	for _, size := range []int{64, 200, 100 << 10} {
		blob, err := blobs.payload(entityID(7), size)
		if err != nil || len(blob) != size {
			t.Errorf("blob: %d bytes, %v, want %d", len(blob), err, size)
		}
		listing, err := listings.payload(entityID(7), size)
		if err != nil || len(listing) < size-1 || len(listing) > size+4 {
			t.Errorf("listing: %d bytes, %v, want %d", len(listing), err, size)
		}
	}
}

// Both sides visit every entity once, and leave nothing behind; what is left behind is an error.
func TestSetsAreVisited(t *testing.T) {
	b := startBench(t)
	task := b.entities(600)
	task.URL, task.Partitions = b.url, 4
	for _, side := range []Side{task.ofSet("set", "runnel-stage", "blob"), task.ofSet("msgpack", "runnel-stage", "msgpack"), task.ofSet("hand", "bare-stage", "blob")} {
		if r, err := b.run(t.Context(), side); err != nil || r["rate"] <= 0 || r["server"] <= 0 {
			t.Errorf("%s: %v, %v", side.Name, r, err)
		}
		for n := range task.Partitions {
			version := b.rdb.Get(t.Context(), task.setKey("entseq", n)).Val()
			if want := fmt.Sprint(2 * len(task.shares(0, task.Events)[n])); version != want {
				t.Errorf("%s: partition %d has stored %s versions, want %s", side.Name, n, version, want)
			}
		}
	}
	if err := fillSet(t.Context(), b, &task); err != nil {
		t.Fatal(err)
	}
	if err := task.settled(t.Context()); err == nil {
		t.Error("visits that are left went unnoticed")
	}
}
