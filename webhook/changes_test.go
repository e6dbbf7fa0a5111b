package webhook_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/webhook"
)

// calmly starts a server and what a storm has, but nothing fails.
func calmly(t *testing.T, adjust ...func(*webhook.Options)) (*play, *redistest.Server, *redis.Client) {
	t.Helper()
	tier.Server(t)
	server := redistest.Start(t)
	s := newStorm(t, server.URL(), server.Addr(), runnel.LayoutStandalone, 1, adjust...)
	s.calm.Store(true)
	s.published = map[string]int64{"orders": 0}
	p := &play{storm: s}
	t.Cleanup(p.end)
	return p, server, server.Client(t)
}

// declared prepares a worker, which does not run yet.
func (p *play) declared(server *redistest.Server) {
	p.workers = append(p.workers, &blown{proxy: faultproxy.Start(p, server.Addr())})
}

// rdb returns a client of the server.
func (p *play) rdb() *redis.Client {
	if p.direct == nil {
		opts, err := redis.ParseURL(p.url)
		p.must(err)
		p.direct = redis.NewClient(opts)
		p.Cleanup(func() { _ = p.direct.Close() })
	}
	return p.direct
}

// fenced returns how often the server has refused a former owner.
func (p *play) fenced() (n int) {
	p.Helper()
	for line := range strings.Lines(p.rdb().Info(p.ctx, "errorstats").Val()) {
		_, _ = fmt.Sscanf(line, "errorstat_FENCED:count=%d", &n)
	}
	return n
}

// key returns a key of the delivery partition of a subscriber.
func (p *play) key(kind, client string) string {
	return keys.MustKind(kind).Key(p.bus.Calls().Client().Keys(), "bus", "", "", p.bus.PartitionOf(client))
}

// holders returns the key of the holders of a topic's log.
func (p *play) holders(topic string) string {
	return store.Holders(p.bus.Calls().Client().Keys(), "bus."+topic, iwebhook.TopicPartition(topic))
}

// another subscribes a tenant in the delivery partition of another.
func (p *play) another(client string) *tenant {
	p.Helper()
	for i := 0; ; i++ {
		if name := fmt.Sprint("other", i); p.bus.PartitionOf(name) == p.bus.PartitionOf(client) {
			c := p.tenant(name, "orders")
			p.publish("orders", 1)
			return c
		}
	}
}

// tenant subscribes one to topics.
func (p *play) tenant(client string, topics ...string) *tenant {
	p.Helper()
	c := &tenant{s: p.storm, client: client, topics: map[string]bool{}}
	for _, topic := range topics {
		c.topics[topic] = true
	}
	c.subscribe()
	p.tenants = append(p.tenants, c)
	return c
}

// got returns which events of a topic a tenant has received.
func (c *tenant) got(topic string) (all []int64) {
	c.s.judge.of(c.name(), func(j *judged) {
		for n := range j.received[topic] {
			all = append(all, n)
		}
	})
	slices.Sort(all)
	return all
}

// hears waits until a tenant has an event.
func (c *tenant) hears(topic string, n int64) {
	c.s.Helper()
	redistest.Eventually(c.s, c.name()+" has the event", func() bool { return slices.Contains(c.got(topic), n) }, c.s.log.String)
}

// What is saved counts on a state, on settings and on owning the partition.
func TestWhatASaveCountsOn(t *testing.T) {
	p, _, rdb := calmly(t)
	c := p.tenant("mail", "orders")
	n := p.bus.PartitionOf("mail")
	p.must(rdb.HSet(p.ctx, p.bus.Calls().Client().Partition("bus", iwebhook.Processor, n).Own, "tenure", "me").Err())
	was, _ := c.look()
	save := func(fence, name string, replaces int64, settings string, want iwebhook.SaveResult) {
		t.Helper()
		one := &iwebhook.Save{Name: name, Replaces: replaces, Settings: settings, State: []byte(`{"sent":7}`)}
		err := p.bus.Calls().Save(p.ctx, n, fence, []*iwebhook.Save{one})
		if fenced := errors.Is(err, store.ErrFenced); one.Result != want || fenced != (want == 0) {
			t.Errorf("the result is %q, %v, want %q", one.Result, err, want)
		}
	}
	save("another", "mail", was.Saved, was.Version, 0)
	save("me", "mail", was.Saved, was.Version+"0", iwebhook.Changed)
	save("me", "mail", was.Saved+1, was.Version, iwebhook.Replaced)
	save("me", "crm", was.Saved, was.Version, iwebhook.Gone)
	if now, _ := c.look(); now.State.Sent != 0 || now.Saved != was.Saved {
		t.Errorf("the state is %+v, %d", now.State, now.Saved)
	}
	for range 2 { // the second is a repetition
		save("me", "mail", was.Saved, was.Version, iwebhook.Saved)
	}
	c.remove()
	c.subscribe() // another one of the same name
	save("me", "mail", was.Saved, was.Version, iwebhook.Replaced)
	if now, _ := c.look(); now.State.Sent != 0 {
		t.Errorf("the state is %+v", now.State)
	}
}

