package webhook_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/webhook"
)

// judged waits until all tenants have everything, and checks it.
func (p *play) judged() {
	p.Helper()
	for _, c := range p.tenants {
		if c.alive {
			c.settle()
			c.received()
		}
	}
	for _, bad := range p.judge.verdict() {
		p.Error(bad)
	}
}

func TestOneAndManyPartitions(t *testing.T) {
	for _, n := range []int{1, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p, _, _ := calmly(t, func(o *webhook.Options) { o.Partitions = n })
			p.published["users"] = 0
			for range 2 {
				p.start()
			}
			for i := range 20 {
				p.tenant(fmt.Sprint("c", i), "orders", "users")
			}
			for range 20 {
				p.publish("orders", 7)
				p.publish("users", 3)
			}
			p.judged()
		})
	}
}

func TestManySubscribersOfOneTopic(t *testing.T) {
	p, _, _ := calmly(t)
	for range 2 {
		p.start()
	}
	for i := range tier.Large(300) {
		p.tenant(fmt.Sprint("c", i), "orders")
	}
	for range 10 {
		p.publish("orders", 50)
	}
	p.judged()
}

func TestLargeEvents(t *testing.T) {
	p, _, _ := calmly(t, func(o *webhook.Options) { o.MaxData = 32 << 10 })
	p.start()
	p.tenant("mail", "orders")
	data := strings.Repeat("x", 30<<10)
	for range 200 {
		p.published["orders"]++
		_, err := p.bus.Publish(p.ctx, "shop", webhook.Event{
			Topic: "orders", Type: webhook.Create, URL: fmt.Sprintf("https://x/orders/%d", p.published["orders"]), Data: data,
		})
		p.must(err)
	}
	p.judged()
}

// What a receiver answers too late does not count: the batch comes again as it was, which the judge checks.
func TestAnswersThatComeTooLate(t *testing.T) {
	p, _, _ := calmly(t, func(o *webhook.Options) { o.Timeout = 200 * time.Millisecond })
	p.retry.Max = 1_000_000
	var late atomic.Int64
	p.answer = func(r *http.Request) int {
		if late.Add(1) <= 3 {
			<-r.Context().Done() // that is when the sender has gone
		}
		return http.StatusNoContent
	}
	p.start()
	c := p.tenant("mail", "orders")
	p.publish("orders", 40)
	p.judged()
	if c.figures.Failed != 3 || c.figures.Sent != 40 || p.judge.repeats < 3 {
		t.Errorf("%+v, %d repeats", c.figures, p.judge.repeats)
	}
}

// A server that has lost everything serves new subscriptions and publications.
func TestAServerThatForgetsEverything(t *testing.T) {
	p, _, rdb := calmly(t)
	for range 2 {
		p.start()
	}
	old := []*tenant{p.tenant("mail", "orders"), p.tenant("crm", "orders")}
	p.publish("orders", 100)
	p.judged()
	p.publish("orders", 100) // some of it is under way
	p.must(rdb.FlushAll(p.ctx).Err())
	p.published["orders"] = 0
	for _, c := range old {
		c.alive, c.figures = false, delivery.Figures{} // it is another one if it is there again
	}
	again := p.tenant("mail", "orders")
	again.born = 100
	p.tenants = p.tenants[2:]
	p.judge.add(again.name(), again.most)
	again.subscribe()
	p.publish("orders", 100)
	p.judged()
	time.Sleep(1100 * time.Millisecond) // for a second a process believes what it knows of a topic
	p.publish("orders", 1)
	p.judged()
	if topics, err := p.bus.Topics(p.ctx); err != nil || len(topics) != 1 {
		t.Errorf("topics are %v, %v", topics, err)
	}
	if _, known, err := p.bus.Calls().Client().LoadMeta(p.ctx, "bus.orders"); err != nil || !known {
		t.Errorf("the topic's stream is known: %v, %v", known, err)
	}
	quiet(p, rdb)
}

