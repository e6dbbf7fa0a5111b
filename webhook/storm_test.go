package webhook_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/webhook"
)

// A storm is played for each seed: RUNNEL_WEBHOOK_SEEDS of them, from RUNNEL_WEBHOOK_SEED on.
func stormSeeds(t *testing.T, n uint64) (seeds []uint64) {
	t.Helper()
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	first := number("RUNNEL_WEBHOOK_SEED", uint64(time.Now().UnixNano()))
	for i := range number("RUNNEL_WEBHOOK_SEEDS", n) {
		seeds = append(seeds, first+i)
	}
	return seeds
}

// Workers end, vanish and stand still, scripts and their replies are lost, receivers fail, entries are dropped and
// subscriptions change. A subscriber gets everything that was not dropped, in order, and each figure is exact.
func TestStorm(t *testing.T) {
	tier.Server(t)
	for _, layout := range []runnel.KeyLayout{runnel.LayoutStandalone, runnel.LayoutCluster} {
		t.Run(string(layout), func(t *testing.T) {
			server := redistest.Start(t)
			for _, seed := range stormSeeds(t, 1) {
				server.Client(t).FlushAll(t.Context())
				playStorm(t, newStorm(t, server.URL(), server.Addr(), layout, seed), seed)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// So it is where topics and subscribers lie on several servers.
func TestStormInACluster(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	for _, seed := range stormSeeds(t, 1) {
		playStorm(t, newStorm(t, redistest.StartCluster(t, 3, 0).URL(), "", runnel.LayoutCluster, seed), seed)
	}
}

func playStorm(t *testing.T, s *storm, seed uint64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("RUNNEL_WEBHOOK_SEED=%d RUNNEL_WEBHOOK_SEEDS=1 makes the same choices again", seed)
		}
	}()
	p := &play{storm: s}
	s.published = map[string]int64{"orders": 0, "users": 0, "mails": 0}
	for topic := range s.published {
		p.publish(topic, 1)
	}
	for range 3 {
		s.start()
	}
	for i := range 8 + s.pick(9) {
		c := &tenant{s: s, client: fmt.Sprint("c", i), topics: map[string]bool{"orders": true}}
		for topic := range s.published {
			if s.chance(50) {
				c.topics[topic] = true
			}
		}
		c.subscribe()
		p.tenants = append(p.tenants, c)
	}
	for n := 0; n < 300 || s.more != nil && s.more(); n++ {
		p.step()
		if bad := s.judge.verdict(); len(bad) > 0 || t.Failed() {
			break
		}
	}
	p.finish()
}

// A play is the course of a storm.
type play struct {
	*storm
	tenants []*tenant
	gone    delivery.Figures // of those that were removed
	direct  *redis.Client    // see rdb
}

func (p *play) publish(topic string, n int) {
	p.Helper()
	var events []webhook.Event
	for range n {
		p.published[topic]++
		data := any(nil)
		if p.chance(20) {
			data = strings.Repeat("x", p.pick(3000))
		}
		events = append(events, webhook.Event{Topic: topic, Type: webhook.Update, URL: fmt.Sprintf("https://x/%s/%d", topic, p.published[topic]), Data: data})
	}
	var sent []runnel.Sent
	p.does(func() (err error) {
		sent, err = p.bus.Publish(p.ctx, "shop", events...)
		return err
	})
	if id, err := delivery.ParseID(sent[n-1].ID); err != nil || id.N != p.published[topic] {
		p.Fatalf("event %d of %s has the ID %s, %v", p.published[topic], topic, sent[n-1].ID, err)
	}
}

func (p *play) step() {
	p.Helper()
	c := p.tenants[p.pick(len(p.tenants))]
	topic := []string{"orders", "users", "mails"}[p.pick(3)]
	switch x := p.pick(100); {
	case x < 55:
		p.publish(topic, 1+p.pick(1+p.pick(60)))
	case x < 63:
		p.hurt()
	case x < 66: // memory is scarce
		_, err := p.bus.Calls().Drop(p.ctx, topic, 1+p.pick(200))
		p.must(err)
	case x < 74:
		if c.alive {
			c.change(topic)
		}
	case x < 80:
		if c.alive {
			c.pause()
		}
	case x < 83:
		if c.alive {
			c.sum()
			p.gone.Sent += c.figures.Sent
			c.figures = delivery.Figures{}
			c.remove()
		}
	case x < 90:
		if !c.alive {
			c.subscribe()
		}
	default:
		if c.alive {
			c.sum()
		}
	}
	time.Sleep(time.Duration(p.pick(40)) * time.Millisecond)
}

// finish lets everything work again, and judges.
func (p *play) finish() {
	p.Helper()
	p.calm.Store(true)
	for _, w := range p.workers {
		if w.proxy != nil {
			w.proxy.Release()
			w.proxy.Resume()
			w.proxy.HoldReplies(false)
			w.proxy.CutAll() // of what is swallowed nothing else comes
		}
	}
	var all delivery.Figures
	for _, c := range p.tenants {
		if !c.alive {
			continue
		}
		if c.paused {
			c.pause()
		}
		c.settle()
		c.received()
		all.Sent += c.figures.Sent
		all.Dropped += c.figures.Dropped
		all.Dead += c.figures.Dead
	}
	p.deadLetters(all.Dead)
	p.end()
	for _, bad := range p.judge.verdict() {
		p.Error(bad)
	}
	log := p.log.String()
	p.Logf("%v published, %d subscribers; sent %d, dropped %d, dead %d, sent to those removed %d; requests %d, repeats %d, late events %d; ownerships lost %d",
		p.published, len(p.tenants), all.Sent, all.Dropped, all.Dead, p.gone.Sent, p.judge.requests, p.judge.repeats, p.judge.late, strings.Count(log, "partitions lost"))
	for line := range strings.Lines(log) {
		if strings.Contains(line, "panic") || strings.Contains(line, "subscriber is not readable") || strings.Contains(line, "given again") {
			p.Error(line)
		}
	}
}

// deadLetters checks that as many are stored as are counted, at least: subscribers that were removed had some, too.
func (p *play) deadLetters(counted int64) {
	p.Helper()
	var stored int64
	for n := range stormPartitions {
		length, err := p.bus.Calls().Client().Retrying.XLen(p.ctx, p.bus.Calls().Client().Partition("bus", iwebhook.Processor, n).Dead).Result()
		p.must(err)
		stored += length
	}
	if stored < counted {
		p.Errorf("%d dead letters are stored, %d are counted", stored, counted)
	}
}
