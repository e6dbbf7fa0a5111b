package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// A look is one look at an app. It reads the keys outside of partitions (metadata, memberships,
// heartbeats) in as few requests as it can: one for each level of keys that name others, or one in
// all if the caller gives the likely keys beforehand.
type look struct {
	c      *store.Client
	count  int64
	shared store.Shared // the first read; values are merged into it
	needed []string     // keys asked for

	// lenient is for views: errors of single parts are reported beside the rest.
	lenient bool
}

func newLook(c *store.Client, count int64) *look { return &look{c: c, count: count} }

// read reads the values of the keys not read yet.
func (l *look) read(ctx context.Context, keys ...string) error {
	l.needed = append(l.needed, keys...)
	return l.readAhead(ctx, keys)
}

// readAhead is read for keys that may be needed.
func (l *look) readAhead(ctx context.Context, keys []string) error {
	var missing []string
	for _, key := range keys {
		if _, known := l.shared.Values[key]; !known {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	s, err := l.c.Shared(ctx, missing)
	if err != nil {
		return err
	}
	if l.shared.Values == nil {
		l.shared = s
	} else {
		maps.Copy(l.shared.Values, s.Values)
	}
	return nil
}

// prepare reads all keys of these streams outside of partitions.
func (l *look) prepare(ctx context.Context, streams []string) error {
	k := l.c.Keys()
	var keys []string
	for _, stream := range streams {
		keys = append(keys, k.Meta(stream))
	}
	if err := l.read(ctx, keys...); err != nil {
		return err
	}
	keys = keys[:0]
	each := func(do func(stream, processor string)) {
		for _, stream := range streams {
			m, _, err := l.meta(stream) // stream reports unreadable ones
			if err != nil {
				continue
			}
			for _, processor := range m.Processors {
				do(stream, processor)
			}
		}
	}
	each(func(stream, processor string) { keys = append(keys, k.Membership(stream, processor)) })
	if err := l.read(ctx, keys...); err != nil {
		return err
	}
	keys = keys[:0]
	each(func(stream, processor string) { keys = append(keys, l.beats(stream, processor)...) })
	return l.read(ctx, keys...)
}

// beats returns the heartbeat keys of a processor's members, none if the membership cannot be read:
// members reports that.
func (l *look) beats(stream, processor string) (keys []string) {
	g, _ := l.group(stream, processor)
	for _, executors := range []map[string]rebalance.Executor{g.Executors, g.Python} {
		for id := range executors {
			keys = append(keys, l.c.Keys().Beat(stream, processor, id))
		}
	}
	return keys
}

// meta returns a stream's metadata, which must have been read, and reports whether it exists.
func (l *look) meta(stream string) (store.Meta, bool, error) {
	key := l.c.Keys().Meta(stream)
	v := l.shared.Values[key]
	if v.Err != nil {
		return store.Meta{}, false, &store.MetaError{Stream: stream, Key: key, Err: v.Err}
	}
	return l.c.KnowMeta(stream, []byte(v.Text))
}

// group returns a membership, which must have been read.
func (l *look) group(stream, processor string) (rebalance.Group, error) {
	key := l.c.Keys().Membership(stream, processor)
	v := l.shared.Values[key]
	g, err := rebalance.Group{}, v.Err
	if err == nil {
		g, err = rebalance.ParseStored(key, []byte(v.Text))
	} else if errors.Is(err, redisconn.ErrWrongType) {
		err = &rebalance.UnreadableError{Key: key, Err: err}
	}
	if err != nil {
		return rebalance.Group{}, fmt.Errorf("stream %s: processor %s: %w", stream, processor, err)
	}
	return g, nil
}

// app looks at the named stream of an app, or at all if only is "". It returns the readable parts.
func (l *look) app(ctx context.Context, only string) (*AppState, error) {
	if err := l.read(ctx, l.c.Keys().Leader()); err != nil {
		return nil, err
	}
	streams := l.shared.Streams
	if only != "" {
		streams = []string{only}
	} else if err := l.shared.StreamsErr; err != nil {
		return nil, err
	}
	if err := l.prepare(ctx, streams); err != nil {
		return nil, err
	}
	l.lenient = true
	a := &AppState{App: l.c.Keys().App, Redis: l.c.Addr(), At: l.shared.Now, Streams: []StreamState{}}
	leader, err := l.leader()
	if err != nil {
		a.LeaderErr = err.Error()
	}
	a.Leader = leader
	for _, name := range streams {
		s, err := l.stream(ctx, name)
		switch _, _, garbled := l.meta(name); {
		case garbled != nil && l.lenient && only == "": // show the others
			if a.Unreadable == nil {
				a.Unreadable = map[string]string{}
			}
			a.Unreadable[name] = garbled.Error()
		case err != nil:
			return nil, err
		case s != nil: // not deleted meanwhile
			a.Streams = append(a.Streams, *s)
		}
	}
	a.hold(l.shared.Rules, l.shared.Now, l.shared.RulesErr)
	return a, nil
}

// leader returns the leading worker, whose key must have been read.
func (l *look) leader() (string, error) {
	v := l.shared.Values[l.c.Keys().Leader()]
	if v.Err != nil {
		return "", fmt.Errorf("leader of app %s: %w", l.c.Keys().App, v.Err)
	}
	worker := v.Text
	if at := strings.LastIndexByte(worker, '/'); at >= 0 { // candidates extend the worker's name
		worker = worker[:at]
	}
	return worker, nil
}

func (l *look) stream(ctx context.Context, stream string) (*StreamState, error) {
	m, ok, err := l.meta(stream)
	if err != nil || !ok {
		return nil, err
	}
	s := &StreamState{
		Stream: stream, Partitions: m.Partitions, Size: m.MaxLen, Codec: m.Codec,
		Partitioner: m.Partitioner, KeyField: m.KeyField, Layout: m.Layout, Kind: m.Kind, Processors: []ProcessorState{},
	}
	seen, err := Places(ctx, l.c, allPlaces(l.c, stream, m), l.count)
	if err != nil {
		return nil, err
	}
	for i, name := range m.Processors {
		own := seen[i*m.Partitions : (i+1)*m.Partitions : (i+1)*m.Partitions]
		p, err := l.processor(ctx, stream, name, m, own)
		if err != nil {
			return nil, err
		}
		s.Processors = append(s.Processors, *p)
	}
	return s, l.sum(ctx, s, seen[:m.Partitions])
}

// allPlaces returns a stream's partitions as each of its processors sees them.
func allPlaces(c *store.Client, stream string, m store.Meta) (places []store.Partition) {
	names := m.Processors
	if len(names) == 0 {
		names = []string{""} // what all processors share
	}
	for _, name := range names {
		places = append(places, c.Partitions(stream, name, m.Numbers())...)
	}
	return places
}

func (l *look) sum(ctx context.Context, s *StreamState, seen []PartitionState) error {
	broken := false
	for _, p := range seen {
		broken = broken || p.Err != ""
		s.Delayed, s.Length = s.Delayed+p.Delayed, s.Length+p.Length
		if s.Appended >= 0 && p.Appended >= 0 && p.Err == "" {
			s.Appended += p.Appended
		} else {
			s.Appended = -1
		}
	}
	if !broken {
		return nil
	}
	// Delayed events can still be counted.
	waiting, err := l.c.CountDelayed(ctx, s.Stream, s.Partitions)
	if errors.Is(err, redisconn.ErrWrongType) {
		err = nil // the partition reports it
	}
	s.Delayed = 0
	for _, n := range waiting {
		s.Delayed += n
	}
	return err
}

// processor returns the state of a processor, whose partitions must have been read.
func (l *look) processor(ctx context.Context, stream, processor string, m store.Meta, seen []PartitionState) (*ProcessorState, error) {
	p := &ProcessorState{Stream: stream, Processor: processor, Partitions: seen}
	if HasOutboxes(l.c, m, processor) {
		var err error
		if p.Outboxes, err = Outboxes(ctx, l.c, l.c.Partitions(stream, processor, m.Numbers()), seen); err != nil {
			return nil, err
		}
	}
	g, members, err := l.members(stream, processor)
	if err != nil && !l.lenient {
		return nil, err
	}
	if err != nil {
		members, p.MembersErr = []MemberState{}, err.Error()
	}
	p.Generation, p.Members, p.Pins, p.Cordons, p.Gone = g.Generation, members, g.Pins, g.Cordons, g.Gone
	workers := map[string]string{}
	for _, member := range p.Members {
		workers[member.Executor] = member.Worker
	}
	for n := range p.Partitions {
		p.Partitions[n].Worker = workers[p.Partitions[n].Executor]
	}
	for _, member := range p.Members {
		owns := func(n int) bool {
			return n >= 0 && n < len(p.Partitions) && p.Partitions[n].Executor == member.Executor
		}
		for n, since := range member.Running {
			if owns(n) {
				p.Partitions[n].RunningSince = &since
			}
		}
		for n, since := range member.NotReading {
			if owns(n) {
				p.Partitions[n].NotReading = &since
			}
		}
	}
	p.sum()
	return p, nil
}

// members returns a membership and its members with their heartbeats, which must have been read.
func (l *look) members(stream, processor string) (rebalance.Group, []MemberState, error) {
	g, err := l.group(stream, processor)
	if err != nil {
		return rebalance.Group{}, nil, err
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
		if err := l.beat(&m, stream, processor); err != nil {
			return rebalance.Group{}, nil, err
		}
		members = append(members, m)
	}
	for id, e := range g.Python {
		m := MemberState{Executor: id, Worker: PythonWorker, JoinedAt: e.JoinedAt.UTC(), Assigned: e.Partitions}
		if err := l.beat(&m, stream, processor); err != nil {
			return rebalance.Group{}, nil, err
		}
		members = append(members, m)
	}
	sort.Slice(members, func(i, j int) bool {
		a, b := &members[i], &members[j]
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Executor, b.Executor)) < 0
	})
	return g, members, nil
}

func (l *look) beat(m *MemberState, stream, processor string) error {
	v := l.shared.Values[l.c.Keys().Beat(stream, processor, m.Executor)]
	if v.Err != nil {
		return fmt.Errorf("stream %s: processor %s: heartbeat of %s: %w", stream, processor, m.Executor, v.Err)
	}
	m.Alive, m.HeartbeatLeft = v.There, v.Left.Milliseconds()
	beat := store.ParseHeartbeat(v.Text)
	m.Running, m.NotReading = beat.Running, beat.NotReading
	return nil
}
