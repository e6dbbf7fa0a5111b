package conformance

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const maxSequence = "18446744073709551615"

// From a takeover on, the old owner can read nothing and ack nothing. By position a read has no effect, and is
// not ended.
func TestOldOwnerIsFenced(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, calm)
	r.rdb.XGroupCreateMkStream(t.Context(), r.partition(0), "other", "0")
	old := r.ghost(0, 500*time.Millisecond)
	ids := r.add(0, 3)
	got := old.read(10)
	if len(got) != 3 {
		t.Fatalf("the old owner reads %v, want 3 events", got)
	}
	ended := make(chan error, 1)
	if byPosition {
		ended <- redisconn.ErrNoGroup
	} else {
		go func() {
			_, err := old.readNew(10, 5*time.Second)
			ended <- err
		}()
	}
	m, id := r.startReady("w1")
	r.await(0, ids...)
	select {
	case err := <-ended:
		if !errors.Is(err, redisconn.ErrNoGroup) {
			t.Errorf("the blocked read of the old owner ended with %v, want ErrNoGroup", err)
		}
	case <-time.After(time.Second):
		t.Error("the blocked read of the old owner goes on after the takeover")
	}
	if err := old.done(ids); !errors.Is(err, store.ErrFenced) {
		t.Errorf("an ack of the old owner: %v, want ErrFenced", err)
	}
	epoch := r.rdb.HGet(t.Context(), r.own(0), "epoch").Val()
	if !(epoch > fmt.Sprint(old.epoch)) {
		t.Errorf("epoch %s follows epoch %d", epoch, old.epoch)
	}
	r.finishUndisturbed(m, id)
}

// Groups of earlier owners.
const (
	firstOwner  = "check@aaaaaaaaaaaaaaaa"
	secondOwner = "check@bbbbbbbbbbbbbbbb"
)

// floors are the committed positions that earlier owners left.
var floors = []struct {
	name   string
	events []string
	// leave makes the groups of earlier owners.
	leave func(r *rig, group func(name, floor string, read, acked int))
	done  int // so many of the first events were processed already
}{
	{"empty", nil, nil, 0},
	{"one owner, nothing pending", []string{"5-1", "5-2", "6-0"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 2, 2)
	}, 2},
	{"one owner, two of three pending", []string{"5-1", "5-2", "6-0", "7-0"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 3, 1)
	}, 1},
	{"all pending", []string{"5-1", "5-2"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 2, 0)
	}, 0},
	{"the largest sequence is pending", []string{"5-" + maxSequence, "6-0"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 1, 0)
	}, 0},
	{"the largest sequence is acked", []string{"5-18446744073709551614", "5-" + maxSequence, "6-0"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 3, 2)
	}, 2},
	{"two owners, the first is behind", []string{"5-1", "5-2", "5-3"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 1, 1)
		group(secondOwner, "0", 3, 3)
	}, 1},
	{"two owners, the second is behind", []string{"5-1", "5-2", "5-3"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 3, 3)
		group(secondOwner, "0", 1, 1)
	}, 1},
	{"two owners apart by less than a double tells", []string{"5-18446744073709551613", "5-18446744073709551614", "5-" + maxSequence},
		func(r *rig, group func(string, string, int, int)) {
			group(firstOwner, "0", 3, 3)
			group(secondOwner, "0", 2, 2)
		}, 2},
	{"two owners, one more digit", []string{"9-1", "10-1", "10-2"}, func(r *rig, group func(string, string, int, int)) {
		group(firstOwner, "0", 2, 2)
		group(secondOwner, "0", 1, 1)
	}, 1},
}

// An ownership begins at the position that earlier ones left in the partition.
func TestFloor(t *testing.T) {
	srv := redistest.Start(t)
	for i, tc := range floors {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := rigOn(t, srv, fmt.Sprint("floor", i), streamName, processorName, 1, calm)
			log := r.partition(0)
			for i, id := range tc.events {
				r.addID(0, id)
				if i < tc.done {
					r.processed(0, id, int64(i+1))
				}
			}
			if tc.leave != nil {
				tc.leave(r, func(name, floor string, read, acked int) { r.leaveGroup(log, name, floor, read, acked) })
			}
			m, id := r.startReady("w1")
			r.await(0, tc.events[tc.done:]...)
			r.finishUndisturbed(m, id)
		})
	}
}

