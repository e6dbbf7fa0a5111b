// Package inspect is a read-only view of an app: its streams and processors, who
// the members are, who owns which partition, and how far behind it is. It changes
// nothing in Redis, not even the life of a heartbeat.
//
// The parts are read one after the other, so that what changes meanwhile may be
// seen in one part and not yet in another; what is told of one partition was
// true at one moment.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/rebalance"
)

// CountAtMost is how many entries of a partition are counted one by one, where the
// server does not know how many are not delivered and the caller says nothing else.
const CountAtMost = 10_000

// An AppState is an app as Redis knows it.
type AppState struct {
	App     string        `json:"app"`
	Redis   string        `json:"redis"`  // its address
	Leader  string        `json:"leader"` // worker that runs leader-only tasks, "" for none
	Streams []StreamState `json:"streams"`

	Rules    []RuleState `json:"rules"` // in force
	RulesErr string      `json:"rules_err,omitempty"`
}

// A StreamState is a stream and its registered processors.
type StreamState struct {
	Stream      string           `json:"stream"`
	Partitions  int              `json:"partitions"`
	Size        int64            `json:"size"`
	Codec       string           `json:"codec"`
	Partitioner string           `json:"partitioner"`
	KeyField    string           `json:"key_field"`
	Layout      string           `json:"layout"`
	Delayed     int64            `json:"delayed"` // events that wait for their time
	Processors  []ProcessorState `json:"processors"`
}

// A ProcessorState is a processor, its members and their partitions.
type ProcessorState struct {
	Stream     string           `json:"stream"`
	Processor  string           `json:"processor"`
	Generation int64            `json:"generation"` // of the membership
	Members    []MemberState    `json:"members"`    // by worker, then executor
	Partitions []PartitionState `json:"partitions"` // each one, in order
	Totals     Totals           `json:"totals"`

	Pins    map[int]string       `json:"pins,omitempty"`    // partition to worker, by operators
	Cordons map[string]time.Time `json:"cordons,omitempty"` // workers that get nothing else, since when
}

// A MemberState is one executor.
type MemberState struct {
	Executor      string    `json:"executor"`
	Worker        string    `json:"worker"`
	JoinedAt      time.Time `json:"joined_at"`
	Alive         bool      `json:"alive"`          // it has a heartbeat
	HeartbeatLeft int64     `json:"heartbeat_left"` // ms
	Assigned      []int     `json:"assigned"`       // partitions

	Pinned  []int      `json:"pinned,omitempty"`  // partitions that operators gave to its worker
	Drained *time.Time `json:"drained,omitempty"` // since when its worker gets nothing else

	// Running says of partitions whose function has been running for long, by
	// the worker's clock, since when it has.
	Running map[int]time.Time `json:"running,omitempty"`
}

// A PartitionState is a partition as one processor sees it.
type PartitionState struct {
	Partition int    `json:"partition"`
	Executor  string `json:"executor"`  // that holds the lock, "" for none
	Worker    string `json:"worker"`    // of that executor, "" if it is no member
	LockLeft  int64  `json:"lock_left"` // ms
	Epoch     int64  `json:"epoch"`     // of the last ownership, 0 if there was none
	Tenure    string `json:"tenure"`    // of the owner
	Group     string `json:"group"`     // consumer group, "" if there is none
	Pending   int64  `json:"pending"`   // delivered, not acked
	Lag       int64  `json:"lag"`       // appended, not yet acked; it includes the pending
	LagMore   bool   `json:"lag_more"`  // the lag is larger than that: who counted stopped there
	Length    int64  `json:"length"`    // entries in Redis
	Floor     string `json:"floor"`     // everything up to here is acked
	End       string `json:"end"`       // the last entry appended
	Oldest    string `json:"oldest"`    // the first entry that is not acked, "" if all is
	Age       int64  `json:"age"`       // ms since that was appended, by Redis' clock
	Delayed   int64  `json:"delayed"`   // waiting for their time, whoever processes them
	Parked    int64  `json:"parked"`    // taken out of the partition, to be tried again or behind such an event
	Retrying  int64  `json:"retrying"`  // of the parked, those that failed; -1: too many to count
	Dead      int64  `json:"dead"`      // dead letters
	Lost      int64  `json:"lost"`      // removed before they were processed

	Held         string           `json:"held,omitempty"`          // "block" or "pause": rules hold it back
	RunningSince *time.Time       `json:"running_since,omitempty"` // an iteration that takes long, by the worker's clock
	Quarantine   *QuarantineState `json:"quarantine,omitempty"`
	Err          string           `json:"err,omitempty"`
}

// A QuarantineState is why a partition processes nothing.
type QuarantineState struct {
	Reason string    `json:"reason"`
	Event  string    `json:"event"` // entry ID, "" when it was no event's fault
	Worker string    `json:"worker"`
	At     time.Time `json:"at"`
}

