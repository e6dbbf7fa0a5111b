package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestForeignGroups(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		m, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 2, MaxLen: 10, Processors: []string{"printer"}})
		e.must(err)
		e.must(e.send(e.ctx(), 0, 6).Err)
		p := e.owner("printer", 6, 6)
		for _, name := range []string{"printer", "billing", GroupName("mailer", bob)} {
			e.must(e.raw.XGroupCreate(e.ctx(), p.Log, name, "0").Err())
		}
		e.deliver(p.Log, "billing", 4, 1)
		var all []string
		for _, entry := range e.raw.XRange(e.ctx(), p.Log, "-", "+").Val() {
			all = append(all, entry.ID)
		}
		got := try(e.ForeignGroups(e.ctx(), "orders", m)).must(t)
		slices.SortFunc(got[0], func(a, b ForeignGroup) int { return strings.Compare(a.Name, b.Name) })
		for i, g := range got[0] {
			if want := []int64{2, 6}[i]; g.Lag != want && g.Lag != -1 {
				t.Errorf("%s: lag %d, want %d, or -1 where the server does not know it", g.Name, g.Lag, want)
			}
			got[0][i].Lag = 0
			if g.Delivered == "0" {
				got[0][i].Delivered = "0-0"
			}
		}
		equal(t, "of partition 0", got[0], []ForeignGroup{
			{Name: "billing", Delivered: all[3], Needs: all[1], Pending: 3},
			{Name: GroupName("mailer", bob), Processor: "mailer", Delivered: "0-0", Needs: "0-1"},
		})
		equal(t, "of partition 1", len(got[1]), 0)
		e.must(e.DropGroup(e.ctx(), "orders", 2, "billing"))
		got = try(e.ForeignGroups(e.ctx(), "orders", m)).must(t)
		equal(t, "left", len(got[0]), 1)
	})
}

// Python resumes behind everything acked without a gap, whatever position its group had before.
func TestLeaveToPython(t *testing.T) {
	for _, tt := range []struct {
		name        string
		read, acked int
		want        int // the first entry that is delivered
	}{
		{"never read", 0, 0, 0},
		{"all acked", 6, 6, 6},
		{"some pending", 5, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				e.bounded(10, OverflowReject, "printer")
				e.must(e.raw.XGroupCreateMkStream(e.ctx(), "__strm:example.orders.0", "printer", "0").Err())
				e.must(e.send(e.ctx(), 0, 7).Err)
				p := e.owner("printer", tt.read, tt.acked)
				if err := e.LeaveToPython(e.ctx(), p, false); !errors.Is(err, ErrHeld) {
					t.Errorf("under an owner: %v, want %v", err, ErrHeld)
				}
				e.must(e.Unlock(e.ctx(), p, tenure(alice, 1)))
				e.must(e.LeaveToPython(e.ctx(), p, false))
				e.must(e.LeaveToPython(e.ctx(), p, false))
				groups := e.raw.XInfoGroups(e.ctx(), p.Log).Val()
				if len(groups) != 1 || groups[0].Name != "printer" || groups[0].Pending != 0 {
					t.Fatalf("%+v, want only the plain group", groups)
				}
				r := e.NewReader()
				defer r.Close()
				read := try(r.Read(e.ctx(), "printer", "1", []string{p.Log}, 10, time.Second)).must(t)
				equal(t, "entries for Python", len(read[0].Entries), 7-tt.want)
			})
		})
	}
}

// Python finds a group in an empty partition, too: it looks only at the last partition.
func TestLeaveAnEmptyPartitionToPython(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(e.LeaveToPython(e.ctx(), e.Partition("orders", "printer", 0), false))
		equal(t, "groups", len(e.raw.XInfoGroups(e.ctx(), "__strm:example.orders.0").Val()), 1)
	})
}

func TestNeighboursOfAnID(t *testing.T) {
	e := realEnv(t)
	const most = "18446744073709551615"
	for _, tt := range []struct{ id, following string }{
		{"0-1", "0-2"}, {"5-9", "5-10"}, {"5-" + most, "6-0"}, {"999-" + most, "1000-0"}, {"1767225600000-0", "1767225600000-1"},
		{most + "-" + "18446744073709551614", most + "-" + most},
	} {
		got, err := e.raw.Eval(e.ctx(), source("prelude", "retention")+"return { following(ARGV[1]), preceding(ARGV[2]) }", nil, tt.id, tt.following).StringSlice()
		e.must(err)
		equal(t, "neighbours of "+tt.id, got, []string{tt.following, tt.id})
	}
}
