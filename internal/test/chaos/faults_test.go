//go:build unix

package chaos

import (
	"syscall"
	"time"

	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
)

// workerFaults are the faults of workers and of their links.
var workerFaults = []fault{
	{"kill", 2, func(s *scene) {
		p := s.pick()
		s.note("kill", history.Kill, p.name)
		p.cmd.Process.Signal(syscall.SIGKILL)
		s.drop(p)
	}},
	{"stop", 3, func(s *scene) {
		if p := s.pick(); !p.stopped {
			s.freeze(p)
		}
	}},
	{"term", 2, func(s *scene) {
		if p := s.pick(); !p.stopped {
			s.terminate(p)
		}
	}},
	{"join", 2, func(s *scene) {
		if len(s.live) < most {
			s.join(false)
		}
	}},
	{"clock", 1, func(s *scene) {
		if len(s.live) >= most {
			s.terminate(s.pick())
		}
		s.join(true)
	}},
	{"cut", 2, func(s *scene) {
		l, who := s.pickLink()
		s.note("cut", history.Cut, who)
		l.each((*faultproxy.Proxy).CutAll)
	}},
	{"latency", 1, func(s *scene) {
		d := time.Duration(1+s.rng.IntN(40)) * time.Millisecond
		s.hurtLink("latency", history.Slow, func(p *faultproxy.Proxy) { p.Latency(d) }, func(p *faultproxy.Proxy) { p.Latency(0) })
	}},
	{"bandwidth", 1, func(s *scene) {
		n := 32<<10 + s.rng.IntN(96<<10)
		s.hurtLink("bandwidth", history.Slow, func(p *faultproxy.Proxy) { p.Bandwidth(n) }, func(p *faultproxy.Proxy) { p.Bandwidth(0) })
	}},
	{"half-open", 1, func(s *scene) {
		l, who := s.pickLink()
		s.note("half-open", history.Silence, who)
		l.each((*faultproxy.Proxy).HalfOpen)
	}},
	{"held-replies", 1, func(s *scene) {
		s.hurtLink("held-replies", history.Silence, func(p *faultproxy.Proxy) { p.HoldReplies(true) }, func(p *faultproxy.Proxy) { p.HoldReplies(false) })
	}},
	{"silence", 1, func(s *scene) {
		s.hurtLink("silence", history.Silence, (*faultproxy.Proxy).Pause, (*faultproxy.Proxy).Resume)
	}},
}

// failover does something that may replace a master, and reports whether it did.
func (s *scene) failover(name, kind string, do func() (changed bool)) {
	s.note(name, kind, "")
	s.tender.loses.Store(true)
	before := s.watch.mark()
	changed := do()
	s.write(s.faults, history.Record{Kind: history.Fault, Fault: history.Settled, Text: name, Failed: !changed})
	s.watch.rewind(before)
}

// deck returns faults in random order, each as often as its cards, so that a run of some minutes
// has them all. Faults of servers come last: they excuse every worker, and histories without any
// are judged more strictly. The first of the topology's own faults, a failover if there is one,
// comes before its others, so that a short run has it too.
func (s *scene) deck() (cards []fault) {
	servers := s.topo.faults()
	for _, suit := range [][]fault{workerFaults, servers[:1], servers[1:]} {
		at := len(cards)
		for _, f := range suit {
			if !s.plan.has(f.name) {
				continue
			}
			for range f.cards {
				cards = append(cards, f)
			}
		}
		of := cards[at:]
		s.rng.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	}
	if len(cards) == 0 {
		s.t.Fatalf("RUNNEL_CHAOS_FAULTS=%v names no fault", s.plan.only)
	}
	return cards
}

func (s *scene) hurt(lasts time.Duration) {
	var cards []fault
	for end := time.Now().Add(lasts); ; {
		s.rest(250*time.Millisecond + time.Duration(s.rng.IntN(500))*time.Millisecond)
		if time.Now().After(end) {
			return
		}
		s.reap()
		if len(s.live) < fewest {
			s.join(false)
			continue
		}
		if len(cards) == 0 {
			cards = s.deck()
		}
		cards[0].do(s)
		cards = cards[1:]
	}
}

// note records that a fault is about to happen: its name, and its meaning for the check.
func (s *scene) note(name, kind, worker string) {
	s.write(s.faults, history.Record{Kind: history.Fault, Fault: kind, Worker: worker, Text: name})
}

func (s *scene) join(stepping bool) {
	p := s.start(stepping)
	s.note("join", history.Join, p.name)
}

func (s *scene) pick() *process { return s.live[s.rng.IntN(len(s.live))] }

// pickLink chooses the link of a worker, or that of the producers.
func (s *scene) pickLink() (l *link, who string) {
	if s.rng.IntN(5) == 0 {
		return s.sends, "producers"
	}
	p := s.pick()
	return p.link, p.name
}

// hurtLink hurts a link for a while, often longer than a lease.
func (s *scene) hurtLink(name, kind string, begin, end func(p *faultproxy.Proxy)) {
	l, who := s.pickLink()
	d := time.Duration(s.rng.Int64N(int64(5 * lockExpiry / 2)))
	s.note(name, kind, who)
	l.each(begin)
	s.wg.Go(func() {
		s.rest(d)
		l.each(end)
	})
}
