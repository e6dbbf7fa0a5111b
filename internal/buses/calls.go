package buses

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// Calls are what commands do by code of package webhook: it checks, seals and encodes.
type Calls interface {
	// Subscribe stores what a subscriber wants, and returns the secret that it has made.
	Subscribe(ctx context.Context, w *Wish) (secret string, err error)
	Unsubscribe(ctx context.Context, client string, topics ...string) error
	// Publish publishes an event that is JSON, as the client, and returns its ID with its log.
	Publish(ctx context.Context, client, topic, event string) (id string, err error)
	DeleteTopic(ctx context.Context, topic string) error
	// AddToken makes a token. Without roles it may publish and subscribe.
	AddToken(ctx context.Context, client string, roles []string) (token string, err error)
}

// A Wish is what a subscriber wants.
type Wish struct {
	Client, Callback, UUID, Format string
	Topics                         []string
	Max                            int
	Timeout                        time.Duration // negative: none
	Secret                         bool          // make one
	Hosts                          Hosts
}

// Hosts are callbacks that are allowed although they are not public, or without TLS.
type Hosts struct {
	HTTP      bool
	Addresses []netip.Prefix
}

// An Opener opens a bus that is in Redis.
type Opener func(c *store.Client, name string, meta store.Meta, allow Hosts) (Calls, error)

// What package webhook sets.
var (
	// Open opens a bus without the code of its app.
	Open Opener
	// Declare adds a bus to a *runnel.App without code, and returns its API. open says that nobody is root, or secrets are not sealed.
	Declare func(app any, name string, allow Hosts) (api http.Handler, open []string, err error)
	// Receive returns a handler that calls fn with what is delivered. Without a secret it takes what anybody sends.
	Receive func(secret string, fn func(*Received) error) (http.Handler, error)
)

// Received is what a request has delivered to webhook listen.
type Received struct {
	Batch   string          `json:"batch"`
	Attempt int             `json:"attempt"`
	Epoch   int64           `json:"epoch"`
	Events  []ReceivedEvent `json:"events"`
}

// A ReceivedEvent is an event of that.
type ReceivedEvent struct {
	Topic string    `json:"topic"`
	Type  string    `json:"type"`
	URL   string    `json:"url"`
	T     time.Time `json:"t"`
	Data  any       `json:"data,omitempty"`
}
