package web

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

// A rate is events per second, with two decimals in JSON.
type rate float64

// MarshalJSON implements json.Marshaler.
func (r rate) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(r), 'f', 2, 64), nil
}

func rounded(v *float64) *rate { return (*rate)(v) }

// A frame is the result of one look, as shown. It is safe for concurrent use.
type frame struct {
	seen   time.Time // by the clock of this process
	sample *inspect.Sample
	err    string // if there is no sample
	moves  []move

	mu   sync.Mutex
	json map[string][]byte // by watched processor
}

// encoded returns the frame as JSON for pages that watch this processor, "" for none.
func (f *frame) encoded(watched string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, is := f.json[watched]; is {
		return text, nil
	}
	v := any(struct {
		Err string `json:"err"`
	}{f.err})
	if f.err == "" {
		v = f.shown(watched)
	}
	text, err := json.Marshal(v)
	if f.json == nil {
		f.json = map[string][]byte{}
	}
	f.json[watched] = text
	return text, err
}

// A shownApp is the part of a frame that all pages get.
type shownApp struct {
	App      string              `json:"app"`
	Redis    string              `json:"redis"`
	At       int64               `json:"at"` // ms, by Redis' clock
	Leader   string              `json:"leader"`
	Rules    []inspect.RuleState `json:"rules"`
	RulesErr string              `json:"rules_err,omitempty"`
	Streams  []shownStream       `json:"streams"`
	Moves    []move              `json:"moves"`
	Detail   *detail             `json:"detail,omitempty"`
}

type shownStream struct {
	Stream      string           `json:"stream"`
	Partitions  int              `json:"partitions"`
	Size        int64            `json:"size"`
	Codec       string           `json:"codec"`
	Partitioner string           `json:"partitioner"`
	KeyField    string           `json:"key_field"`
	Length      int64            `json:"length"`
	Delayed     int64            `json:"delayed"`
	Appended    int64            `json:"appended"`
	Rate        *rate            `json:"rate"` // appended per second
	Processors  []shownProcessor `json:"processors"`
}

type shownProcessor struct {
	Processor  string         `json:"processor"`
	Generation int64          `json:"generation"`
	Partitions int            `json:"partitions"`
	Paused     int            `json:"paused"` // partitions
	Blocked    int            `json:"blocked"`
	NotReading int            `json:"not_reading"`           // partitions whose owner cannot read
	MembersErr string         `json:"members_err,omitempty"` // why the membership cannot be read
	Done       *rate          `json:"done"`                  // per second
	Totals     inspect.Totals `json:"totals"`
	Members    []shownMember  `json:"members"`
}

type shownMember struct {
	Worker   string `json:"worker"`
	Executor string `json:"executor"`
	Alive    bool   `json:"alive"`
	Owned    int    `json:"owned"`
}

func (f *frame) shown(watched string) *shownApp {
	a := f.sample.App
	out := &shownApp{App: a.App, Redis: a.Redis, At: a.At.UnixMilli(), Leader: a.Leader, Rules: a.Stops(), RulesErr: a.RulesErr,
		Streams: []shownStream{}, Moves: append([]move{}, f.moves...)}
	for i := range out.Rules {
		out.Rules[i].Why = cut(out.Rules[i].Why, recordInList).Text
	}
	for i := range a.Streams {
		s, rates := &a.Streams[i], &f.sample.Rates[i]
		one := shownStream{Stream: s.Stream, Partitions: s.Partitions, Size: s.Size, Codec: s.Codec, Partitioner: s.Partitioner,
			KeyField: s.KeyField, Length: s.Length, Delayed: s.Delayed, Appended: s.Appended, Rate: rounded(rates.Appended), Processors: []shownProcessor{}}
		for j := range s.Processors {
			p := &s.Processors[j]
			one.Processors = append(one.Processors, shownOf(p, &rates.Processors[j]))
			if watched == p.Stream+"/"+p.Processor {
				out.Detail = detailOf(p, &rates.Processors[j])
			}
		}
		out.Streams = append(out.Streams, one)
	}
	return out
}

