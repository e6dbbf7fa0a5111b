package web

import (
	"cmp"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

const (
	pastFor        = 15 * time.Minute
	pastPoints     = 900
	pastProcessors = 64  // with charts
	pastMoves      = 200 // kept
)

// past has the looks of the last minutes with watchers. It is not safe for concurrent use.
type past struct {
	points []point
	moves  []move
	owners map[string][]ownership // at the last look, by processor
}

// A point is one look, for charts.
type point struct {
	at     int64 // ms
	values map[string]value
}

type value struct {
	lag            int64
	appended, done *rate
}

// A move is a change of a partition's owner between two looks.
type move struct {
	At        int64  `json:"at"`
	Processor string `json:"processor"` // stream/processor
	Partition int    `json:"partition"`
	From      string `json:"from"` // worker, "" for none
	To        string `json:"to"`
	Epoch     int64  `json:"epoch"`
}

type ownership struct {
	owner string
	epoch int64
	known bool
}

func (p *past) add(s *inspect.Sample) (moves []move) {
	at := s.App.At.UnixMilli()
	one := point{at: at, values: map[string]value{}}
	owners := map[string][]ownership{}
	for i := range s.App.Streams {
		st := &s.App.Streams[i]
		for j := range st.Processors {
			pr := &st.Processors[j]
			name := pr.Stream + "/" + pr.Processor
			if len(one.values) < pastProcessors {
				one.values[name] = value{pr.Totals.Lag, rounded(s.Rates[i].Appended), rounded(s.Rates[i].Processors[j].Done)}
			}
			owners[name] = ownersOf(pr)
			moves = append(moves, movesBetween(p.owners[name], owners[name], name, at)...)
		}
	}
	p.owners = owners
	for len(p.points) > 0 && p.points[len(p.points)-1].at >= at { // Redis' clock was set back
		p.points = p.points[:len(p.points)-1]
	}
	p.points = append(p.points, one)
	for len(p.points) > pastPoints || p.points[0].at < at-pastFor.Milliseconds() {
		p.points = p.points[1:]
	}
	p.moves = append(p.moves, moves...)
	p.moves = p.moves[max(0, len(p.moves)-pastMoves):]
	return moves[max(0, len(moves)-pastMoves):]
}

func ownersOf(p *inspect.ProcessorState) []ownership {
	out := make([]ownership, len(p.Partitions))
	for n := range p.Partitions {
		s := &p.Partitions[n]
		out[n] = ownership{nameOf(s), s.Epoch, s.Err == ""}
	}
	return out
}

// nameOf returns the owner of a partition: a worker, or an executor that is no member.
func nameOf(s *inspect.PartitionState) string { return cmp.Or(s.Worker, s.Executor) }

func movesBetween(was, is []ownership, processor string, at int64) (moves []move) {
	if len(was) != len(is) {
		return nil
	}
	for n := range is {
		if was[n].known && is[n].known && (was[n].owner != is[n].owner || was[n].epoch != is[n].epoch) {
			moves = append(moves, move{at, processor, n, was[n].owner, is[n].owner, is[n].epoch})
		}
		if !is[n].known { // as last seen
			is[n] = was[n]
		}
	}
	return moves
}

// A memory is the past in the form that the page gets.
type memory struct {
	At     []int64            `json:"at"` // ms
	Series map[string]*series `json:"series"`
	Moves  []move             `json:"moves"`
}

// A series is a processor's past, a value per time; null: unknown.
type series struct {
	Lag      []*int64 `json:"lag"`
	Appended []*rate  `json:"appended"`
	Done     []*rate  `json:"done"`
}

func (p *past) memory() memory {
	m := memory{At: make([]int64, len(p.points)), Series: map[string]*series{}, Moves: append([]move{}, p.moves...)}
	for i, one := range p.points {
		m.At[i] = one.at
		for name, v := range one.values {
			s := m.Series[name]
			if s == nil {
				s = &series{make([]*int64, len(p.points)), make([]*rate, len(p.points)), make([]*rate, len(p.points))}
				m.Series[name] = s
			}
			s.Lag[i], s.Appended[i], s.Done[i] = &v.lag, v.appended, v.done
		}
	}
	return m
}
