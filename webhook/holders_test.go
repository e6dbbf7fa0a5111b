package webhook_test

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/test/redistest"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A log is kept for nobody who needs nothing of it.
func TestHoldersGoWithThoseWhoNeedThem(t *testing.T) {
	holders := func(p *play) (all []string) {
		for name := range p.rdb().HGetAll(p.ctx, p.holders("orders")).Val() {
			all = append(all, name)
		}
		return all
	}
	owned := func(p *play) func() bool { // by an owner alone
		return func() bool {
			all := holders(p)
			return len(all) == 1 && strings.HasPrefix(all[0], "deliver:")
		}
	}
	none := func(p *play) func() bool { return func() bool { return len(holders(p)) == 0 } }
	t.Run("removed before its owner knew it", func(t *testing.T) {
		p, _, _ := calmly(t)
		p.publish("orders", 1)
		p.tenant("mail", "orders").remove()
		if all := holders(p); len(all) > 0 {
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
		redistest.Eventually(t, "the owner alone holds the log", owned(p), func() string { return strings.Join(holders(p), " ") })
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
		redistest.Eventually(t, "nobody holds the log", none(p), func() string { return strings.Join(holders(p), " ") })
	})
	t.Run("a former owner says nothing", func(t *testing.T) {
		p, _, _ := calmly(t)
		p.publish("orders", 2)
		hold := iwebhook.Hold{Log: p.bus.LogOf("orders"), Epoch: 8, At: p.last("orders")}
		for range 2 {
			p.must(p.bus.Calls().Hold(p.ctx, 3, hold, 10))
		}
		p.must(p.bus.Calls().Hold(p.ctx, 3, iwebhook.Hold{Log: hold.Log, Epoch: 7, None: true}, 10))
		if all := holders(p); len(all) != 1 || all[0] != "deliver:3:8" {
			t.Errorf("holders are %v", all)
		}
		hold.Epoch = 9
		p.must(p.bus.Calls().Hold(p.ctx, 3, hold, 10))
		if all := holders(p); len(all) != 1 || all[0] != "deliver:3:9" {
			t.Errorf("holders are %v", all)
		}
	})
}
