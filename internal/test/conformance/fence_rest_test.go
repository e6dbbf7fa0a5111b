package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/rebalance"
)

// finish waits for rest, ends the workers, and checks the history.
func (r *rig) finish() *history.Report {
	r.t.Helper()
	r.rest()
	for _, m := range r.members {
		if !m.end(patience) {
			r.t.Fatalf("worker %s does not end\n%s", m.name, r.unrest())
		}
		if m.err != nil {
			r.t.Errorf("worker %s: Run returned %v", m.name, m.err)
		}
	}
	for p := range r.partitions {
		if left := r.unrestOf(p, ""); left != "" {
			r.t.Errorf("after the workers ended: %s", left)
		}
		if holder := r.get(r.lock(p)); holder != "" {
			r.t.Errorf("partition %d is still locked by %s after the workers ended", p, holder)
		}
	}
	return r.judge()
}

// rest waits until live workers have nothing left to do.
func (r *rig) rest() {
	r.t.Helper()
	r.eventually("at rest", func() bool { return r.unrest() == "" })
}

// unrest describes why the partitions are not at rest. At rest each is assigned to the executor
// that holds its lock, whose group is the only one, has read everything, and has nothing pending.
func (r *rig) unrest() string {
	g := r.group()
	owner := map[int]string{}
	for id, e := range g.Executors {
		for _, p := range e.Partitions {
			owner[p] = id
		}
	}
	var out []string
	for p := range r.partitions {
		switch holder := r.holder(p); {
		case owner[p] == "":
			out = append(out, fmt.Sprintf("partition %d is not assigned", p))
		case owner[p] != holder:
			out = append(out, fmt.Sprintf("partition %d is assigned to %s and locked by %q", p, owner[p], holder))
		default:
			if s := r.unrestOf(p, holder); s != "" {
				out = append(out, s)
			}
		}
	}
	return strings.Join(out, "\n")
}

// unrestOf checks the group of one partition: the owner's, unless "".
func (r *rig) unrestOf(p int, owner string) string {
	ctx := context.Background()
	ours := r.groupsOf(p)
	if len(ours) != 1 {
		return fmt.Sprintf("partition %d has %d groups: %v", p, len(ours), ours)
	}
	group := ours[0]
	last := "0-0"
	if info, err := r.rdb.XInfoStream(ctx, r.partition(p)).Result(); err == nil {
		last = info.LastGeneratedID
	}
	pending, err := r.rdb.XPending(ctx, r.partition(p), group.Name).Result()
	switch {
	case err != nil:
		return fmt.Sprintf("partition %d: XPENDING: %v", p, err)
	case owner != "" && group.Name != store.GroupName(r.processor, owner):
		return fmt.Sprintf("partition %d has group %s, its owner is %s", p, group.Name, owner)
	case pending.Count != 0:
		return fmt.Sprintf("partition %d: %d events pending, from %s to %s", p, pending.Count, pending.Lower, pending.Higher)
	case group.LastDeliveredID != last:
		return fmt.Sprintf("partition %d is delivered up to %s of %s", p, group.LastDeliveredID, last)
	}
	return ""
}

func (r *rig) groupsOf(p int) []redis.XInfoGroup {
	groups := r.rdb.XInfoGroups(context.Background(), r.partition(p)).Val()
	prefix := r.processor + "@"
	return slices.DeleteFunc(groups, func(g redis.XInfoGroup) bool {
		id, ok := strings.CutPrefix(g.Name, prefix)
		return !ok || len(id) != store.ExecutorIDLength || strings.Contains(id, "@")
	})
}

