package webhook

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

const (
	flagAddr      = "addr"
	flagClient    = "client"
	flagSecret    = "secret"
	flagAllowHTTP = "allow-http"
	flagAllow     = "allow"
)

func init() { buses.Code = new(counts).commands() }

func (c *counts) commands() []extension.Command {
	once := c.change("publish TOPIC JSON", "publish an event",
		`PROG webhook publish orders '{"type": "update", "url": "https://shop.example.com/orders/7"}' --client shop`, publish,
		extension.Flag{Name: flagClient, Usage: "as the client of this `NAME`", Default: ""}, allowFlags()[0])
	once.Changes = false // it asks nothing, and is not audited
	return []extension.Command{
		once,
		c.change("subscribe CLIENT CALLBACK TOPIC...", "have events of topics sent to a client, and of no others",
			"PROG webhook subscribe mail https://mail.example.com/hooks orders customers --secret", subscribe,
			append(allowFlags(),
				extension.Flag{Name: "max", Usage: "at most `N` events in a batch", Default: 100},
				extension.Flag{Name: "timeout", Usage: "for how long an event waits for others, a `TIME`; 0: not at all", Default: 500 * time.Millisecond},
				extension.Flag{Name: flagSecret, Usage: "make a secret that signs batches, and print it", Default: false},
				extension.Flag{Name: "uuid", Usage: "send this `TEXT` as the user of HTTP Basic", Default: ""},
				extension.Flag{Name: "format", Usage: "`FORMAT` of a batch: array or single", Default: "array"})...),
		c.change("unsubscribe CLIENT [TOPIC...]", "end topics of a client where they are; without a topic forget the client, with what is queued",
			"PROG webhook unsubscribe mail customers", unsubscribe),
		c.change("topic rm NAME", "remove a topic: what is queued is still sent",
			"PROG webhook topic rm orders", removeTopic),
		c.change("token add CLIENT", "make a token of the HTTP API, and print it",
			"PROG webhook token add shop\nPROG webhook token add grafana --role read", addToken,
			extension.Flag{Name: "role", Usage: "`ROLES` that it has, publish, subscribe or read, with commas between them (default publish,subscribe)", Default: ""}),
		c.change("token rm ID", "remove a token", "PROG webhook token rm 8c6976e5b5410415", removeToken),
		serveCommand(), listenCommand(),
	}
}

// A plan is what a command does to a bus.
type plan func(ctx context.Context, b *Bus, env *extension.Env) (*buses.BusChange, error)

// change returns a command that changes a bus. That delivers nothing; its options are those of the app's code, without such the environment's.
func (c *counts) change(call, usage, example string, plan plan, flags ...extension.Flag) extension.Command {
	return buses.Change(call, usage, example, func(ctx context.Context, env *extension.Env, name string, meta store.Meta) (*buses.BusChange, error) {
		var o Options
		for _, b := range c.buses {
			if b.name == name {
				o = b.opts
			}
		}
		if err := o.allow(env.Flags); err != nil {
			return nil, err
		}
		b, err := newBus(name, o)
		if err != nil {
			return nil, err
		}
		b.calls, b.count = iwebhook.New(env.Client, name), c
		b.stream = &appview.Stream{Name: name, Meta: meta, Partition: runnel.XXHash.Func, Ensure: func(context.Context) error { return nil }}
		return plan(ctx, b, env)
	}, flags...)
}

// allow adds callbacks that flags allow.
func (o *Options) allow(flags extension.Flags) error {
	o.AllowHTTP, o.AllowAddresses = o.AllowHTTP || flags.Bool(flagAllowHTTP), slices.Clone(o.AllowAddresses)
	for _, text := range list(flags.String(flagAllow)) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return extension.Usagef("--%s %q is no range of addresses, such as 10.0.0.0/8", flagAllow, text)
		}
		o.AllowAddresses = append(o.AllowAddresses, p)
	}
	return nil
}

// allowFlags are which callbacks are allowed although they are not public, or without TLS.
func allowFlags() []extension.Flag {
	return []extension.Flag{
		{Name: flagAllowHTTP, Usage: "also without TLS", Default: false},
		{Name: flagAllow, Usage: "callbacks at these `ADDRESSES` although they are not public, as in 10.0.0.0/8, with commas between them", Default: ""},
	}
}

// list splits at commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

func publish(ctx context.Context, b *Bus, env *extension.Env) (*buses.BusChange, error) {
	client, topic := env.Flags.String(flagClient), env.Args[0]
	if client == "" {
		return nil, extension.Usagef("as which client? say --%s NAME: the first one that publishes to a topic keeps it", flagClient)
	}
	e, err := eventOf([]byte(env.Args[1]), topic)
	if err != nil {
		return nil, err
	}
	sent, err := b.Publish(ctx, client, e)
	if err != nil {
		return nil, fmt.Errorf("publish to %s: %w", topic, err)
	}
	return &buses.BusChange{On: topic, Did: fmt.Sprintf("published as %s/%d/%s", topic, sent[0].Partition, sent[0].ID)}, nil
}

func subscribe(_ context.Context, b *Bus, env *extension.Env) (*buses.BusChange, error) {
	f := env.Flags
	s := Subscription{
		Client: env.Args[0], Callback: env.Args[1], Topics: env.Args[2:], UUID: f.String("uuid"), Max: f.Int("max"), Timeout: cmp.Or(f.Duration("timeout"), -1),
		Format: Format(f.String("format")),
	}
	if f.Bool(flagSecret) {
		s.Secret = NewSecret()
	}
	return &buses.BusChange{On: s.Client, Did: s.Client + " is subscribed to " + strings.Join(s.Topics, ", "), Do: func(ctx context.Context) (string, error) {
		return s.Secret, b.Subscribe(ctx, s)
	}}, nil
}

func unsubscribe(_ context.Context, b *Bus, env *extension.Env) (*buses.BusChange, error) {
	client, topics := env.Args[0], env.Args[1:]
	did := "the client " + client + " is forgotten, with what is queued for it"
	if len(topics) > 0 {
		did = fmt.Sprintf("%s gets nothing more of %s than what is queued", client, strings.Join(topics, ", "))
	}
	return &buses.BusChange{On: client, Did: did, Asks: true, Do: func(ctx context.Context) (string, error) {
		return "", b.Unsubscribe(ctx, client, topics...)
	}}, nil
}

func removeTopic(_ context.Context, b *Bus, env *extension.Env) (*buses.BusChange, error) {
	topic := env.Args[0]
	did := "topic " + topic + " is removed, and subscriptions to it end; what is queued of it is still sent"
	return &buses.BusChange{On: topic, Did: did, Asks: true, Do: func(ctx context.Context) (string, error) { return "", b.DeleteTopic(ctx, topic) }}, nil
}

func addToken(_ context.Context, b *Bus, env *extension.Env) (*buses.BusChange, error) {
	client := env.Args[0]
	return &buses.BusChange{On: client, Did: client + " has a token, which is shown only now", Do: func(ctx context.Context) (string, error) {
		return b.AddToken(ctx, client, list(env.Flags.String("role"))...)
	}}, nil
}

// removeToken takes the ID, or the token itself, which is not written down.
func removeToken(_ context.Context, b *Bus, env *extension.Env) (*buses.BusChange, error) {
	id := iwebhook.TokenID(env.Args[0])
	return &buses.BusChange{On: id, Did: "the token " + id + " is removed", Asks: true, Do: func(ctx context.Context) (string, error) {
		return "", b.RemoveToken(ctx, id)
	}}, nil
}
