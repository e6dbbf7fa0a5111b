package webhook_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/webhook"
)

// Slots move to and fro between the masters of a cluster, key by key, while a storm is played.
type slots struct {
	s     *storm
	k     *redistest.Cluster
	all   []int
	moves int
	keys  int          // that were moved one by one
	times atomic.Int64 // that all slots have gone and come back
}

// slowMoves is of how many moves one is slow.
const slowMoves = 9

// slotsOf returns the slots of all that a bus has: of topics and tokens, of delivery partitions, of the logs of some topics, and of
// what belongs to the app as a whole.
func slotsOf(s *storm, k *redistest.Cluster, topics ...string) *slots {
	m := &slots{s: s, k: k}
	names := keys.Keys{App: "shop", Layout: keys.Cluster}
	partitions := []int{0}
	for n := range stormPartitions {
		partitions = append(partitions, n)
	}
	for _, topic := range topics {
		partitions = append(partitions, iwebhook.TopicPartition(topic))
	}
	for _, n := range partitions {
		m.all = append(m.all, k.Slot(names.Partition("bus", n)))
	}
	m.all = append(m.all, k.Slot(names.Rules()))
	slices.Sort(m.all)
	m.all = slices.Compact(m.all)
	return m
}

// during moves while something is done.
func (m *slots) during(do func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		m.run(over)
	}()
	defer func() {
		close(over)
		<-ended
	}()
	do()
}

// run moves until over is closed.
func (m *slots) run(over <-chan struct{}) {
	homes := map[int]*redistest.Server{}
	for _, slot := range m.all {
		homes[slot] = m.k.Owner(slot)
	}
	for ; ; m.times.Add(1) {
		for _, there := range []bool{false, true} {
			for _, slot := range m.all {
				select {
				case <-over:
					return
				default:
				}
				to := homes[slot]
				for !there && to == homes[slot] {
					to = m.k.Nodes()[m.s.pick(len(m.k.Nodes()))]
				}
				m.move(slot, to)
			}
		}
	}
}

// move moves a slot. Meanwhile requests meet some of their keys here and some there, now and then for longer than clients and
// leases last.
func (m *slots) move(slot int, to *redistest.Server) {
	one, n := m.k.Begin(slot, to), 0
	for one.Some(1) > 0 {
		m.keys++
		time.Sleep(time.Duration(m.s.pick(10)) * time.Millisecond)
		if n++; m.moves%slowMoves == slowMoves-1 && n == 5 {
			time.Sleep(stormLease * 3 / 2)
		}
	}
	one.End()
	m.moves++
}

// met returns how often a node has told a client that a slot was on its way.
func (m *slots) met() map[string]int {
	m.s.Helper()
	all := map[string]int{}
	for _, node := range m.k.Nodes() {
		for line := range strings.Lines(node.Client(m.s).Info(m.s.ctx, "errorstats").Val()) {
			for _, name := range []string{"ASK", "MOVED", "TRYAGAIN"} {
				n := 0
				_, _ = fmt.Sscanf(line, "errorstat_"+name+":count=%d", &n)
				all[name] += n
			}
		}
	}
	return all
}

// Slots of topics, subscribers and all else move during the whole storm, and nothing of it is to be seen by anybody.
func TestStormWhileSlotsMove(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	for _, seed := range stormSeeds(t, 1) {
		k := redistest.StartCluster(t, 3, 0)
		s := newStorm(t, k.URL(), "", runnel.LayoutCluster, seed)
		m := slotsOf(s, k, "orders", "users", "mails")
		s.more = func() bool { return m.times.Load() < 1 }
		m.during(func() { playStorm(t, s, seed) })
		met := m.met()
		if met["ASK"] == 0 || met["TRYAGAIN"] == 0 || met["MOVED"] == 0 {
			t.Errorf("no client has met a slot on its way: %v", met)
		}
		t.Logf("%d slots, %d moves, %d keys one by one, %v", len(m.all), m.moves, m.keys, met)
	}
}

// Receivers fail often, and workers end, while slots move: a batch that comes again has the same events, and no event comes in two.
func TestBatchesWhileSlotsMove(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	k := redistest.StartCluster(t, 3, 0)
	s := newStorm(t, k.URL(), "", runnel.LayoutCluster, 1, func(o *webhook.Options) {
		o.Retry = &runnel.Retry{Max: 1_000_000, MinBackoff: 30 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
	})
	s.calm.Store(true)
	var quiet atomic.Bool
	s.answer = func(*http.Request) int {
		if !quiet.Load() && s.chance(40) {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	}
	s.published = map[string]int64{"orders": 0, "users": 0}
	p := &play{storm: s}
	defer p.end()
	for range 2 {
		p.start()
	}
	for i := range 12 {
		p.tenant(fmt.Sprint("c", i), "orders", "users")
	}
	m := slotsOf(s, k, "orders", "users")
	m.during(func() {
		for n := 1; m.times.Load() < 1 && !t.Failed(); n++ {
			p.publish([]string{"orders", "users"}[p.pick(2)], 1+p.pick(20))
			if n%20 == 0 {
				p.hurt()
			}
			time.Sleep(time.Duration(p.pick(40)) * time.Millisecond)
		}
		quiet.Store(true)
		p.judged()
	})
	for _, c := range p.tenants {
		c.once()
		if c.figures.Dropped+c.figures.Dead > 0 {
			t.Errorf("%s: %+v", c.name(), c.figures)
		}
	}
	t.Logf("%d moves, %v published, %d requests, %d repeats, %d late", m.moves, p.published, p.judge.requests, p.judge.repeats, p.judge.late)
}
