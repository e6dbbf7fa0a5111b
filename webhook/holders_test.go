package webhook_test

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/webhook"
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

// A pin belongs to one subscription: it goes with that, and with no other of the same subscriber.
func TestHoldersWhileOneIsRemoved(t *testing.T) {
	t.Run("before it returns", func(t *testing.T) {
		p, server, _ := calmly(t)
		p.publish("orders", 1)
		slow, proxy := p.slowly(server)
		p.must(p.bus.Subscribe(p.ctx, wish("crm"))) // the server knows the scripts
		p.must(p.bus.Unsubscribe(p.ctx, "crm"))
		held := proxy.On("EVALSHA", 3).Containing("pin:mail").Do(faultproxy.Hold) // behind those that make it and store the settings
		done := make(chan error, 1)
		go func() { done <- slow.Subscribe(p.ctx, wish("mail")) }()
		held.Wait(t)
		p.must(p.bus.Unsubscribe(p.ctx, "mail"))
		held.Release()
		p.must(<-done)
		if all := p.holding(); len(all) > 0 {
			t.Errorf("holders are %v", all)
		}
	})
	t.Run("while it is made again", func(t *testing.T) {
		p, server, _ := calmly(t)
		p.publish("orders", 1)
		p.must(p.bus.Subscribe(p.ctx, wish("mail")))
		slow, proxy := p.slowly(server)
		held := proxy.On("EVALSHA", 2).Containing("pin:mail").Do(faultproxy.Hold)
		done := make(chan error, 1)
		go func() { done <- slow.Unsubscribe(p.ctx, "mail") }()
		held.Wait(t)
		p.must(p.bus.Subscribe(p.ctx, wish("mail")))
		held.Release()
		p.must(<-done)
		if all := p.holding(); len(all) != 1 {
			t.Errorf("holders are %v, want one pin", all)
		}
	})
}

// A log keeps what its holders need, whoever has it trimmed, and what comes behind a subscription that no owner knows yet.
func TestLogsKeepWhatIsNeeded(t *testing.T) {
	p, _, rdb := calmly(t)
	first := func() int64 {
		extents, err := p.bus.Calls().Extents(p.ctx, []string{"orders"})
		p.must(err)
		return extents["orders"].First.N
	}
	hold := func(n int, at int64) {
		t.Helper()
		entry := rdb.XRangeN(p.ctx, p.bus.Calls().Key("orders"), "-", "+", at-first()+1).Val()
		id, err := delivery.ParseID(entry[len(entry)-1].ID)
		p.must(err)
		p.must(p.bus.Calls().Hold(p.ctx, n, iwebhook.Hold{Log: "orders", Epoch: 1, At: id}, 10))
	}
	p.publish("orders", 200)
	hold(3, 50)
	hold(2, 150)
	if got := first(); got != 51 {
		t.Errorf("the first entry is %d, want 51", got)
	}
	p.tenant("mail", "orders")
	stored, err := p.bus.Calls().Subscriber(p.ctx, p.bus.PartitionOf("mail"), "mail")
	p.must(err)
	pin := stored.Settings.Topics["orders"].Pin
	if at := rdb.HGet(p.ctx, p.holders("orders"), pin).Val(); at != p.last("orders").String() {
		t.Errorf("the pin is %q, want %s without a time", at, p.last("orders"))
	}
	p.publish("orders", 100)
	hold(3, 300)
	hold(2, 300)
	if got := first(); got != 201 {
		t.Errorf("the first entry is %d, want 201", got)
	}
	p.must(rdb.HDel(p.ctx, p.holders("orders"), pin).Err())
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
	hold := iwebhook.Hold{Log: "orders", Epoch: 8, At: p.last("orders")}
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

// slowly returns a bus whose commands go through a proxy.
func (p *play) slowly(server *redistest.Server) (*webhook.Bus, *faultproxy.Proxy) {
	proxy := faultproxy.Start(p, server.Addr())
	app := p.app("redis://"+proxy.Addr(), "slow")
	p.Cleanup(func() { app.Close() })
	return p.declare(app), proxy
}

func wish(client string) webhook.Subscription {
	return webhook.Subscription{Client: client, Callback: "http://127.0.0.1:9/", Topics: []string{"orders"}}
}

// holding returns who holds the log of the orders.
func (p *play) holding() (all []string) {
	for name := range p.rdb().HGetAll(p.ctx, p.holders("orders")).Val() {
		all = append(all, name)
	}
	return all
}
