package store

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestTrim(t *testing.T) {
	type group struct {
		name  string
		read  int // entries delivered
		acked int // the first of them
	}
	printer, mailer := GroupName("printer", alice), GroupName("mailer", bob)
	both2 := []string{"mailer", "printer"}
	tests := []struct {
		name       string
		entries    int
		size       int64
		processors []string
		groups     []group
		want       int // removed
		blocked    string
	}{
		{name: "all acked", entries: 1000, size: 400, processors: []string{"printer"}, groups: []group{{name: printer, read: 1000, acked: 1000}}, want: 700},
		{name: "7/8 of size", entries: 350, size: 400, processors: []string{"printer"}, groups: []group{{name: printer, read: 350, acked: 350}}},
		{name: "more than 7/8 of size", entries: 351, size: 400, processors: []string{"printer"}, groups: []group{{name: printer, read: 351, acked: 351}}, want: 51},
		{name: "a size of 1", entries: 1, size: 1, processors: []string{"printer"}, groups: []group{{name: printer, read: 1, acked: 1}}, want: 1},
		{name: "pending entries", entries: 1000, size: 300, processors: []string{"printer"}, groups: []group{{name: printer, read: 1000, acked: 400}}, want: 400},
		{name: "unread entries", entries: 1000, size: 300, processors: []string{"printer"}, groups: []group{{name: printer, read: 250, acked: 250}}, want: 250},
		{name: "nothing read", entries: 1000, size: 300, processors: []string{"printer"}, groups: []group{{name: printer}}},
		{name: "the slowest processor counts", entries: 1000, size: 300, processors: both2,
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: mailer, read: 1000, acked: 200}}, want: 200},
		{name: "two groups of a processor", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: GroupName("printer", carol), read: 200, acked: 200}}, want: 200},
		{name: "a processor without a group", entries: 1000, size: 300, processors: both2,
			groups: []group{{name: printer, read: 1000, acked: 1000}}, blocked: "mailer"},
		{name: "a plain group has no processor", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: "printer", read: 1000, acked: 1000}}, blocked: "printer"},
		{name: "where Python stopped does not count", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: "printer"}}, want: 775},
		{name: "a group of another program", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: "billing", read: 300, acked: 200}}, want: 200},
		{name: "a group of another program that has read nothing", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: "printer@a@b4567890123456"}}},
		{name: "a processor that was registered after the list was read", entries: 1000, size: 300, processors: []string{"printer"},
			groups: []group{{name: printer, read: 1000, acked: 1000}, {name: "mailer@" + alice, read: 120, acked: 120}}, want: 120},
		{name: "only another program", entries: 1000, size: 300, groups: []group{{name: "billing", read: 1000, acked: 900}}, want: 775},
		{name: "no groups", entries: 1000, size: 300},
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
				equal(t, "left", e.raw.XLen(e.ctx(), log).Val(), int64(tt.entries-tt.want))
				equal(t, "trimmed", got[0], Trimmed{Removed: int64(tt.want), BlockedBy: tt.blocked})
			})
		}
	})
}

// fill appends a number of entries.
func (e *env) fill(log string, entries int) {
	e.t.Helper()
	p := e.raw.Pipeline()
	for i := range entries {
		p.Do(e.ctx(), "XADD", log, fmt.Sprintf("%d-1", i+1), "n", i)
	}
	try(p.Exec(e.ctx())).must(e.t)
}

// deliver makes a group read entries and ack the first of them.
func (e *env) deliver(log, group string, read, acked int) {
	e.t.Helper()
	if read == 0 {
		return
	}
	// A Reader gives up after a second, too soon for the embedded server to deliver a thousand.
	got, err := e.raw.XReadGroup(e.ctx(), &redis.XReadGroupArgs{Group: group, Consumer: "c", Streams: []string{log, ">"}, Count: int64(read), Block: -1}).Result()
	e.must(err)
	var delivered []string
	for _, m := range got[0].Messages[:acked] {
		delivered = append(delivered, m.ID)
	}
	if acked > 0 {
		e.must(e.raw.XAck(e.ctx(), log, group, delivered...).Err())
	}
}

func TestTrimOfAMissingPartition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		got := try(e.Trim(e.ctx(), []TrimRequest{{Log: "none", Processors: []string{"printer"}, Size: 1}})).must(t)
		equal(t, "trimmed", got, []Trimmed{{}})
	})
}
