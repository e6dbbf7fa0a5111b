package rebalance

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// A cordon and a pin go with the first change of the membership a day after their worker left;
// those of a worker that came back within the day stay.
func TestWishesForWorkersThatAreGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 8, 10*time.Second)
		n := &node{c: c, ctx: t.Context(), id: "me", lease: map[int]time.Time{}, busy: map[int]string{}}
		change := func(what func(Group) Group) Group {
			t.Helper()
			g, err := Steer(t.Context(), n, func(g Group) (Group, error) { return what(g), nil })
			if err != nil {
				t.Fatal(err)
			}
			if stored := c.group(); !reflect.DeepEqual(stored.Gone, g.Gone) {
				t.Errorf("stored as gone: %v, want %v", stored.Gone, g.Gone)
			}
			return g
		}
		join := func(worker string) func(Group) Group {
			return func(g Group) Group { return g.Join(worker+"1", Executor{Worker: worker, Expiry: c.expiry}, 8, "p") }
		}
		leave := func(worker string) func(Group) Group {
			return func(g Group) Group { return g.Leave("p", worker+"1") }
		}
		for _, worker := range []string{"a", "b", "pod-x"} {
			change(join(worker))
		}
		change(func(g Group) Group { return g.Cordon("p", "pod-x", time.Now()) })
		g := change(func(g Group) Group { g, _ = g.Pin("p", "b", 3); return g })
		if g.Gone != nil {
			t.Errorf("gone: %v", g.Gone)
		}
		gone := time.Now()
		change(leave("pod-x"))
		g = change(leave("b"))
		if len(g.Gone) != 2 || g.Gone["pod-x"].Sub(gone) > time.Minute {
			t.Errorf("gone: %v", g.Gone)
		}
		time.Sleep(ForgetAfter - time.Hour)
		g = change(join("b"))
		if len(g.Gone) != 1 || g.Pins[3] != "b" || len(g.Cordons) != 1 {
			t.Errorf("after 23 h: %+v", g)
		}
		change(leave("b"))
		time.Sleep(2 * time.Hour)
		g = change(join("c"))
		if len(g.Cordons) != 0 || g.Pins[3] != "b" || len(g.Gone) != 1 {
			t.Errorf("after 25 h: %+v", g)
		}

		// No worker counts as gone while there is no member.
		change(func(g Group) Group { return g.Leave("p", "a1", "c1") })
		time.Sleep(3 * ForgetAfter)
		change(join("a"))
		if g = change(join("b")); g.Pins[3] != "b" || g.Gone != nil || !reflect.DeepEqual(g.Executors["b1"].Partitions[:1], []int{3}) {
			t.Errorf("after a standstill: %+v", g)
		}
	})
}
