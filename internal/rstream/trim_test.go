package rstream

import (
	"fmt"
	"testing"
)

func TestTrim(t *testing.T) {
	type group struct {
		name  string
		read  int // entries delivered
		acked int // of them, the first ones
	}
	printer, mailer := GroupName("printer", alice), GroupName("mailer", bob)
	both2 := []string{"mailer", "printer"}
	tests := []struct {
		name       string
		entries    int
		size       int64
		processors []string
		groups     []group
		limit      int // at most so many may be removed
		some       bool
		blocked    string
	}{
		{name: "all acked", entries: 1000, size: 300, processors: []string{"printer"}, groups: []group{{name: printer, read: 1000, acked: 1000}}, limit: 700, some: true},
		{name: "not longer than size", entries: 300, size: 300, processors: []string{"printer"}, groups: []group{{name: printer, read: 300, acked: 300}}},
		{name: "pending entries", entries: 1000, size: 300, processors: []string{"printer"}, groups: []group{{name: printer, read: 1000, acked: 400}}, limit: 400, some: true},
		{name: "unread entries", entries: 1000, size: 300, processors: []string{"printer"}, groups: []group{{name: printer, read: 250, acked: 250}}, limit: 250, some: true},
		{name: "nothing read", entries: 1000, size: 300, processors: []string{"printer"}, groups: []group{{name: printer}}},
		{name: "the slowest processor counts", entries: 1000, size: 300, processors: both2,
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: mailer, read: 1000, acked: 200}}, limit: 200, some: true},
		{name: "two groups of a processor", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: GroupName("printer", carol), read: 200, acked: 200}}, limit: 200, some: true},
		{name: "a processor without a group", entries: 1000, size: 300, processors: both2,
			groups: []group{{name: printer, read: 1000, acked: 1000}}, blocked: "mailer"},
		{name: "a plain group is nobody's", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: "printer", read: 1000, acked: 1000}}, blocked: "printer"},
		{name: "foreign groups do not count", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: "printer"}, {name: "x@" + alice}, {name: "printer@a@b4567890123456"}}, limit: 700, some: true},
		{name: "no processors", entries: 1000, size: 300, groups: []group{{name: printer, read: 1000, acked: 1000}}},
	}
	both(t, func(t *testing.T, e *env) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				log := "log:" + tt.name
				e.fill(log, tt.entries)
				for _, g := range tt.groups {
					e.must(e.raw.XGroupCreate(e.ctx(), log, g.name, "0").Err())
					e.deliver(log, g.name, g.read, g.acked)
				}
				got, err := e.Trim(e.ctx(), []TrimRequest{{Log: log, Processors: tt.processors, Size: tt.size}})
				e.must(err)
				left := e.raw.XLen(e.ctx(), log).Val()
				equal(t, "removed", got[0].Removed, int64(tt.entries)-left)
				equal(t, "blocked by", got[0].BlockedBy, tt.blocked)
				if got[0].Removed > int64(tt.limit) || (tt.some && got[0].Removed < int64(tt.limit)-100) {
					t.Errorf("removed %d, want up to %d, and less by a block of 100 at most", got[0].Removed, tt.limit)
				}
			})
		}
	})
}

// fill appends so many entries.
func (e *env) fill(log string, entries int) {
	e.t.Helper()
	p := e.raw.Pipeline()
	for i := range entries {
		p.Do(e.ctx(), "XADD", log, fmt.Sprintf("%d-1", i+1), "n", i)
	}
	_, err := p.Exec(e.ctx())
	e.must(err)
}

// deliver makes a group read entries and ack the first of them.
func (e *env) deliver(log, group string, read, acked int) {
	e.t.Helper()
	if read == 0 {
		return
	}
	r := e.NewReader()
	defer r.Close()
	got, err := r.Read(e.ctx(), group, "c", []string{log}, read, 0)
	e.must(err)
	if acked > 0 {
		e.must(e.raw.XAck(e.ctx(), log, group, ids(got[0].Entries[:acked])...).Err())
	}
}

func TestTrimOfAMissingPartition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		got, err := e.Trim(e.ctx(), []TrimRequest{{Log: "none", Processors: []string{"printer"}, Size: 1}})
		e.must(err)
		equal(t, "trimmed", got, []Trimmed{{}})
	})
}
