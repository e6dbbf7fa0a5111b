package rebalance

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// workers returns members whose IDs are the names of their workers and a number.
func workers(names ...string) (out []member) {
	for i, name := range names {
		out = append(out, member{ID: fmt.Sprint(name, "-", i), Worker: name})
	}
	return out
}

func TestWishesByExample(t *testing.T) {
	tests := []struct {
		name    string
		members []member
		n       int
		w       wishes
		want    map[string][]int
	}{
		{"a pin", workers("a", "b"), 4, wishes{Pins: map[int]string{0: "b"}}, map[string][]int{"a-0": {1, 2}, "b-1": {0, 3}}},
		{"more pins than a share", workers("a", "b"), 4, wishes{Pins: map[int]string{0: "b", 1: "b", 2: "b"}}, map[string][]int{"a-0": {3}, "b-1": {0, 1, 2}}},
		{"pinned to an absent worker", workers("a"), 2, wishes{Pins: map[int]string{0: "b", 7: "a"}}, map[string][]int{"a-0": {0, 1}}},
		{"a cordon", workers("a", "b", "c"), 4, wishes{Cordoned: []string{"b"}}, map[string][]int{"a-0": {0, 1}, "b-1": {}, "c-2": {2, 3}}},
		{"a pin in a cordon", workers("a", "b"), 3, wishes{Pins: map[int]string{2: "b"}, Cordoned: []string{"b"}}, map[string][]int{"a-0": {0, 1}, "b-1": {2}}},
		{"all cordoned", workers("a", "b"), 2, wishes{Cordoned: []string{"a", "b"}}, map[string][]int{"a-0": {0}, "b-1": {1}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := assign(map[string][]int{test.members[0].ID: {0, 1}}, test.members, test.n, "x", test.w)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// wishing returns random members, some of one worker, and wishes.
func wishing(r *rand.Rand, n int) (members []member, w wishes) {
	for i := range 1 + r.IntN(6) {
		members = append(members, member{ID: fmt.Sprint("m", r.IntN(1000), "-", i), Worker: fmt.Sprint("w", r.IntN(5))})
	}
	w.Pins = map[int]string{}
	for range r.IntN(n + 1) {
		w.Pins[r.IntN(n+2)] = fmt.Sprint("w", r.IntN(6))
	}
	for range r.IntN(3) {
		w.Cordoned = append(w.Cordoned, fmt.Sprint("w", r.IntN(6)))
	}
	return members, w
}

func TestWishesProperties(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 1 + r.IntN(24)
		members, w := wishing(r, n)
		prev := assign(nil, members, n, "salt", wishes{})
		next := assign(prev, members, n, "salt", w)
		if err := granted(next, members, n, w); err != nil {
			t.Fatalf("seed %d: %v: %v of %v, %+v", seed, err, next, members, w)
		}
		if again := assign(next, members, n, "salt", w); !reflect.DeepEqual(again, next) {
			t.Fatalf("seed %d: assigned again it differs: %v, %v", seed, next, again)
		}
		shuffled := slices.Clone(members)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := assign(prev, shuffled, n, "salt", w); !reflect.DeepEqual(again, next) {
			t.Fatalf("seed %d: the order of members matters: %v, %v", seed, next, again)
		}
	}
}

// granted checks that an assignment is complete, grants the wishes, and is otherwise as even as
// possible.
func granted(next map[string][]int, members []member, n int, w wishes) error {
	owner, workerOf, there := map[int]string{}, map[string]string{}, map[string]bool{}
	open := 0
	for _, m := range members {
		workerOf[m.ID], there[m.Worker] = m.Worker, true
		if !slices.Contains(w.Cordoned, m.Worker) {
			open++
		}
	}
	pins := map[string]int{}
	for id, list := range next {
		for _, p := range list {
			if owner[p] != "" {
				return fmt.Errorf("partition %d goes to %s and %s", p, owner[p], id)
			}
			owner[p] = id
			if worker := w.Pins[p]; there[worker] {
				if workerOf[id] != worker {
					return fmt.Errorf("partition %d is pinned to %s", p, worker)
				}
				pins[id]++
			}
		}
	}
	if len(owner) != n {
		return fmt.Errorf("%d of %d partitions are assigned", len(owner), n)
	}
	for _, a := range members {
		cordoned := open > 0 && slices.Contains(w.Cordoned, a.Worker)
		if cordoned && len(next[a.ID]) > pins[a.ID] {
			return fmt.Errorf("%s is cordoned", a.ID)
		}
		for _, b := range members {
			if open > 0 && slices.Contains(w.Cordoned, b.Worker) || cordoned {
				continue
			}
			if len(next[a.ID]) > len(next[b.ID])+1 && len(next[a.ID]) > pins[a.ID] {
				return fmt.Errorf("%s has %d, %s %d", a.ID, len(next[a.ID]), b.ID, len(next[b.ID]))
			}
		}
	}
	return nil
}

func TestPinsAndCordonsAreStored(t *testing.T) {
	at := time.UnixMilli(1700000000000)
	g := Group{}.Join("a1", Executor{Worker: "a", Expiry: time.Second}, 4, "x").Join("b1", Executor{Worker: "b", Expiry: time.Second}, 4, "x")
	g, err := g.Pin("x", "b", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Executors["b1"].Partitions; !slices.Equal(got, []int{0, 1}) {
		t.Errorf("pinned: %v", got)
	}
	g = g.Cordon("x", "a", at)
	again, err := Parse(g.Encode())
	if err != nil || !reflect.DeepEqual(again.Pins, g.Pins) || !again.Cordons["a"].Equal(at) || again.Cordons["a"].Location() != time.UTC || len(again.Executors["a1"].Partitions) != 0 {
		t.Fatalf("%+v, %v", again, err)
	}
	// Wishes outlive the members, and apply again when their worker comes back.
	again = again.Leave("x", "a1", "b1").Join("c1", Executor{Worker: "c", Expiry: time.Second}, 4, "x").Join("b2", Executor{Worker: "b", Expiry: time.Second}, 4, "x")
	if got := again.Executors["b2"].Partitions; !slices.Contains(got, 0) || !slices.Contains(got, 1) {
		t.Errorf("back again: %v", got)
	}
	again = again.Cordon("x", "a", time.Time{})
	if again, err = again.Pin("x", "", 0, 1); err != nil || len(again.Pins)+len(again.Cordons) != 0 {
		t.Errorf("removed: %+v, %v", again, err)
	}
	// A stream of fewer partitions under the same name.
	if fewer, err := Parse(g.Join("c1", Executor{Worker: "c", Expiry: time.Second}, 1, "x").Encode()); err != nil || len(fewer.Pins) != 1 {
		t.Errorf("%+v, %v", fewer, err)
	}
	if _, err := again.Pin("x", "b", 4); err == nil {
		t.Error("a pin of a partition that is not there")
	}
	if _, err := Parse([]byte(`{"v":1,"generation":1,"partitions":2,"executors":{},"pins":{"2":"a"}}`)); err == nil {
		t.Error("a stored pin of a partition that is not there")
	}
}

// The first Remove removes all ended members and leaves nothing for the others. Living members
// stay.
func TestRemoveTakesTheDeadAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 8, 10*time.Second)
		n := &node{c: c, ctx: t.Context(), id: "me", lease: map[int]time.Time{}, busy: map[int]string{}}
		g := Group{}
		for _, id := range []string{"a", "b", "c", "d"} {
			g = g.Join(id, Executor{Worker: id, Expiry: c.expiry}, 8, "p")
		}
		c.beats["d"] = time.Now().Add(time.Hour)
		c.value = g.Encode()
		for _, id := range []string{"a", "b", "c"} {
			if err := Remove(t.Context(), n, "p", id); err != nil {
				t.Errorf("Remove(%s): %v", id, err)
			}
		}
		after := c.group()
		if ids := after.IDs(); len(ids) != 1 || ids[0] != "d" || len(after.Executors["d"].Partitions) != 8 {
			t.Errorf("members %v", after.Executors)
		}
		if after.Generation != g.Generation+1 {
			t.Errorf("%d changes, want one", after.Generation-g.Generation)
		}
	})
}
