package webhook_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/webhook"
)

// A gate counts requests that are under way at once, by receiver.
type gate struct {
	mu       sync.Mutex
	shut     chan struct{} // nothing is answered until it is closed
	now      map[string]int
	most     int // of one receiver
	requests int
}

// pass is a request from its arrival to its answer.
func (g *gate) pass(r *http.Request, takes time.Duration) {
	g.mu.Lock()
	g.requests++
	g.now[r.URL.Path]++
	g.most = max(g.most, g.now[r.URL.Path])
	g.mu.Unlock()
	<-g.shut
	time.Sleep(takes)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now[r.URL.Path]--; g.now[r.URL.Path] == 0 {
		delete(g.now, r.URL.Path)
	}
}

// look returns how many receivers have a request, how many requests there were, and the largest number of one receiver at once.
func (g *gate) look() (busy, requests, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.now), g.requests, g.most
}

// graceful is what a bus has whose workers come and go while none of them is in trouble.
func graceful(o *webhook.Options) { o.Lease, o.JoinDelay = time.Minute, time.Millisecond }

// until publishes a little again and again until something is done, no faster than it is delivered.
func (p *play) until(what string, done func() bool) {
	p.Helper()
	redistest.Eventually(p, what, func() bool {
		if c := p.tenants[p.pick(len(p.tenants))]; p.published["orders"]-int64(len(c.got("orders"))) < 50 {
			p.publish("orders", 1+p.pick(3))
		}
		time.Sleep(50 * time.Millisecond)
		return done() || p.Failed()
	}, p.log.String)
}

// working waits, under load, until each of some workers has made so many more requests.
func (p *play) working(m *marks, requests int, workers ...int) {
	p.Helper()
	was := map[int]int{}
	for _, n := range workers {
		was[n] = m.of(n)
	}
	p.until(fmt.Sprint("requests of workers ", workers), func() bool {
		for n, before := range was {
			if m.of(n) < before+requests {
				return false
			}
		}
		return true
	})
}

// once checks that no event has come in two batches: what comes again has the ID under which it came before.
func (c *tenant) once() {
	c.s.Helper()
	c.s.judge.of(c.name(), func(j *judged) {
		in := map[item]string{}
		for id, body := range j.content {
			items, err := itemsOf([]byte(body))
			c.s.must(err)
			for _, one := range items {
				if was, twice := in[one]; twice {
					c.s.Errorf("%s: %s/%d is in the batches %s and %s", c.name(), one.topic, one.n, was, id)
				}
				in[one] = id
			}
		}
	})
}

// A subscriber has one request under way, never two, also while workers come and go.
func TestOneRequestAtATime(t *testing.T) {
	tier.Slow(t)
	const subscribers = 16
	m, g := newMarks(t), &gate{shut: make(chan struct{}), now: map[string]int{}}
	p, _, _ := calmly(t, graceful, m.mark)
	p.answer = func(r *http.Request) int {
		m.note(r)
		g.pass(r, time.Duration(p.pick(10))*time.Millisecond)
		return http.StatusNoContent
	}
	opened := sync.OnceFunc(func() { close(g.shut) })
	t.Cleanup(opened)
	p.start()
	for i := range subscribers {
		p.tenant(fmt.Sprint("c", i), "orders")
	}
	p.publish("orders", 10)
	redistest.Eventually(t, "a request to each subscriber", func() bool { busy, _, _ := g.look(); return busy == subscribers }, p.log.String)
	p.publish("orders", 100)
	redistest.Within(300*time.Millisecond, func() bool { _, requests, _ := g.look(); return requests > subscribers }) // in vain
	if busy, requests, most := g.look(); busy != subscribers || requests != subscribers || most != 1 {
		t.Errorf("%d subscribers have %d requests, one of them %d", busy, requests, most)
	}
	opened()
	p.start()
	p.start()
	p.working(m, 30, 1, 2, 3)
	for n := range 3 { // each is replaced: one comes, and then one goes
		p.start()
		p.working(m, 30, n+4)
		p.workers[n].stop()
		p.working(m, 30, n+2, n+3, n+4)
	}
	p.workers[3].stop()
	p.workers[4].stop()
	p.working(m, 30, 6)
	p.judged()
	p.end() // a worker that has no server any more holds on for its lease
	for _, c := range p.tenants {
		c.once()
	}
	if _, requests, most := g.look(); most != 1 || requests < p.judge.requests {
		t.Errorf("%d requests of one subscriber at once, of %d", most, requests)
	}
}

// Subscribers move from one worker to three and back to one, under load: nothing is lost, out of order, or sent twice.
func TestManySubscribersMove(t *testing.T) {
	tier.Slow(t)
	m := newMarks(t)
	p, _, _ := calmly(t, graceful, m.mark, func(o *webhook.Options) { o.Partitions = 16 })
	p.answer = func(r *http.Request) int {
		m.note(r)
		return http.StatusNoContent
	}
	p.start()
	for i := range 200 {
		p.tenant(fmt.Sprint("c", i), "orders")
	}
	p.working(m, tier.Large(1500), 1)
	p.start()
	p.start()
	p.working(m, tier.Large(1500), 1, 2, 3)
	p.workers[0].stop()
	p.working(m, tier.Large(1500), 2, 3)
	p.workers[2].stop()
	p.working(m, tier.Large(1500), 2)
	p.judged()
	p.end() // a worker that has no server any more holds on for its lease
	for _, c := range p.tenants {
		c.once()
		if c.figures.Sent != p.published["orders"]-c.from["orders"] || c.figures.Dropped+c.figures.Dead > 0 {
			t.Errorf("%s: %+v of %d", c.name(), c.figures, p.published["orders"])
		}
	}
	moved := m.moved()
	if moved == 0 {
		t.Error("no subscriber has moved")
	}
	t.Logf("%d events, %d requests, %d repeats, %d late, %d of %d moved", p.published["orders"], p.judge.requests, p.judge.repeats, p.judge.late, moved, len(p.tenants))
}