// A pause that comes while a new owner reads its subscribers holds.
func TestAPauseWhileSubscribersAreRead(t *testing.T) {
	p, server, _ := calmly(t)
	c := p.tenant("mail", "orders")
	p.declared(server)
	proxy := p.workers[0].proxy
	held := proxy.On("HKEYS", 1).Containing(p.key("whconf", "mail")).Do(faultproxy.HoldReply(nil))
	p.run(p.workers[0])
	held.Wait(t)
	c.pause()
	held.Release()
	p.publish("orders", 1)
	other := p.another("mail") // in the same partition: when it has events, the owner has seen the pause
	other.hears("orders", 2)
	if got := c.got("orders"); len(got) > 0 {
		t.Errorf("it is paused, and got %v", got)
	}
}

// What is read of a subscriber first is not taken for newer than what is read last.
func TestReadsOfASubscriberKeepTheirOrder(t *testing.T) {
	p, server, _ := calmly(t)
	p.declared(server)
	proxy := p.workers[0].proxy
	p.run(p.workers[0])
	c := p.tenant("mail", "orders")
	p.publish("orders", 1)
	c.hears("orders", 1)
	held := proxy.On("HMGET", 1).Containing(p.key("whconf", "mail")).Do(faultproxy.HoldReply(nil))
	c.remove()
	held.Wait(t)
	c.subscribe()
	time.Sleep(300 * time.Millisecond) // a read that overtakes comes now
	held.Release()
	p.publish("orders", 1)
	c.hears("orders", 2)
}

// A former owner whose save comes late stores nothing, and makes no request for it.
func TestASaveThatComesLateIsFenced(t *testing.T) {
	p, server, _ := calmly(t)
	p.declared(server)
	proxy := p.workers[0].proxy
	p.run(p.workers[0])
	c := p.tenant("mail", "orders")
	p.publish("orders", 1)
	c.hears("orders", 1)
	held := proxy.On("EVALSHA", 1).Containing(p.key("whsub", "mail"), p.bus.Calls().Client().Partition("bus", iwebhook.Processor, p.bus.PartitionOf("mail")).Own).Do(faultproxy.Hold)
	p.publish("orders", 1)
	held.Wait(t)
	proxy.Pause() // its lease ends
	p.declared(server)
	p.run(p.workers[1])
	c.hears("orders", 2)
	p.publish("orders", 1)
	c.hears("orders", 3)
	c.settle()
	stored, _ := c.look()
	proxy.Resume()
	held.Release()
	redistest.Eventually(t, "the save is refused", func() bool { return p.fenced() > 0 })
	if now, _ := c.look(); !reflect.DeepEqual(now.State, stored.State) {
		t.Errorf("from %+v to %+v", stored.State, now.State)
	}
	p.judged()
}

// What is queued of a topic that was ended, and is wanted again before any owner has seen it, is not lost.
func TestATopicThatIsEndedAndWantedAgainBeforeAWorkerRuns(t *testing.T) {
	p, server, _ := calmly(t)
	c := p.tenant("mail", "orders", "users")
	p.publish("orders", 2)
	p.must(p.bus.Unsubscribe(p.ctx, c.client, "orders"))
	p.publish("orders", 1)
	c.subscribe()
	p.publish("orders", 1)
	p.declared(server)
	p.run(p.workers[0])
	c.hears("orders", 4)
	if got := c.got("orders"); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("it has %v", got)
	}
}
