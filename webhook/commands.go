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
	return []extension.Command{
		c.command("publish TOPIC JSON", "publish an event",
			`PROG webhook publish orders '{"type": "update", "url": "https://shop.example.com/orders/7"}' --client shop`, runPublish,
			extension.Flag{Name: flagClient, Usage: "as the client of this `NAME`", Default: ""}, allowFlags()[0]),
		c.change("subscribe CLIENT CALLBACK TOPIC...", "have events of topics sent to a client, and of no others",
			"PROG webhook subscribe mail https://mail.example.com/hooks orders customers --secret", runSubscribe,
			append(allowFlags(),
				extension.Flag{Name: "max", Usage: "at most `N` events in a batch", Default: 100},
				extension.Flag{Name: "timeout", Usage: "for how long an event waits for others, a `TIME`; 0: not at all", Default: 500 * time.Millisecond},
				extension.Flag{Name: flagSecret, Usage: "make a secret that signs batches, and print it", Default: false},
				extension.Flag{Name: "uuid", Usage: "send this `TEXT` as the user of HTTP Basic", Default: ""},
				extension.Flag{Name: "format", Usage: "`FORMAT` of a batch: array or single", Default: "array"})...),
		c.change("unsubscribe CLIENT [TOPIC...]", "end topics of a client where they are; without a topic forget the client, with what is queued",
			"PROG webhook unsubscribe mail customers", runUnsubscribe),
		c.change("topic rm NAME", "remove a topic: what is queued is still sent",
			"PROG webhook topic rm orders", runTopicRemove),
		c.change("token add CLIENT", "make a token of the HTTP API, and print it",
			"PROG webhook token add shop\nPROG webhook token add grafana --role read", runTokenAdd,
			extension.Flag{Name: "role", Usage: "`ROLES` that it has, publish, subscribe or read, with commas between them (default publish,subscribe)", Default: ""}),
		c.change("token rm ID", "remove a token", "PROG webhook token rm 8c6976e5b5410415", runTokenRemove),
		serveCommand(), listenCommand(),
	}
}

// An order is a call of a command, with the bus that it is about.
type order struct {
	*buses.Request
	bus *Bus
}

// command returns a command that uses a bus.
func (c *counts) command(call, usage, example string, run func(context.Context, *order) error, flags ...extension.Flag) extension.Command {
	return buses.Command(call, usage, example, func(ctx context.Context, r *buses.Request) error {
		b, err := c.open(r)
		if err != nil {
			return err
		}
		return run(ctx, &order{r, b})
	}, flags...)
}

// change returns one that changes it.
func (c *counts) change(call, usage, example string, run func(context.Context, *order) error, flags ...extension.Flag) extension.Command {
	command := c.command(call, usage, example, run, flags...)
	command.Changes = true
	return command
}

// open returns a bus for commands, which delivers nothing. Its options are those of the app's code, without such the environment's.
func (c *counts) open(r *buses.Request) (*Bus, error) {
	name, meta, err := r.One()
	if err != nil {
		return nil, err
	}
	var o Options
	for _, b := range c.buses {
		if b.name == name {
			o = b.opts
		}
	}
	if err := o.allow(r.Flags); err != nil {
		return nil, err
	}
	b, err := newBus(name, o)
	if err != nil {
		return nil, err
	}
	b.calls, b.count = iwebhook.New(r.Client, name), c
	b.stream = &appview.Stream{Name: name, Meta: meta, Partition: runnel.XXHash.Func, Ensure: func(context.Context) error { return nil }}
	return b, nil
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

func runPublish(ctx context.Context, o *order) error {
	client, topic := o.Flags.String(flagClient), o.Arg(0)
	if client == "" {
		return extension.Usagef("as which client? say --%s NAME: the first one that publishes to a topic keeps it", flagClient)
	}
	e, err := eventOf([]byte(o.Arg(1)), topic)
	if err != nil {
		return err
	}
	sent, err := o.bus.Publish(ctx, client, e)
	if err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return o.PrintChange(&buses.BusChange{Bus: o.bus.name, On: topic, Did: fmt.Sprintf("published as %s/%d/%s", topic, sent[0].Partition, sent[0].ID)})
}

func runSubscribe(ctx context.Context, o *order) error {
	f := o.Flags
	s := Subscription{
		Client: o.Arg(0), Callback: o.Arg(1), Topics: o.Args[2:], UUID: f.String("uuid"), Max: f.Int("max"), Timeout: cmp.Or(f.Duration("timeout"), -1),
		Format: Format(f.String("format")),
	}
	if f.Bool(flagSecret) {
		s.Secret = NewSecret()
	}
	return o.Change(ctx, "subscribe", s.Client, s.Client+" is subscribed to "+strings.Join(s.Topics, ", "), "", func(ctx context.Context, c *buses.BusChange) error {
		c.Secret = s.Secret
		return o.bus.Subscribe(ctx, s)
	})
}

func runUnsubscribe(ctx context.Context, o *order) error {
	client, topics := o.Arg(0), o.Args[1:]
	did, ask := "the client "+client+" is forgotten", fmt.Sprintf("forget the client %s, with what is queued for it?", client)
	if len(topics) > 0 {
		all := strings.Join(topics, ", ")
		did, ask = fmt.Sprintf("%s gets nothing more of %s than what is queued", client, all), fmt.Sprintf("end %s for %s?", all, client)
	}
	return o.Change(ctx, "unsubscribe", client, did, ask, func(ctx context.Context, _ *buses.BusChange) error {
		return o.bus.Unsubscribe(ctx, client, topics...)
	})
}

func runTopicRemove(ctx context.Context, o *order) error {
	topic := o.Arg(0)
	did, ask := "topic "+topic+" is removed; what is queued of it is still sent", "remove topic "+topic+", and end all subscriptions to it?"
	return o.Change(ctx, "topic rm", topic, did, ask, func(ctx context.Context, _ *buses.BusChange) error { return o.bus.DeleteTopic(ctx, topic) })
}

func runTokenAdd(ctx context.Context, o *order) error {
	client := o.Arg(0)
	var roles []Role
	for _, role := range list(o.Flags.String("role")) {
		roles = append(roles, Role(role))
	}
	return o.Change(ctx, "token add", client, client+" has a token, which is shown only now", "", func(ctx context.Context, c *buses.BusChange) (err error) {
		c.Token, err = o.bus.AddToken(ctx, client, roles...)
		return err
	})
}

// runTokenRemove takes the ID, or the token itself, which is not written down.
func runTokenRemove(ctx context.Context, o *order) error {
	id := iwebhook.TokenID(o.Arg(0))
	return o.Change(ctx, "token rm", id, "the token "+id+" is removed", "remove the token "+id+"?", func(ctx context.Context, _ *buses.BusChange) error {
		return o.bus.RemoveToken(ctx, id)
	})
}