// Totals are sums over the partitions of a processor.
type Totals struct {
	Owned    int   `json:"owned"` // partitions that somebody holds the lock of
	Pending  int64 `json:"pending"`
	Lag      int64 `json:"lag"`
	LagMore  bool  `json:"lag_more"` // that of one partition at least is larger
	Age      int64 `json:"age"`      // the largest
	Length   int64 `json:"length"`
	Delayed  int64 `json:"delayed"`
	Parked   int64 `json:"parked"`
	Retrying int64 `json:"retrying"` // -1: that of one partition at least was not counted
	Dead     int64 `json:"dead"`
	Lost     int64 `json:"lost"`

	Quarantined int `json:"quarantined"` // partitions
	Unknown     int `json:"unknown"`     // partitions that could not be looked at, see their err
}

// Sum returns the totals of partitions.
func Sum(partitions []PartitionState) (t Totals) {
	for _, s := range partitions {
		if s.Executor != "" {
			t.Owned++
		}
		if s.Err != "" {
			t.Unknown++
		}
		if s.Quarantine != nil {
			t.Quarantined++
		}
		t.Pending += s.Pending
		t.Lag += s.Lag
		t.LagMore = t.LagMore || s.LagMore
		t.Age = max(t.Age, s.Age)
		t.Length += s.Length
		t.Delayed += s.Delayed
		t.Parked += s.Parked
		if s.Retrying < 0 || t.Retrying < 0 {
			t.Retrying = -1
		} else {
			t.Retrying += s.Retrying
		}
		t.Dead += s.Dead
		t.Lost += s.Lost
	}
	return t
}

// App looks at an app with the named stream, with all its streams if only is "".
// A stream without metadata is left out. count bounds how many entries of a
// partition are counted one by one, 0 for CountAtMost.
func App(ctx context.Context, c *rstream.Client, only string, count int64) (*AppState, error) {
	names := []string{only}
	var err error
	if only == "" {
		if names, err = c.Streams(ctx); err != nil {
			return nil, err
		}
	}
	a := &AppState{App: c.Keys().App, Redis: c.Addr(), Streams: []StreamState{}}
	if a.Leader, err = leader(ctx, c); err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := Stream(ctx, c, name, count)
		switch {
		case err != nil:
			return nil, err
		case s != nil: // not deleted meanwhile
			a.Streams = append(a.Streams, *s)
		}
	}
	a.hold(c.Rules(ctx))
	return a, nil
}

// leader is the worker whose candidate holds the leader's lock; each candidate
// adds something to the name.
func leader(ctx context.Context, c *rstream.Client) (string, error) {
	token, err := c.Redis().Get(ctx, c.Keys().Leader()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("leader of app %s: %w", c.Keys().App, err)
	}
	if at := strings.LastIndexByte(token, '/'); at >= 0 {
		token = token[:at]
	}
	return token, nil
}

// Stream looks at one stream and all its processors; nil if it has no metadata.
// count is as for App.
func Stream(ctx context.Context, c *rstream.Client, stream string, count int64) (*StreamState, error) {
	m, ok, err := c.LoadMeta(ctx, stream)
	if err != nil || !ok {
		return nil, err
	}
	s := &StreamState{
		Stream: stream, Partitions: m.Partitions, Size: m.Size, Codec: m.Codec,
		Partitioner: m.Partitioner, KeyField: m.KeyField, Layout: m.Layout, Processors: []ProcessorState{},
	}
	waiting, err := c.CountDelayed(ctx, stream, m.Partitions)
	if err != nil {
		return nil, err
	}
	for _, n := range waiting {
		s.Delayed += n
	}
	for _, name := range m.Processors {
		p, err := Processor(ctx, c, stream, name, count)
		if err != nil {
			return nil, err
		}
		s.Processors = append(s.Processors, *p)
	}
	return s, nil
}

// Processor looks at one processor of a stream that has metadata. count is as for
// App.
func Processor(ctx context.Context, c *rstream.Client, stream, processor string, count int64) (*ProcessorState, error) {
	m, ok, err := c.LoadMeta(ctx, stream)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("stream %s: no metadata", stream)
	}
	p := &ProcessorState{Stream: stream, Processor: processor}
	g, members, err := Members(ctx, c, stream, processor)
	if err != nil {
		return nil, err
	}
	p.Generation, p.Members, p.Pins, p.Cordons = g.Generation, members, g.Pins, g.Cordons
	workers := map[string]string{}
	for _, member := range p.Members {
		workers[member.Executor] = member.Worker
	}
	all := make([]int, m.Partitions)
	for n := range all {
		all[n] = n
	}
	if p.Partitions, err = Partitions(ctx, c, stream, processor, all, count); err != nil {
		return nil, err
	}
	for n := range p.Partitions {
		p.Partitions[n].Worker = workers[p.Partitions[n].Executor]
	}
	for _, member := range p.Members {
		for n, since := range member.Running {
			if n < len(p.Partitions) && p.Partitions[n].Executor == member.Executor {
				p.Partitions[n].RunningSince = &since
			}
		}
	}
	p.Totals = Sum(p.Partitions)
	return p, nil
}

