package buses

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/webhook"
)

// targets are the subscribers of buses.
func targets(ctx context.Context, c *store.Client, owner string) (out []extension.Target, err error) {
	buses, err := load(ctx, c, owner)
	for _, b := range buses {
		for n := range b.meta.Partitions {
			for s, err := range b.Subscribers(ctx, n) {
				if s == nil {
					return nil, err
				}
				out = append(out, b.target(n, s))
			}
		}
	}
	return out, err
}

func (b *bus) target(n int, s *webhook.Subscriber) extension.Target {
	state, err := delivery.ParseState([]byte(s.State))
	return extension.Target{
		Owner: b.Name(), Part: s.Name, Processor: webhook.Processor, Noun: "event",
		Pause: func(ctx context.Context, p extension.Pause) (string, error) {
			return s.Name + " is paused", b.change(ctx, n, s.Name, func(w *webhook.Settings) { w.Pause(p.Who, p.Why, p.For) })
		},
		Resume: func(ctx context.Context, _ string) (string, error) {
			return s.Name + " is resumed", b.change(ctx, n, s.Name, (*webhook.Settings).Resume)
		},
		Running: func(ctx context.Context) (int, error) { return b.running(ctx, s.Name) },
		Dead:    letters{b, n, s.Name, s.State != "" && err == nil && state.Dead == 0},
	}
}

func (b *bus) change(ctx context.Context, n int, name string, how func(w *webhook.Settings)) error {
	return b.Change(ctx, n, name, false, func(s *webhook.Subscriber) error {
		how(s.Settings)
		return nil
	})
}

// running returns how many events of a subscriber are in a request, as far as its owner has stored that.
func (b *bus) running(ctx context.Context, name string) (events int, err error) {
	s, err := b.find(ctx, name)
	if err != nil || s == nil || s.Open == nil || !s.Open.Next.IsZero() {
		return 0, err
	}
	return int(s.Open.Events), nil
}

// letters are the dead letters of a subscriber, which lie with those of others.
type letters struct {
	*bus
	n    int
	name string
	none bool // it never had any
}

const lettersAtOnce = 200

// List returns what died of the subscriber. The key is the URL of the event.
func (d letters) List(ctx context.Context, f extension.Filter) iter.Seq2[extension.Failure, error] {
	return func(yield func(extension.Failure, error) bool) {
		if d.none {
			return
		}
		listed, after := 0, ""
		for {
			some, err := d.Client().DeadLetters(ctx, d.place(), after, lettersAtOnce)
			if err != nil {
				yield(extension.Failure{}, err)
				return
			}
			for i := range some {
				after = some[i].ID
				one := d.failure(&some[i], f.Fields)
				if some[i].Key != d.name || !f.Chooses(&one) {
					continue
				}
				if listed++; !yield(one, nil) || listed == f.Limit {
					return
				}
			}
			if len(some) < lettersAtOnce {
				return
			}
		}
	}
}

func (d letters) place() store.Partition {
	return d.Client().Partition(d.Name(), webhook.Processor, d.n)
}

func (d letters) failure(l *store.DeadLetter, fields bool) extension.Failure {
	out := extension.Failure{
		Partition: d.n, ID: l.ID, State: extension.Dead, Reason: l.Reason, Attempts: l.Attempts, Last: &l.Last, Died: &l.Last, Error: l.Error, Epoch: l.Epoch,
	}
	event := map[string]any{}
	for _, text := range l.Entry.Values { // it has one field
		if text, ok := text.(string); ok && json.Unmarshal([]byte(text), &event) == nil {
			out.Key, _ = event["url"].(string)
		}
	}
	if fields {
		out.Fields = event
	}
	return out
}

// Retry refuses: a topic goes to all of its subscribers.
func (d letters) Retry(context.Context, []extension.Failure) ([]extension.Failure, error) {
	const text = "what is dead at %s/%s cannot be sent to it again: publish the event anew, which goes to all subscribers of its topic, or dead drop it"
	return nil, fmt.Errorf(text, d.Name(), d.name)
}

// Drop deletes dead letters.
func (d letters) Drop(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	var ids []string
	for _, one := range of {
		ids = append(ids, one.ID)
	}
	if err := d.Client().DropDead(ctx, d.place(), ids); err != nil {
		return nil, err
	}
	return of, nil
}
