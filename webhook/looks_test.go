package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/webhook"
)

// A flood publishes to a topic while others look.
type flood struct {
	topic        string
	begun, acked atomic.Int64

	mu       sync.Mutex
	arrivals []int64 // by number, less one: ms since 1970
}

// run publishes until a context ends.
func (f *flood) run(ctx context.Context, p *play) {
	for ctx.Err() == nil {
		var events []webhook.Event
		first := f.begun.Load()
		for i := range 1 + p.pick(6) {
			events = append(events, webhook.Event{Topic: f.topic, Type: webhook.Update, URL: fmt.Sprintf("https://x/%s/%d", f.topic, first+int64(i)+1)})
		}
		f.begun.Add(int64(len(events)))
		sent, err := p.bus.Publish(p.ctx, "shop", events...)
		if err != nil {
			p.Error(err)
			return
		}
		f.mu.Lock()
		for _, one := range sent {
			id, err := delivery.ParseID(one.ID)
			if err != nil || id.N != int64(len(f.arrivals))+1 {
				p.Errorf("event %d of %s has the ID %s: %v", len(f.arrivals)+1, f.topic, one.ID, err)
			}
			f.arrivals = append(f.arrivals, id.MS)
		}
		f.mu.Unlock()
		f.acked.Add(int64(len(events)))
		time.Sleep(time.Duration(p.pick(20)) * time.Millisecond)
	}
}

// A sight is a subscriber in a look, and how much was published for it: what was acknowledged before, and what was begun behind it.
type sight struct {
	*tenant
	webhook.Subscriber
	*flood
	least, most int64
}

// total is what became of all events.
func (s *sight) total() int64 { return s.Sent + s.Queued + s.Dropped + s.Dead }

// check checks figures whose flood has told all arrivals. The events of a log with drops may be queued behind others than the first.
func (s *sight) check() {
	t := s.tenant.s
	if total := s.total(); total < s.least || total > s.most {
		t.Errorf("%s: sent %d + queued %d + dropped %d + dead %d = %d of %d to %d", s.client, s.Sent, s.Queued, s.Dropped, s.Dead, total, s.least, s.most)
	}
	if s.Queued == 0 || s.Oldest.IsZero() {
		if s.Queued != 0 && s.topic == "orders" || !s.Oldest.IsZero() {
			t.Errorf("%s: %d are queued, the oldest of %v", s.client, s.Queued, s.Oldest)
		}
		return
	}
	first := s.from[s.topic] + s.Sent + s.Dead
	if s.topic == "orders" && s.Dropped > 0 || first >= int64(len(s.arrivals)) {
		t.Errorf("%s: %+v of %d events", s.client, s.Subscriber, len(s.arrivals))
		return
	}
	got, want := s.Oldest.UnixMilli(), s.arrivals[first]
	if s.topic == "orders" && got != want || got < want {
		t.Errorf("%s: the oldest of %d is of %d, the first that it has not had is of %d", s.client, s.Queued, got, want)
	}
}

// A surveyor looks at all tenants again and again.
type surveyor struct {
	*play
	floods map[string]*flood
	by     map[string]*tenant
}

// look looks at all subscribers as everybody may.
func (v *surveyor) look() (all []*sight) {
	v.Helper()
	least := map[string]int64{}
	for topic, f := range v.floods {
		least[topic] = f.acked.Load()
	}
	for s, err := range v.bus.Subscribers(v.ctx) {
		v.must(err)
		f := v.floods[s.Topics[0]]
		all = append(all, &sight{tenant: v.by[s.Client], Subscriber: s, flood: f, least: least[f.topic]})
	}
	for _, s := range all {
		s.most = s.begun.Load() - s.from[s.topic]
		s.least -= s.from[s.topic]
	}
	if len(all) != len(v.by) {
		v.Errorf("%d of %d subscribers", len(all), len(v.by))
	}
	return all
}

// newSurveyor starts workers, and subscribers whose receivers fail now and then: of orders, which stay, and of users, whose oldest are
// dropped. Some have subscribed later than others, and one of each is paused.
func newSurveyor(t *testing.T) *surveyor {
	p, _, _ := calmly(t, func(o *webhook.Options) {
		o.Lease, o.Keep = time.Minute, 100_000
		o.Retry = &runnel.Retry{Max: 1, MinBackoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
	})
	p.calm.Store(false)
	v := &surveyor{play: p, floods: map[string]*flood{"orders": {topic: "orders"}, "users": {topic: "users"}}, by: map[string]*tenant{}}
	p.published["users"] = 0
	p.start()
	p.start()
	for topic, f := range v.floods {
		for i := range 6 {
			name := fmt.Sprint(topic, i)
			v.by[name] = p.tenant(name, topic)
			if i == 2 {
				v.by[name].pause()
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(200*time.Millisecond, stop)
				f.run(ctx, p)
			}
		}
	}
	return v
}

// At each look the figures of a subscriber are together what was published for it, neither more nor less, and the oldest that is
// queued is the first that it has not had.
func TestFiguresAreExactAtAnyMoment(t *testing.T) {
	v := newSurveyor(t)
	ctx, stop := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	defer publishing.Wait()
	defer stop()
	for _, f := range v.floods {
		publishing.Go(func() { f.run(ctx, v.play) })
	}
	var sights []*sight
	busy := 0
	for i := range 200 {
		for _, s := range v.look() {
			sights = append(sights, s)
			if s.most > s.least {
				busy++
			}
		}
		if i%20 == 10 {
			_, err := v.bus.Calls().Drop(v.ctx, "users", 1+v.pick(200))
			v.must(err)
		}
	}
	stop()
	publishing.Wait()
	for _, s := range append(sights, v.look()...) {
		s.check()
	}
	if busy == 0 {
		t.Error("nothing was published during a look")
	}
	v.settled()
}

// settled lets everything be delivered by a worker that has nothing in memory, and checks what has become of it.
func (v *surveyor) settled() {
	v.Helper()
	for topic, f := range v.floods {
		v.published[topic] = f.acked.Load()
	}
	v.calm.Store(true)
	v.end()
	v.start()
	for _, c := range v.tenants {
		if c.paused {
			c.pause()
		}
	}
	v.judged()
	v.end()
	var all delivery.Figures
	for _, s := range v.look() {
		if s.check(); s.total() != s.most || s.Queued > 0 {
			v.Errorf("%s: %+v of %d", s.client, s.Subscriber, s.most)
		}
		all.Sent, all.Dropped, all.Dead, all.Failed = all.Sent+s.Sent, all.Dropped+s.Dropped, all.Dead+s.Dead, all.Failed+s.Failed
		if strings.HasPrefix(s.client, "users2") && s.Dropped == 0 {
			v.Errorf("%s was paused, and has lost nothing", s.client)
		}
	}
	if all.Dead == 0 || all.Failed == 0 {
		v.Errorf("nothing has failed: %+v", all)
	}
	v.Logf("%v published, %+v, %d requests", v.published, all, v.judge.requests)
}