// Members returns a processor's membership, and its members with what their heartbeats
// tell.
func Members(ctx context.Context, c *rstream.Client, stream, processor string) (rebalance.Group, []MemberState, error) {
	value, err := c.Group(stream, processor).Load(ctx)
	if err != nil {
		return rebalance.Group{}, nil, err
	}
	g, err := rebalance.Parse(value)
	if err != nil {
		return rebalance.Group{}, nil, fmt.Errorf("stream %s: processor %s: %w", stream, processor, err)
	}
	members := []MemberState{}
	for id, e := range g.Executors {
		m := MemberState{Executor: id, Worker: e.Worker, JoinedAt: e.JoinedAt.UTC(), Assigned: e.Partitions}
		for n, worker := range g.Pins {
			if worker == e.Worker {
				m.Pinned = append(m.Pinned, n)
			}
		}
		slices.Sort(m.Pinned)
		if at, is := g.Cordons[e.Worker]; is {
			at = at.UTC()
			m.Drained = &at
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b MemberState) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Executor, b.Executor))
	})
	if err := beats(ctx, c, stream, processor, members); err != nil {
		return rebalance.Group{}, nil, fmt.Errorf("stream %s: processor %s: heartbeats: %w", stream, processor, err)
	}
	return g, members, nil
}

// beats fills in what the members' heartbeats tell.
func beats(ctx context.Context, c *rstream.Client, stream, processor string, members []MemberState) error {
	pipe := c.Redis().Pipeline()
	lives, values := make([]*redis.DurationCmd, len(members)), make([]*redis.StringCmd, len(members))
	for i, member := range members {
		key := c.Keys().Beat(stream, processor, member.Executor)
		lives[i], values[i] = pipe.PTTL(ctx, key), pipe.Get(ctx, key)
	}
	pipe.Exec(ctx) // every reply carries its error
	for i := range members {
		if err := lives[i].Err(); err != nil {
			return err
		}
		left := lives[i].Val() // negative: there is none, or one that never ends
		members[i].Alive, members[i].HeartbeatLeft = left != -2, max(left.Milliseconds(), 0)
		members[i].Running = rstream.ParseBeat(values[i].Val()).Running
	}
	return nil
}

// Partitions looks at some partitions of a processor, in one round trip per 256 of
// them unless entries have to be counted. Who the workers are it does not tell. count
// is as for App.
func Partitions(ctx context.Context, c *rstream.Client, stream, processor string, numbers []int, count int64) ([]PartitionState, error) {
	count = cmp.Or(count, CountAtMost)
	places := make([]rstream.Place, len(numbers))
	for i, n := range numbers {
		places[i] = c.Place(stream, processor, n)
	}
	views, err := c.Views(ctx, places)
	if err != nil {
		return nil, err
	}
	out := make([]PartitionState, 0, len(views))
	for i, v := range views {
		s := PartitionState{
			Partition: numbers[i], Executor: v.Owner, LockLeft: v.LockLeft.Milliseconds(),
			Epoch: v.Epoch, Tenure: v.Tenure, Group: v.Group, Pending: v.Pending, Lag: v.Behind,
			Length: v.Length, Floor: v.Floor, End: v.End, Oldest: v.Oldest, Delayed: v.Delayed,
			Parked: v.Parked, Retrying: v.Failed, Dead: v.Dead, Lost: v.Lost, Quarantine: quarantineOf(v.Quarantine),
		}
		if v.Oldest != "" {
			// An entry with an ID of the future was appended by somebody with such a clock.
			s.Age = max(v.Now.Sub(rstream.TimeOfID(v.Oldest)), 0).Milliseconds()
		}
		switch {
		case v.Err != nil:
			s.Err = v.Err.Error()
		case v.Behind < 0:
			if s.Lag, err = c.CountBehind(ctx, places[i], v.Delivered, count); err != nil {
				return nil, err
			}
			if s.LagMore = s.Lag > count; s.LagMore {
				s.Lag = count
			}
		}
		s.Lag += s.Pending
		out = append(out, s)
	}
	return out, nil
}

func quarantineOf(q *rstream.Quarantine) *QuarantineState {
	if q == nil {
		return nil
	}
	return &QuarantineState{Reason: q.Reason, Event: q.Event, Worker: q.Worker, At: time.UnixMilli(q.At).UTC()}
}
