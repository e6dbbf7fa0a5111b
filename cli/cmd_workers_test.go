package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/rebalance"
)

func (s *shop) ownedBy() map[string][]int {
	owned := map[string][]int{}
	for _, p := range s.processor().Partitions {
		owned[p.Worker] = append(owned[p.Worker], p.Partition)
	}
	return owned
}

// pair is a shop with two workers, w1 and w2, that share four partitions.
func pair(t *testing.T) *shop {
	t.Helper()
	s := newShop(t, &runnel.StreamOptions{Partitions: 4, KeyField: "customer"})
	s.handled()
	t.Setenv("RUNNEL_WORKER_NAME", "w1")
	one := s.start("worker")
	eventually(t, "w1 is ready", func() bool { return s.app.Ready() == nil })
	t.Setenv("RUNNEL_WORKER_NAME", "w2")
	other := shopAt(t, s.url, s.rdb, &runnel.StreamOptions{Partitions: 4, KeyField: "customer"})
	other.handled()
	two := other.start("worker")
	eventually(t, "w2 has its share", func() bool { return len(s.ownedBy()["w2"]) == 2 })
	t.Cleanup(func() {
		one.stop()
		two.stop()
	})
	return s
}

func TestDrainTakesAllPartitions(t *testing.T) {
	s := pair(t)
	// Drained workers that are gone do not count.
	client := s.client()
	for _, gone := range []string{"old1", "old2"} {
		g := client.Group("orders", "printer")
		if _, err := rebalance.Steer(t.Context(), g, func(g rebalance.Group) (rebalance.Group, error) {
			return g.Cordon(rebalance.Salt("orders", "printer"), gone, time.Now()), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	answer := s.untyped("workers", "drain", "w1", "--output", "json")
	if strings.Contains(answer.out, "null") {
		t.Errorf("null without pins: %s", answer.out)
	}
	told := parse[[]admin.Assignment](t, answer)
	if got, want := told[0].Cordons["w1"], s.processor().Cordons["w1"]; got != want || got.Location() != time.UTC {
		t.Errorf("drained since %v, in status %v", got, want)
	}
	s.untyped("workers", "drain", "w1", "--wait").want(t, 0, "worker w1 gets no partitions of 1 processor any more\n", "")
	if owned := s.ownedBy(); len(owned["w2"]) != 4 || len(owned["w1"]) != 0 {
		t.Errorf("drained: %v", owned)
	}
	s.run("workers", "ls").matches(t, `(?m)^orders/printer +w1 .* none +none +- +\S+ ago$`)
	s.run("status", "orders").matches(t, `(?m)^worker w1 is drained since 20\S+Z; it ends with workers undrain w1$`)
	s.run("status", "orders").matches(t, `(?m)^worker old1 is drained since 20\S+Z; it ends with workers undrain old1; the worker is gone since 20\S+Z, and this is forgotten from 20\S+Z on$`)
	s.run("workers", "ls").matches(t, `(?m)^orders/printer: worker old1 is drained since 20\S+Z; .*; the worker is gone since 20\S+Z`)
	of := s.processor()
	if told := strings.Join(processorDetail(&inspect.AppState{}, &of), "\n"); !strings.Contains(told, "; the worker is gone since") {
		t.Errorf("top shows %s", told)
	}
	s.send(8)
	eventually(t, "all is acked", func() bool { return s.processor().Totals.Lag == 0 })
	members := parse[[]listedMember](t, s.run("workers", "ls", "--output", "json"))
	if len(members) != 2 || members[0].Drained == nil || members[1].Drained != nil {
		t.Errorf("%+v", members)
	}
	// If all workers are drained, each keeps its share, and --wait reports that.
	s.untyped("workers", "drain", "w2", "orders/printer").want(t, 0, "worker w2 is drained for 1 processor, and keeps 2 partitions: pinned to it, or every worker is drained\n", "")
	eventually(t, "both have a share", func() bool { return len(s.ownedBy()["w1"]) == 2 })
	s.untyped("workers", "drain", "w2", "--wait").want(t, 1, "", "every worker is drained")
	for _, w := range []string{"w1", "w2"} {
		s.untyped("workers", "undrain", w).want(t, 0, "worker "+w+" gets its share of 1 processor again\n", "")
	}
	eventually(t, "no worker is drained", func() bool {
		return !slices.ContainsFunc(s.processor().Members, func(m inspect.MemberState) bool { return m.Drained != nil }) && len(s.ownedBy()["w1"]) == 2
	})
	s.untyped("processor", "move", "orders/printer", "0", "w1").want(t, 0, "pinned", "")
	s.untyped("workers", "drain", "w1", "--wait").want(t, 3, "worker w1 is drained for 1 processor, and keeps 1 partition: pinned to it", "")
	s.untyped("workers", "drain", "w3").want(t, 1, "", `no worker "w3"; there is w1, w2`)
	s.untyped("workers", "drain").want(t, 2, "", "say a worker")
	s.untyped("workers", "drain", "w1", "orders").want(t, 2, "", "say a worker")
	s.untyped("workers", "drain", "w1", "/printer").want(t, 2, "", "say a worker")
	s.untyped("workers", "undrain", "w1", "--wait").want(t, 2, "", "unknown flag --wait")
}

func TestWorkersLs(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 3})
	s.handled()
	s.untyped("workers", "ls").want(t, 0, "PROCESSOR", "")
	w := s.start("worker")
	eventually(t, "a member that owns all", func() bool {
		list := printed[[]listedMember](s, "workers", "ls")
		return len(list) == 1 && len(list[0].Owned) == 3
	})
	m := printed[[]listedMember](s, "workers", "ls", "orders/printer")[0]
	if m.Stream != "orders" || m.Processor != "printer" || !m.Alive || !slices.Equal(m.Assigned, []int{0, 1, 2}) || !slices.Equal(m.Owned, m.Assigned) {
		t.Errorf("%+v", m)
	}
	r := s.untyped("workers", "ls")
	r.matches(t, `(?m)^orders/printer +\S+ +[a-z2-7]{16} +\S+ ago +expires in \S+ +0-2 +0-2 +- +-$`)
	w.stop().want(t, 0, "", "worker stopped")
	if list := printed[[]listedMember](s, "workers", "ls"); len(list) != 0 {
		t.Errorf("after the end: %+v", list)
	}
	s.untyped("workers", "ls", "nope").want(t, 1, "", `no stream "nope"`)
	s.untyped("workers", "ls", "orders/nope").want(t, 1, "", `no processor "nope"`)
}
