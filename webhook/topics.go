package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

var (
	// ErrClaimed is returned to who publishes to a topic of another publisher.
	ErrClaimed = refusef(http.StatusForbidden, "the topic belongs to another publisher")
	// ErrNoTopic is returned for a topic that does not exist.
	ErrNoTopic = refusef(http.StatusNotFound, "there is no such topic")
	// ErrNoSubscriber is returned for a subscriber that does not exist.
	ErrNoSubscriber = iwebhook.ErrNoSubscriber
)

// Topic is a topic as it is now.
type Topic struct {
	Name      string
	Publisher string    // "": none yet
	Events    int64     // ever published
	Length    int64     // in Redis
	Oldest    time.Time // of these; zero for none
}

var (
	topicName  = regexp.MustCompile(`^[a-z_]+$`)
	clientName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// checkTopic returns what is wrong with the name of a topic. With the name of the bus it is that of a stream.
func (b *Bus) checkTopic(name string) error {
	if most := 64 - len(b.name) - 1; len(name) > most || !topicName.MatchString(name) {
		return invalidf("topic %.80q: a name has 1 to %d lower-case letters and _", name, most)
	}
	return nil
}

func checkClient(name string) error {
	if !clientName.MatchString(name) {
		return invalidf("client %.80q: a name has 1 to 64 letters, digits, - and _", name)
	}
	return nil
}

// claim makes a topic, and client its publisher if it has none; "" makes the topic alone. What succeeds is believed for a while.
func (b *Bus) claim(ctx context.Context, topic, client string) error {
	_, err := b.claims.look(topic+" "+client, func() (done bool, err error) {
		for {
			t, err := b.calls.Topic(ctx, topic)
			if err != nil {
				return false, err
			}
			if _, done := b.streams.Load(topic); !done || t == nil { // it is new, or the server has lost all that was stored
				if err := b.ensureStream(ctx, topic); err != nil {
					return false, err
				}
			}
			switch {
			case t == nil || t.Publisher == "" && client != "":
				err = b.calls.ReplaceTopic(ctx, topic, t, &iwebhook.Topic{V: 1, Publisher: client})
				if !errors.Is(err, iwebhook.ErrConflict) {
					return true, err
				}
			case client != "" && t.Publisher != client:
				return false, fmt.Errorf("topic %s: %w", topic, ErrClaimed)
			default:
				return true, nil
			}
		}
	})
	return err
}

// ensureStream stores the metadata of a topic's stream.
func (b *Bus) ensureStream(ctx context.Context, topic string) error {
	_, err := b.calls.Client().EnsureMeta(ctx, b.calls.Stream(topic), store.Meta{
		Kind: store.KindTopic, Partitions: iwebhook.TopicPartitions, MaxLen: b.opts.MaxLen, Overflow: b.opts.Overflow.String(),
		DedupWindow: b.opts.DedupWindow.Milliseconds(), Codec: codec.JSON.Name(), Partitioner: runnel.XXHash.Name,
		Layout: b.stream.Meta.Layout,
	})
	if err == nil {
		b.streams.Store(topic, true)
	}
	return err
}

// Topics returns all topics by name.
func (b *Bus) Topics(ctx context.Context) ([]Topic, error) {
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	looked, err := buses.Topics(ctx, b.calls)
	var all []Topic
	for _, t := range looked {
		all = append(all, Topic{Name: t.Topic, Publisher: t.Publisher, Events: t.Events, Length: t.Length, Oldest: t.Oldest})
	}
	return all, err
}

// DeleteTopic makes a topic that nobody publishes to any more: subscriptions to it end where they are, what is queued is still delivered,
// and its name is free. It takes a second longer than processes remember who publishes, and goes on when ctx ends. The error is ErrNoTopic if there is none.
func (b *Bus) DeleteTopic(ctx context.Context, topic string) error {
	if err := b.ready(ctx); err != nil {
		return err
	}
	t, err := b.calls.Topic(ctx, topic)
	if err != nil || t == nil {
		return cmp.Or(err, fmt.Errorf("topic %s: %w", topic, ErrNoTopic))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletePatience)
	defer cancel()
	closed := &iwebhook.Topic{V: 1, Publisher: closedTopic}
	if err := b.calls.ReplaceTopic(ctx, topic, t, closed); err != nil {
		return err
	}
	b.claims.forget()
	time.Sleep(believed + believed/10) // others publish as long as they believe that it is theirs
	if err := (subscriptions{b}).endAll(ctx, topic); err != nil {
		return err
	}
	return b.calls.ReplaceTopic(ctx, topic, closed, nil)
}

// deletePatience is for how long a topic is being deleted, even if ctx ends: half of it would block the name.
const deletePatience = 30 * time.Second

// closedTopic is the publisher of a topic that is being deleted, and no name of a client.
const closedTopic = "(being deleted)"