func shownOf(p *inspect.ProcessorState, r *inspect.ProcessorRates) shownProcessor {
	one := shownProcessor{Processor: p.Processor, Generation: p.Generation, Partitions: len(p.Partitions), Done: rounded(r.Done), Totals: p.Totals, MembersErr: p.MembersErr, Members: []shownMember{}}
	owned := map[string]int{}
	for n := range p.Partitions {
		s := &p.Partitions[n]
		owned[s.Executor]++
		if s.NotReading != nil {
			one.NotReading++
		}
		switch s.Held {
		case "pause":
			one.Paused++
		case "block":
			one.Blocked++
		}
	}
	for _, m := range p.Members {
		one.Members = append(one.Members, shownMember{m.Worker, m.Executor, m.Alive, owned[m.Executor]})
	}
	return one
}

// A detail is a processor with its partitions, a column for each number: a thousand partitions take
// few bytes.
type detail struct {
	Stream    string                `json:"stream"`
	Processor string                `json:"processor"`
	Members   []inspect.MemberState `json:"members"`
	Owners    []string              `json:"owners"`
	Owner     []int                 `json:"owner"` // index in Owners, -1 for none
	Lag       []int64               `json:"lag"`
	Pending   []int64               `json:"pending"`
	Age       []int64               `json:"age"` // ms, of the oldest unacked event
	Lease     []int64               `json:"lease"`
	Epoch     []int64               `json:"epoch"`
	Delayed   []int64               `json:"delayed"`
	Parked    []int64               `json:"parked"`
	Dead      []int64               `json:"dead"`
	Lost      []int64               `json:"lost"`
	Length    []int64               `json:"length"`
	Done      []*rate               `json:"done"`
	Outboxes  map[int]int64         `json:"outboxes,omitempty"` // outputs that wait, by partition
	Notes     map[int]note          `json:"notes"`              // by partition, if there is more to show
}

// A note has the special states of a partition.
type note struct {
	LagMore      bool                     `json:"lag_more,omitempty"`
	Held         string                   `json:"held,omitempty"`
	RunningSince *time.Time               `json:"running_since,omitempty"`
	NotReading   *time.Time               `json:"not_reading,omitempty"`
	Quarantine   *inspect.QuarantineState `json:"quarantine,omitempty"`
	Halt         *inspect.QuarantineState `json:"halt,omitempty"`
	Forgotten    *inspect.ForgottenState  `json:"forgotten,omitempty"`
	Pin          string                   `json:"pin,omitempty"`
	Err          string                   `json:"err,omitempty"`
}

func detailOf(p *inspect.ProcessorState, r *inspect.ProcessorRates) *detail {
	d := &detail{Stream: p.Stream, Processor: p.Processor, Members: p.Members, Owners: []string{}, Outboxes: p.Outboxes, Notes: map[int]note{}}
	for n := range p.Partitions {
		s := &p.Partitions[n]
		owner := -1
		if name := nameOf(s); name != "" {
			if owner = slices.Index(d.Owners, name); owner < 0 {
				owner, d.Owners = len(d.Owners), append(d.Owners, name)
			}
		}
		d.Owner = append(d.Owner, owner)
		d.Lag, d.Pending, d.Age = append(d.Lag, s.Lag), append(d.Pending, s.Pending), append(d.Age, s.Age)
		d.Lease, d.Epoch, d.Length = append(d.Lease, s.LockLeft), append(d.Epoch, s.Epoch), append(d.Length, s.Length)
		d.Delayed, d.Parked = append(d.Delayed, s.Delayed), append(d.Parked, s.Parked)
		d.Dead, d.Lost = append(d.Dead, s.Dead), append(d.Lost, s.Lost)
		d.Done = append(d.Done, rounded(r.Partitions[n]))
		if it := (note{s.LagMore, s.Held, s.RunningSince, s.NotReading, shortened(s.Quarantine), shortened(s.Halt), s.Forgotten, p.Pins[n], s.Err}); it != (note{}) {
			d.Notes[n] = it
		}
	}
	return d
}

// shortened cuts the reason, the text of an error, to a bounded length: every sample repeats it.
func shortened(q *inspect.QuarantineState) *inspect.QuarantineState {
	if q == nil {
		return nil
	}
	short := *q
	short.Reason = cut(q.Reason, recordInList).Text
	return &short
}
