package buses

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

// Calls are what commands do by code of package webhook: it checks, seals and encodes.
type Calls interface {
	// Subscribe takes the body of POST /subscription, and returns the secret that it has made.
	Subscribe(ctx context.Context, client string, body []byte) (secret string, err error)
	Unsubscribe(ctx context.Context, client string, topics ...string) error
	// Publish takes an event as POST /topics/NAME does, and returns its ID with its log.
	Publish(ctx context.Context, client, topic, event string) (id string, err error)
	DeleteTopic(ctx context.Context, topic string) error
	// AddToken makes a token. Without roles it may publish and subscribe.
	AddToken(ctx context.Context, client string, roles []string) (token string, err error)
	RemoveToken(ctx context.Context, id string) error
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
	// Receive returns a handler that prints what is delivered. Without a secret it takes what anybody sends.
	Receive func(secret string, print func(v any, text func(extension.Table)) error) (http.Handler, error)
)
