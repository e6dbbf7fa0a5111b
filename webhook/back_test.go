// Without runnel.Durability a failover may bring a log back as it was some time ago. Numbers are then given again.

package webhook_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/webhook"
)

// A restored is a bus whose log goes back. Events have a number in their URL that is never given again.
type restored struct {
	*play
	n      int64
	master *redis.Client // of the server that is the master now
	down   atomic.Bool   // the slow one fails
}

// append publishes some events, again until that succeeds, and returns the last one.
func (r *restored) append(n int) (last int64) {
	r.Helper()
	last = r.n + int64(n)
	var events []webhook.Event
	for ; r.n < last; r.n++ {
		events = append(events, webhook.Event{Topic: "orders", Type: webhook.Update, URL: fmt.Sprint("https://x/orders/", r.n+1)})
	}
	redistest.Eventually(r, "publishing", func() bool {
		_, err := r.bus.Publish(r.ctx, "shop", events...)
		return err == nil
	}, r.log.String)
	return last
}

// entries returns what the log has: by number of the entry that of the URL.
func (r *restored) entries() map[int64]int64 {
	r.Helper()
	all := map[int64]int64{}
	for _, e := range r.master.XRange(r.ctx, r.bus.Calls().Key("orders"), "-", "+").Val() {
		id, err := delivery.ParseID(e.ID)
		r.must(err)
		items, err := itemsOf([]byte(fmt.Sprintf("[%s]", e.Values["data"])))
		r.must(err)
		all[id.N] = items[0].n
	}
	return all
}

// again returns how often a subscriber was told that numbers were given again.
func (r *restored) again(c *tenant) (n int) {
	for line := range strings.Lines(r.play.log.String()) {
		if strings.Contains(line, "numbers of a log were given again") && strings.Contains(line, "subscriber="+c.client+" ") {
			n++
		}
	}
	return n
}

// notices checks that a subscriber was told of it more often than before.
func (r *restored) notices(c *tenant, before int) {
	r.Helper()
	if r.again(c) <= before {
		r.Errorf("it was not noticed that numbers were given again\n%s", r.play.log.String())
	}
}

// complete waits until a subscriber has had all that the log has, and has nothing queued.
func (r *restored) complete(c *tenant) {
	r.Helper()
	redistest.Eventually(r, c.name()+" has what the log has", func() bool {
		got, all := c.got("orders"), r.entries()
		for _, n := range all {
			if _, there := slices.BinarySearch(got, n); !there {
				return false
			}
		}
		stored, state := c.look()
		extents, err := r.bus.Calls().Extents(r.ctx, []string{"orders"})
		return err == nil && state.Open == nil && state.Figures(stored.Settings.Topics, extents).Queued == 0
	}, func() string { return fmt.Sprint(c.got("orders"), r.entries(), "\n", r.play.log.String()) })
	_, state := c.look()
	if state.Dropped+state.Dead > 0 {
		r.Errorf("%s: %+v", c.name(), state)
	}
}

// newRestored returns a bus with two subscribers: one that takes everything at once, and one that takes nothing.
func newRestored(t *testing.T, s *storm, master *redis.Client) (r *restored, quick, slow *tenant) {
	s.calm.Store(true)
	s.published = map[string]int64{"orders": 0}
	r = &restored{play: &play{storm: s}, master: master}
	quick, slow = r.tenant("quick", "orders"), r.tenant("slow", "orders")
	r.down.Store(true)
	r.answer = func(q *http.Request) int {
		if r.down.Load() && strings.Contains(q.URL.Path, "slow") {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	}
	return r, quick, slow
}

// lasting is what a bus has whose owners stay what they are while a server is replaced.
func lasting(o *webhook.Options) {
	graceful(o)
	o.Retry = &runnel.Retry{Max: 1_000_000, MinBackoff: 30 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
	o.Keep = 10_000
}

// A replica that was behind takes the place of the master, again and again. That is noticed, and delivery goes on: subscribers get all
// that it has and what comes later, in order.
func TestFailoversToReplicasThatAreBehind(t *testing.T) {
	tier.Server(t)
	server := redistest.Start(t)
	front := faultproxy.Start(t, server.Addr())
	s := newStorm(t, "redis://"+front.Addr(), front.Addr(), runnel.LayoutStandalone, 1, lasting)
	r, quick, slow := newRestored(t, s, server.Client(t))
	defer r.end() // before the proxies: a worker that has no server any more holds on for its lease
	r.start()
	for _, n := range []int{3, 7, 20} { // fewer than are lost, as many, more
		last := r.append(10)
		quick.hears("orders", last)
		r.complete(quick)
		link := faultproxy.Start(t, server.Addr())
		replica := server.ReplicaVia(t, link.Addr())
		link.Pause()
		last = r.append(7)
		quick.hears("orders", last)
		r.complete(quick)
		before, noticed := r.entries(), r.again(quick)
		server.Kill()
		replica.Promote()
		front.SetTarget(replica.Addr())
		front.CutAll()
		server, r.master = replica, replica.Client(t)
		if lost := len(before) - len(r.entries()); lost < 7 {
			t.Errorf("%d of %d events are lost, want 7 at least", lost, len(before))
		}
		r.append(n)
		r.complete(quick)
		r.notices(quick, noticed)
	}
	r.finished(quick, slow)
}

// finished has everything delivered, and checks that new events come, too.
func (r *restored) finished(quick, slow *tenant) {
	r.Helper()
	r.down.Store(false)
	last := r.append(5)
	for _, c := range []*tenant{quick, slow} {
		c.hears("orders", last)
		r.complete(c)
	}
	for _, bad := range r.judge.verdict() {
		r.Error(bad)
	}
	r.Logf("%d events, %d in the log, %d requests, %d repeats; quick has had %d, slow %d",
		r.n, len(r.entries()), r.judge.requests, r.judge.repeats, len(quick.got("orders")), len(slow.got("orders")))
}

// In a cluster the log may go back, and not what is stored of its subscribers: they were sent more than it has now.
func TestALogThatGoesBackAlone(t *testing.T) {
	tier.Server(t)
	for _, tt := range []struct {
		name    string
		running bool // the owner stays
	}{{"while subscribers are served", true}, {"while no worker runs", false}} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			s := newStorm(t, server.URL(), server.Addr(), runnel.LayoutStandalone, 1, lasting)
			r, quick, slow := newRestored(t, s, server.Client(t))
			defer r.end()
			r.start()
			for _, n := range []int{3, 7, 20} { // fewer than are lost, as many, more
				last := r.append(10)
				quick.hears("orders", last)
				r.complete(quick)
				if !tt.running {
					r.end()
				}
				noticed := r.again(quick)
				r.back(7)
				r.append(n)
				if !tt.running {
					r.workers = nil
					r.start()
				}
				r.complete(quick)
				r.notices(quick, noticed)
			}
			r.finished(quick, slow)
		})
	}
}

// back takes the last events from the log, as if they had never been there.
func (r *restored) back(n int) {
	r.Helper()
	log := "orders"
	key := r.bus.Calls().Key(log)
	last := r.master.XRevRangeN(r.ctx, key, "+", "-", int64(n)+1).Val()
	for _, e := range last[:n] {
		r.must(r.master.XDel(r.ctx, key, e.ID).Err())
	}
	r.must(r.master.Set(r.ctx, store.LastID(r.bus.Calls().Client().Keys(), "bus.orders", iwebhook.TopicPartition(log)), last[n].ID, 0).Err())
}