// judge adds the contents of the partitions and checks the history.
func (r *rig) judge() *history.Report {
	r.t.Helper()
	for p := range r.partitions {
		entries, err := r.rdb.XRange(context.Background(), r.partition(p), "-", "+").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range entries {
			var j job
			data, _ := e.Values["data"].(string)
			if err := codec.MsgPack.Decode([]byte(data), &j); err != nil {
				r.t.Fatalf("partition %d entry %s: %v", p, e.ID, err)
			}
			if err := r.log.As("found").Write(history.Record{
				Kind: history.Appended, Stream: r.stream, Partition: p, IDs: []string{e.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq},
			}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	report := history.Check(r.records(), history.Options{Processors: []string{r.processor}})
	if !report.OK {
		r.t.Errorf("%v", report)
	}
	return report
}

func (r *rig) group() rebalance.Group {
	g, err := rebalance.Parse([]byte(r.get(r.membership())))
	if err != nil {
		r.t.Errorf("stored membership: %v", err)
	}
	return g
}

// executor returns the ID under which a worker is a member, "" if it is none.
func (r *rig) executor(m *member) string {
	for id, e := range r.group().Executors {
		if e.Worker == m.name {
			return id
		}
	}
	return ""
}

// ready waits until a worker is a member and owns its assignment.
func (r *rig) ready(m *member) (executor string) {
	r.t.Helper()
	r.eventually("worker "+m.name+" is ready", func() bool {
		select {
		case <-m.done:
			r.t.Fatalf("worker %s ended: %v", m.name, m.err)
		default:
		}
		return m.app.Ready() == nil
	})
	return r.executor(m)
}

// away makes a phantom join and waits until the worker has released the partition assigned to it.
// back makes the phantom leave and waits until the worker has the partition again. Of two
// partitions always the same one moves.
func (r *rig) away() (f *phantom, partition int) {
	r.t.Helper()
	f = r.join()
	partition = f.assigned()[0]
	r.eventually("the lock is released", func() bool { return r.get(r.lock(partition)) == "" })
	return f, partition
}

func (r *rig) back(m *member, f *phantom, partition int) {
	r.t.Helper()
	f.leave()
	id := r.executor(m)
	r.eventually("the partition is back", func() bool { return r.holder(partition) == id && m.app.Ready() == nil })
}

// undisturbed checks that no function of a worker lost its partition, and that its executor ID is
// the same.
func (r *rig) undisturbed(m *member, executor string) {
	r.t.Helper()
	if n := m.lost.Load(); n > 0 {
		r.t.Errorf("worker %s: %d functions saw ErrLost", m.name, n)
	}
	if now := r.executor(m); now != executor {
		r.t.Errorf("worker %s is now executor %q, it was %q", m.name, now, executor)
	}
}

// finishUndisturbed is finish after undisturbed.
func (r *rig) finishUndisturbed(m *member, executor string) *history.Report {
	r.t.Helper()
	r.rest()
	r.undisturbed(m, executor)
	return r.finish()
}

// A phantom is a member that exists only in the membership and its heartbeat.
type phantom struct {
	r  *rig
	id string
}

// join adds a phantom. It never takes its assignment.
func (r *rig) join() *phantom {
	r.t.Helper()
	return r.joinAs(hour)
}

// joinAs is join with an expiry, which others take for the longest life of its heartbeat.
func (r *rig) joinAs(expiry time.Duration) *phantom {
	r.t.Helper()
	f := &phantom{r, store.NewExecutorID()}
	if err := r.rdb.Set(context.Background(), r.keys.Beat(r.stream, r.processor, f.id), "1", hour).Err(); err != nil {
		r.t.Fatal(err)
	}
	f.change(rebalance.Joined, func(g rebalance.Group) rebalance.Group {
		return g.Join(f.id, rebalance.Executor{Worker: "phantom", Expiry: expiry}, r.partitions, r.salt())
	})
	return f
}

func (f *phantom) leave() {
	f.r.t.Helper()
	f.change(rebalance.Left, func(g rebalance.Group) rebalance.Group { return g.Leave(f.r.salt(), f.id) })
}

func (f *phantom) assigned() []int { return f.r.group().Executors[f.id].Partitions }

func (f *phantom) change(kind rebalance.Kind, fn func(rebalance.Group) rebalance.Group) {
	f.r.t.Helper()
	store := f.r.client.Group(f.r.stream, f.r.processor)
	ctx := context.Background()
	f.r.eventually("membership written", func() bool {
		old, err := store.Load(ctx)
		if err != nil {
			return false
		}
		g, err := rebalance.Parse(old)
		if err != nil {
			return false
		}
		next := fn(g)
		ok, err := store.Swap(ctx, old, next.Encode())
		if !ok || err != nil {
			return false
		}
		return store.Announce(ctx, rebalance.Message{Kind: kind, Executor: f.id, Generation: next.Generation}) == nil
	})
}

func (r *rig) salt() string { return r.stream + "/" + r.processor }