// leaveGroup makes a group that has read and acked so many entries.
func (r *rig) leaveGroup(log, name, floor string, read, acked int) {
	r.t.Helper()
	ctx := r.t.Context()
	if err := r.rdb.XGroupCreate(ctx, log, name, floor).Err(); err != nil {
		r.t.Fatal(err)
	}
	got, err := r.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: name, Consumer: "runnel", Streams: []string{log, ">"}, Count: int64(read)}).Result()
	if err != nil || len(got[0].Messages) != read {
		r.t.Fatalf("read %d: %v %v", read, got, err)
	}
	for _, e := range got[0].Messages[:acked] {
		if err := r.rdb.XAck(ctx, log, name, e.ID).Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// processed records that an earlier owner completed an event.
func (r *rig) processed(partition int, id string, seq int64) {
	r.t.Helper()
	r.iterateAs("earlier", partition, 1, id, seq)
}

// Names that a pattern, or a careless split, would confuse with others.
func TestNames(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	r := rigOn(t, srv, "my-app", "a.b", "my-proc", 1, calm)
	twin := rigOn(t, srv, "my-app", "a", "b", 1, calm)
	foreign := []string{
		"a@b@x", "my-proc@short", "my-proc@aaaaaaa@aaaaaaaa", "my-proc@aaaaaaaaaaaaaaaaa", "myxproc@aaaaaaaaaaaaaaaa",
		"my-pro@aaaaaaaaaaaaaaaaa", "mymy-proc@aaaaaaaaaaaaaaaa", "@aaaaaaaaaaaaaaaa", "my-proc@",
		"myproc@aaaaaaaaaaaaaaaa", "mproc@aaaaaaaaaaaaaaaa",
	}
	r.processed(0, r.add(0, 2)[0], 1)
	r.leaveGroup(r.partition(0), "my-proc@bbbbbbbbbbbbbbbb", "0", 2, 1)
	twin.add(0, 2)
	for _, name := range foreign {
		r.leaveGroup(r.partition(0), name, "0", 1, 0)
	}
	m, other := r.start("w1"), twin.start("w2")
	id, otherID := r.ready(m), twin.ready(other)
	r.await(0, r.add(0, 2)...)
	twin.await(0, twin.add(0, 2)...)
	r.rest()
	twin.rest()
	left := map[string]int64{}
	for _, g := range r.rdb.XInfoGroups(t.Context(), r.partition(0)).Val() {
		left[g.Name] = g.Pending
	}
	for _, name := range foreign {
		if pending, ok := left[name]; !ok || pending != 1 {
			t.Errorf("group %s: there %v with %d pending, want it untouched with 1", name, ok, pending)
		}
	}
	r.undisturbed(m, id)
	twin.undisturbed(other, otherID)
	r.finish()
	twin.finish()
}

// The partition is replaced by another one with lower entry IDs: positions of the old one do not
// apply to it.
func TestPartitionReplaced(t *testing.T) {
	cases := []struct {
		name    string
		replace func(r *rig)
		events  []string
		ahead   bool // by position the last may be processed before the others, since a read needs no group
	}{
		{"flushed, lower IDs", func(r *rig) { r.rdb.FlushAll(r.t.Context()) }, []string{"1-1", "1-2", "2-0"}, false},
		{"deleted, lower IDs", func(r *rig) { r.rdb.Del(r.t.Context(), r.partition(0)) }, []string{"1-1", "1-2", "2-0"}, false},
		{"deleted, more of lower IDs", func(r *rig) { r.rdb.Del(r.t.Context(), r.partition(0)) },
			[]string{"1-1", "1-2", "2-0", "2-1", "3-0", "4-0", "5-0"}, false},
		{"deleted, lower IDs, then higher ones", func(r *rig) { r.rdb.Del(r.t.Context(), r.partition(0)) }, []string{"1-1", "1-2", "9999999999999-0"}, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 1, time.Second)
			m := r.start("w1")
			r.ready(m)
			ids := r.add(0, 5)
			r.await(0, ids...)
			r.rest()
			r.eventually("the committed position is stored", func() bool {
				return r.rdb.HGet(t.Context(), r.own(0), "floor").Val() == ids[len(ids)-1]
			})
			r.fault("", "flush")
			// In one step: the owner must not see it without its new events.
			r.replace(tc.replace, tc.events)
			r.await(0, tc.events...)
			r.ready(m)
			r.await(0, r.addID(0, "99999999999999-0"))
			if byPosition && tc.ahead {
				r.rest()
				return
			}
			r.finish()
		})
	}
}

// replace holds the worker's traffic, so that it sees the new partition as a whole.
func (r *rig) replace(replace func(*rig), events []string) {
	for _, m := range r.members {
		m.proxy.Pause()
		defer m.proxy.Resume()
	}
	replace(r)
	for _, id := range events {
		r.addID(0, id)
	}
}

// A dead executor's lock lives an hour, as after a step of the server's clock.
func TestDeadOwnersLock(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 2*time.Second)
	r.rdb.Set(t.Context(), r.lock(0), "aaaaaaaaaaaaaaaa:0000000000000001", hour)
	began := time.Now()
	m := r.start("w1")
	r.await(0, r.add(0, 1)...)
	t.Logf("taken over after %v, at a lock expiry of 2s", time.Since(began).Round(time.Millisecond))
	r.undisturbed(m, r.ready(m))
	r.finish()
}

func TestDeadMembersHeartbeat(t *testing.T) {
	r := newRig(t, 2, time.Second)
	m, id := r.startReady("w1")
	dead := r.joinAs(time.Second)
	p := dead.assigned()[0]
	r.eventually("the partition is released", func() bool { return r.get(r.lock(p)) == "" })
	began := time.Now()
	r.rdb.Set(t.Context(), r.lock(p), dead.id+":0000000000000001", hour)
	r.await(p, r.add(p, 1)...)
	t.Logf("found dead and taken over after %v, at a lock expiry of 1s", time.Since(began).Round(time.Millisecond))
	if slices.Contains(r.group().IDs(), dead.id) {
		t.Error("the dead executor is still a member")
	}
	r.finishUndisturbed(m, id)
}
