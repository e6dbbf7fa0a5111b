package buses

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

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
	change := func(ctx context.Context, how func(w *webhook.Settings)) error {
		return b.Change(ctx, n, s.Name, false, func(s *webhook.Subscriber) error {
			how(s.Settings)
			return nil
		})
	}
	return extension.Target{
		Owner: b.Name(), Part: s.Name, Processor: webhook.Processor, Noun: "event",
		Pause: func(ctx context.Context, p extension.Pause) (string, error) {
			return s.Name + " is paused", change(ctx, func(w *webhook.Settings) { w.Pause(p.Who, p.Why, p.For) })
		},
		Resume: func(ctx context.Context, _ string) (string, error) {
			return s.Name + " is resumed", change(ctx, (*webhook.Settings).Resume)
		},
		Running: func(ctx context.Context) (events int, err error) { // in a request, as far as its owner has stored that
			s, err := b.Subscriber(ctx, n, s.Name)
			if err != nil || s.Settings == nil {
				return 0, err
			}
			now := stateOf(b.Name(), n, s, nil)
			if now.Attempt == 0 || now.stored.Open.Until != 0 {
				return 0, now.Err
			}
			return int(now.InFlight), nil
		},
		Dead: letters{b, b.Client().Partition(b.Name(), webhook.Processor, n), s.Name, s.State.Batches == 0 || s.State.Dead > 0},
	}
}

// letters are the dead letters of a subscriber, which lie with those of others.
type letters struct {
	*bus
	place store.Partition
	name  string
	any   bool // there may be some
}

const lettersAtOnce = 200

// List returns what died of the subscriber. The key is the URL of the event.
func (d letters) List(ctx context.Context, f extension.Filter) iter.Seq2[extension.Failure, error] {
	return f.Of(func(yield func(extension.Failure, error) bool) {
		for after, more := "", d.any; more; {
			some, err := d.Client().DeadLetters(ctx, d.place, after, lettersAtOnce)
			if err != nil {
				yield(extension.Failure{}, err)
				return
			}
			for _, l := range some {
				if after = l.ID; l.Key == d.name && !yield(failure(&l), nil) {
					return
				}
			}
			more = len(some) == lettersAtOnce
		}
	})
}

func failure(l *store.DeadLetter) extension.Failure {
	event := map[string]any{}
	for _, text := range l.Entry.Values { // it has one field
		text, _ := text.(string)
		_ = json.Unmarshal([]byte(text), &event) // else the letter is another program's
	}
	url, _ := event["url"].(string)
	return extension.Failure{
		Partition: l.Partition, ID: l.ID, Key: url, State: extension.Dead, Reason: l.Reason, Attempts: l.Attempts, Last: &l.Last, Died: &l.Last, Error: l.Error,
		Epoch: l.Epoch, Fields: event,
	}
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
	if err := d.Client().DropDead(ctx, d.place, ids); err != nil {
		return nil, err
	}
	return of, nil
}
