package buses

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/webhook"
)

// A Subscriber is one at the moment of a look.
type Subscriber struct {
	Name     string
	Settings *webhook.Settings
	State    delivery.State
	delivery.Figures
	Oldest time.Time // of what is queued; zero for nothing
	Err    error     // why it is not readable; then nothing else is known
}

// atOnce is how many subscribers are looked at together.
const atOnce = 500

// Subscribers looks at the subscribers of a bus that has so many partitions, in no order. An error is the last.
func Subscribers(ctx context.Context, b *webhook.Bus, partitions int) iter.Seq2[*Subscriber, error] {
	return func(yield func(*Subscriber, error) bool) {
		for n := range partitions {
			var some []*Subscriber
			flush := func() (more bool) {
				if err := look(ctx, b, some); err != nil {
					yield(nil, err)
					return false
				}
				for _, s := range some {
					if !yield(s, nil) {
						return false
					}
				}
				some = nil
				return true
			}
			for stored, err := range b.Subscribers(ctx, n) {
				if stored == nil {
					yield(nil, err)
					return
				}
				some = append(some, read(stored, err))
				if len(some) == atOnce && !flush() {
					return
				}
			}
			if !flush() {
				return
			}
		}
	}
}

// Find looks at one subscriber of a delivery partition, nil if there is none.
func Find(ctx context.Context, b *webhook.Bus, n int, name string) (*Subscriber, error) {
	stored, err := b.Subscriber(ctx, n, name)
	if stored == nil || stored.Settings == nil {
		return nil, err
	}
	s := read(stored, err)
	return s, look(ctx, b, []*Subscriber{s})
}

func read(stored *webhook.Subscriber, err error) *Subscriber {
	s := &Subscriber{Name: stored.Name, Settings: stored.Settings, Err: err}
	if stored.State != "" && err == nil {
		s.State, s.Err = delivery.ParseState([]byte(stored.State))
	}
	return s
}

// look sets what the logs say of subscribers, whose states were read before.
func look(ctx context.Context, b *webhook.Bus, some []*Subscriber) error {
	needed := map[webhook.Log]bool{}
	at := make([]map[string]delivery.ID, len(some))
	for i, s := range some {
		if s.Err != nil {
			continue
		}
		at[i] = s.State.Positions(s.Settings.Topics)
		for name := range at[i] {
			if log, err := webhook.ParseLog(name); err == nil {
				needed[log] = true
			}
		}
	}
	var logs []webhook.Log
	for log := range needed {
		logs = append(logs, log)
	}
	extents, err := b.Extents(ctx, logs)
	if err != nil {
		return err
	}
	known := map[string]delivery.Extent{}
	for log, e := range extents {
		known[log.String()] = e
	}
	var positions []webhook.Position
	var whose []*Subscriber
	for i, s := range some {
		if s.Err != nil {
			continue
		}
		s.Figures = s.State.Figures(s.Settings.Topics, known)
		for name, id := range at[i] {
			if log, err := webhook.ParseLog(name); err == nil && s.Queued > 0 && id.N < known[name].Last.N {
				positions, whose = append(positions, webhook.Position{Log: log, At: id}), append(whose, s)
			}
		}
	}
	next, err := b.Next(ctx, positions)
	for i, id := range next {
		span := whose[i].Settings.Topics[positions[i].Log.String()]
		if when := time.UnixMilli(id.MS).UTC(); id.N > 0 && (span.End == 0 || id.N <= span.End) && (whose[i].Oldest.IsZero() || when.Before(whose[i].Oldest)) {
			whose[i].Oldest = when
		}
	}
	return err
}

// A Topic is one at the moment of a look.
type Topic struct {
	Name, Publisher string // "": none yet
	Log             webhook.Log
	Events          int64     // ever published
	Length          int64     // in Redis
	Oldest          time.Time // of these; zero for none
}

// Topics looks at the topics of a bus, by name.
func Topics(ctx context.Context, b *webhook.Bus) (all []*Topic, err error) {
	stored, err := b.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var logs []webhook.Log
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		t := &Topic{Name: name, Publisher: stored[name].Publisher, Log: logOf(name, stored[name])}
		all, logs = append(all, t), append(logs, t.Log)
	}
	extents, err := b.Extents(ctx, logs)
	for _, t := range all {
		e := extents[t.Log]
		t.Events = e.Last.N
		if e.First.N > 0 {
			t.Length, t.Oldest = e.Last.N-e.First.N+1, time.UnixMilli(e.First.MS).UTC()
		}
	}
	return all, err
}
