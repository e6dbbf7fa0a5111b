package webhook_test

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/test/redistest"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A log is kept for nobody who needs nothing of it.
func TestHoldersGoWithThoseWhoNeedThem(t *testing.T) {
	owned := func(p *play) func() bool { // by an owner alone
		return func() bool {
			all := p.holding()
			return len(all) == 1 && strings.HasPrefix(all[0], "deliver:")
		}
	}
	nobody := func(p *play) func() bool { return func() bool { return len(p.holding()) == 0 } }
	t.Run("removed before its owner knew it", func(t *testing.T) {
		p, _, _ := calmly(t)
		p.publish("orders", 1)
		p.tenant("mail", "orders").remove()
		if all := p.holding(); len(all) > 0 {
			t.Errorf("holders are %v", all)
		}
	})
	t.Run("topic that ended and goes on", func(t *testing.T) {
		p, server, _ := calmly(t)
		p.declared(server)
		p.run(p.workers[0])
		p.published["users"] = 0
		p.publish("users", 1)
		p.publish("orders", 1)
		c := p.tenant("mail", "orders", "users")
		redistest.Eventually(t, "the owner holds the log", owned(p))
		c.pause()
		p.publish("orders", 3)
		p.must(p.bus.Unsubscribe(p.ctx, "mail", "orders"))
		c.subscribe()
		redistest.Eventually(t, "the owner alone holds the log", owned(p), func() string { return strings.Join(p.holding(), " ") })
	})
	t.Run("removed while nobody owned it", func(t *testing.T) {
		p, server, _ := calmly(t)
		p.declared(server)
		p.run(p.workers[0])
		p.publish("orders", 1)
		c := p.tenant("mail", "orders")
		redistest.Eventually(t, "the owner holds the log", owned(p))
		p.end()
		c.remove()
		p.workers = nil
		p.start()
		redistest.Eventually(t, "nobody holds the log", nobody(p), func() string { return strings.Join(p.holding(), " ") })
	})
}

// A log keeps what its holders need, whoever has it trimmed, and what comes behind a subscription that no owner knows yet.
func TestLogsKeepWhatIsNeeded(t *testing.T) {
	p, _, rdb := calmly(t)
	log := p.bus.LogOf("orders")
	first := func() int64 {
		extents, err := p.bus.Calls().Extents(p.ctx, []iwebhook.Log{log})
		p.must(err)
		return extents[log].First.N
	}
	hold := func(n int, at int64) {
		t.Helper()
		entry := rdb.XRangeN(p.ctx, p.bus.Calls().Key(log), "-", "+", at-first()+1).Val()
		id, err := delivery.ParseID(entry[len(entry)-1].ID)
		p.must(err)
		p.must(p.bus.Calls().Hold(p.ctx, n, iwebhook.Hold{Log: log, Epoch: 1, At: id}, 10))
	}
	p.publish("orders", 200)
	hold(3, 50)
	hold(2, 150)
	if got := first(); got != 51 {
		t.Errorf("the first entry is %d, want 51", got)
	}
	p.tenant("mail", "orders")
	if at := rdb.HGet(p.ctx, p.holders("orders"), "pin:mail").Val(); at != p.last("orders").String() {
		t.Errorf("the pin is %q, want %s without a time", at, p.last("orders"))
	}
	p.publish("orders", 100)
	hold(3, 300)
	hold(2, 300)
	if got := first(); got != 201 {
		t.Errorf("the first entry is %d, want 201", got)
	}
	p.must(rdb.HDel(p.ctx, p.holders("orders"), "pin:mail").Err())
	p.must(rdb.ConfigSet(p.ctx, "maxmemory", "1").Err()) // a full server, which is when it matters
	hold(3, 300)
	if got := first(); got <= 201 {
		t.Errorf("the first entry is %d, although nobody needs it", got)
	}
}

// A former owner of a partition neither holds a log nor takes away what the next one holds.
func TestAFormerOwnerHoldsNothing(t *testing.T) {
	p, _, _ := calmly(t)
	p.publish("orders", 2)
	hold := iwebhook.Hold{Log: p.bus.LogOf("orders"), Epoch: 8, At: p.last("orders")}
	for range 2 {
		p.must(p.bus.Calls().Hold(p.ctx, 3, hold, 10))
	}
	p.must(p.bus.Calls().Hold(p.ctx, 3, iwebhook.Hold{Log: hold.Log, Epoch: 7, None: true}, 10))
	if all := p.holding(); len(all) != 1 || all[0] != "deliver:3:8" {
		t.Errorf("holders are %v", all)
	}
	hold.Epoch = 9
	p.must(p.bus.Calls().Hold(p.ctx, 3, hold, 10))
	if all := p.holding(); len(all) != 1 || all[0] != "deliver:3:9" {
		t.Errorf("holders are %v", all)
	}
}

// holding returns who holds the log of the orders.
func (p *play) holding() (all []string) {
	for name := range p.rdb().HGetAll(p.ctx, p.holders("orders")).Val() {
		all = append(all, name)
	}
	return all
}