// quiet checks that workers do little when there is nothing to do.
func quiet(p *play, rdb *redis.Client) {
	p.Helper()
	calls := func() (n int64) {
		for _, line := range strings.Split(rdb.Info(p.ctx, "stats").Val(), "\r\n") {
			_, _ = fmt.Sscanf(line, "total_commands_processed:%d", &n)
		}
		return n
	}
	redistest.Eventually(p, "little is done", func() bool {
		before := calls()
		time.Sleep(time.Second)
		return calls()-before < 500
	})
	if n := strings.Count(p.log.String(), "\n"); n > 1000 {
		p.Errorf("%d lines were logged", n)
	}
}

// On a server without memory publications are refused, but deliveries go on, and make room.
func TestAServerWithoutMemory(t *testing.T) {
	p, _, rdb := calmly(t)
	p.retry.Max = 1_000_000
	var up atomic.Bool
	p.answer = func(*http.Request) int {
		if up.Load() {
			return http.StatusNoContent
		}
		return http.StatusServiceUnavailable
	}
	p.start()
	p.tenant("mail", "orders")
	p.publish("orders", 10)
	p.must(rdb.ConfigSet(p.ctx, "maxmemory", fmt.Sprint(used(p, rdb)+3<<20)).Err())
	data, refused := strings.Repeat("x", 4000), error(nil)
	event := func(n int64) webhook.Event {
		return webhook.Event{Topic: "orders", Type: webhook.Update, URL: fmt.Sprintf("https://x/orders/%d", n), Data: data}
	}
	for refused == nil {
		if _, refused = p.bus.Publish(p.ctx, "shop", event(p.published["orders"]+1)); refused == nil {
			p.published["orders"]++
		}
	}
	p.must(rdb.ConfigSet(p.ctx, "maxmemory", fmt.Sprint(used(p, rdb)-256<<10)).Err()) // no buffer that is freed makes room
	if !strings.Contains(refused.Error(), "OOM") {
		t.Errorf("the error is %v", refused)
	}
	if err := p.bus.Subscribe(p.ctx, webhook.Subscription{Client: "crm", Callback: p.receivers.URL + "/crm", Topics: []string{"orders"}}); err == nil {
		t.Error("a subscription is stored although there is no memory")
	}
	if err := p.bus.Pause(p.ctx, "mail", nil); err == nil {
		t.Error("a pause is stored although there is no memory")
	}
	p.workers[0].stop()
	p.running.Wait() // its successor begins on the full server
	p.start()
	up.Store(true)
	redistest.Eventually(t, "there is room", func() bool {
		_, err := p.bus.Publish(p.ctx, "shop", event(p.published["orders"]+1))
		if err == nil {
			p.published["orders"]++
		}
		return err == nil
	}, p.log.String)
	p.judged()
	if length := rdb.XLen(p.ctx, p.bus.Calls().Key("orders")).Val(); length > 400 {
		t.Errorf("the log has %d entries", length)
	}
}

func used(p *play, rdb *redis.Client) (n int64) {
	for _, line := range strings.Split(rdb.Info(p.ctx, "memory").Val(), "\r\n") {
		_, _ = fmt.Sscanf(line, "used_memory:%d", &n)
	}
	return n
}

// A worker that may not write any more what it has to, says so now and then, and goes on when it may.
func TestAWorkerWithoutRights(t *testing.T) {
	p, _, rdb := calmly(t)
	may := func(rights ...any) {
		t.Helper()
		p.must(rdb.Do(p.ctx, append([]any{"ACL", "SETUSER", "poor"}, rights...)...).Err())
	}
	may("on", ">secret", "+@all", "&*", "~*")
	p.userinfo = "poor:secret@"
	p.start()
	c := p.tenant("mail", "orders")
	p.publish("orders", 1)
	c.hears("orders", 1)
	c.settle()
	may("resetkeys", "%R~*", "~__[^w]*", "~__w[^h]*", "~[^_]*")
	p.publish("orders", 20)
	redistest.Eventually(t, "the worker says that it may not", func() bool { return strings.Contains(p.log.String(), "NOPERM") }, p.log.String)
	time.Sleep(2 * time.Second)
	if n := strings.Count(p.log.String(), "NOPERM"); n > 20 {
		t.Errorf("it says %d times that it may not", n)
	}
	if got := c.got("orders"); len(got) > 1 {
		t.Errorf("%v were sent although nothing could be stored", got)
	}
	may("~*")
	p.judged()
}
