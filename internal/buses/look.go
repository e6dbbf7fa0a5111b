package buses

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/webhook"
)

// atOnce is how many subscribers are looked at together.
const atOnce = 500

// Subscribers looks at the subscribers of a bus that has so many partitions, in no order. An error is the last.
func Subscribers(ctx context.Context, b *webhook.Bus, partitions int) iter.Seq2[*SubscriberState, error] {
	return func(yield func(*SubscriberState, error) bool) {
		for n := range partitions {
			var all []*SubscriberState
			for stored, err := range b.Subscribers(ctx, n) {
				if stored == nil {
					yield(nil, err)
					return
				}
				all = append(all, stateOf(b.Name(), stored, err))
			}
			for some := range slices.Chunk(all, atOnce) {
				if err := look(ctx, b, some); err != nil {
					yield(nil, err)
					return
				}
				for _, s := range some {
					if !yield(s, nil) {
						return
					}
				}
			}
		}
	}
}

// find looks at one subscriber, with its details; nil if there is none.
func (b *bus) find(ctx context.Context, name string) (*SubscriberState, error) {
	n := b.partition(name)
	stored, err := b.Subscriber(ctx, n, name)
	if err != nil || stored.Settings == nil {
		return nil, err
	}
	s := stateOf(b.Name(), stored, nil)
	if s.Err != nil {
		return nil, s.Err
	}
	s.detail(n)
	return s, look(ctx, b.Bus, []*SubscriberState{s})
}

// look sets what the logs say of subscribers, whose states were read before.
func look(ctx context.Context, b *webhook.Bus, some []*SubscriberState) error {
	some = slices.DeleteFunc(slices.Clone(some), func(s *SubscriberState) bool { return s.Err != nil })
	needed := map[webhook.Log]bool{}
	for _, s := range some {
		for name := range s.stored.Positions(s.Settings.Topics) {
			if log, err := webhook.ParseLog(name); err == nil {
				needed[log] = true
			}
		}
	}
	extents, err := b.Extents(ctx, slices.Collect(maps.Keys(needed)))
	if err != nil {
		return err
	}
	known := map[string]delivery.Extent{}
	for log, e := range extents {
		known[log.String()] = e
	}
	var positions []webhook.Position
	var whose []*SubscriberState
	for _, s := range some {
		f := s.stored.Figures(s.Settings.Topics, known)
		s.Sent, s.Queued, s.Dropped, s.Dead, s.Failed = f.Sent, f.Queued, f.Dropped, f.Dead, f.Failed
		for name, at := range s.stored.Positions(s.Settings.Topics) {
			if log, err := webhook.ParseLog(name); err == nil && s.Queued > 0 && at.N < known[name].Last.N {
				positions, whose = append(positions, webhook.Position{Log: log, At: at}), append(whose, s)
			}
		}
	}
	next, err := b.Next(ctx, positions)
	for i, id := range next {
		s, end := whose[i], whose[i].Settings.Topics[positions[i].Log.String()].End
		if id.N > 0 && (end == 0 || id.N <= end) && (s.Oldest.IsZero() || id.MS < s.Oldest.UnixMilli()) {
			s.Oldest = timeOf(id.MS)
		}
	}
	return err
}

// A TopicState is a topic as it is now.
type TopicState struct {
	Bus         string    `json:"bus"`
	Topic       string    `json:"topic"`
	Publisher   string    `json:"publisher"`
	Events      int64     `json:"events"`
	Length      int64     `json:"length"`
	Oldest      time.Time `json:"oldest,omitzero"`
	Subscribers int       `json:"subscribers"`
}

// Topics looks at the topics of a bus, by name. It does not count their subscribers.
func Topics(ctx context.Context, b *webhook.Bus) (all []TopicState, err error) {
	stored, err := b.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var logs []webhook.Log
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		all = append(all, TopicState{Bus: b.Name(), Topic: name, Publisher: stored[name].Publisher})
		logs = append(logs, webhook.Log{Topic: name, Partition: runnel.XXHash.Func(name, max(1, stored[name].Partitions))})
	}
	extents, err := b.Extents(ctx, logs)
	for i := range all {
		e := extents[logs[i]]
		all[i].Events = e.Last.N
		if e.First.N > 0 {
			all[i].Length, all[i].Oldest = e.Last.N-e.First.N+1, timeOf(e.First.MS)
		}
	}
	return all, err
}
