package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

func init() {
	buses.Open = new(counts).open
	buses.Declare = declare
	buses.Receive = receive
}

// open returns a bus for commands, which delivers nothing. Its options are those of the app's code, without such the environment's.
func (c *counts) open(client *store.Client, name string, meta store.Meta, flags extension.Flags) (buses.Calls, error) {
	var o Options
	for _, b := range c.buses {
		if b.name == name {
			o = b.opts
		}
	}
	if err := cmp.Or(o.allow(flags), o.resolve(os.LookupEnv)); err != nil {
		return nil, err
	}
	seal, err := newSealer(o.SealKeys)
	if err != nil {
		return nil, err
	}
	b := &Bus{
		name: name, opts: o, seal: seal, claims: claims{known: map[string]claim{}}, streams: map[string]bool{}, count: c,
		log: slog.New(slog.DiscardHandler), calls: iwebhook.New(client, name),
		stream: &appview.Stream{Name: name, Meta: meta, Partition: runnel.XXHash.Func, Ensure: func(context.Context) error { return nil }},
	}
	b.tokens = newTokens(b)
	return operated{b}, nil
}

// allow adds callbacks that flags allow.
func (o *Options) allow(flags extension.Flags) error {
	o.AllowHTTP, o.AllowAddresses = o.AllowHTTP || flags.Bool(buses.FlagAllowHTTP), slices.Clone(o.AllowAddresses)
	for _, text := range buses.List(flags.String(buses.FlagAllow)) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return extension.Usagef("--%s %q is no range of addresses, such as 10.0.0.0/8", buses.FlagAllow, text)
		}
		o.AllowAddresses = append(o.AllowAddresses, p)
	}
	return nil
}

// operated is a bus as commands use it.
type operated struct{ *Bus }

func (b operated) Subscribe(ctx context.Context, client string, body []byte) (secret string, err error) {
	s, _, err := subscriptionOf(body, client)
	if err != nil {
		return "", err
	}
	return s.Secret, b.Bus.Subscribe(ctx, s)
}

func (b operated) Publish(ctx context.Context, client, topic, event string) (string, error) {
	e, err := eventOf([]byte(event), topic)
	if err != nil {
		return "", err
	}
	sent, err := b.Bus.Publish(ctx, client, e)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%d/%s", topic, sent[0].Partition, sent[0].ID), nil
}

func (b operated) AddToken(ctx context.Context, client string, roles []string) (string, error) {
	var all []Role
	for _, role := range roles {
		all = append(all, Role(role))
	}
	return b.Bus.AddToken(ctx, client, all...)
}

// declare adds a bus to an app without code.
func declare(app any, name string, flags extension.Flags) (api http.Handler, lacks []string, err error) {
	var o Options
	if err := o.allow(flags); err != nil {
		return nil, nil, err
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	b := New(app.(*runnel.App), name, &o)
	if b.opts.RootToken == "" {
		lacks = append(lacks, "nobody is root without RUNNEL_WEBHOOK_ROOT_TOKEN, so that only the command webhook token makes tokens")
	}
	if len(b.opts.SealKeys) == 0 {
		lacks = append(lacks, "secrets are stored as they are without RUNNEL_WEBHOOK_SEAL_KEYS")
	}
	return b, lacks, nil
}

// receive is Receive for the command listen.
func receive(secret string, print func(v any, text func(extension.Table)) error) (http.Handler, error) {
	var opts ReceiveOptions
	if secret != "" {
		if _, err := parseSecret(secret); err != nil {
			return nil, err
		}
		opts.Secrets = []string{secret}
	}
	var mu sync.Mutex // batches of several subscribers come at once
	return Receive(opts, func(_ context.Context, b *Batch) error {
		mu.Lock()
		defer mu.Unlock()
		return print(b, func(t extension.Table) {
			t.Linef("%s, attempt %d:", cmp.Or(b.ID, "-"), b.Attempt)
			for _, e := range b.Events {
				data, _ := e.Data.(json.RawMessage)
				t.Linef("  %s %s %s %s", e.Topic, e.Type, e.URL, data)
			}
		})
	}), nil
}

// counts are what this process counts, of all buses of the app.
type counts struct {
	extension.Counters
	buses []*Bus // of the app, whose options commands take
}

func (c *counts) published(bus, topic string, s store.Sent) {
	if s.Err == nil && !s.Duplicate {
		c.Add(buses.Published, bus, topic)
	}
}

// answered counts a request that has ended.
func (c *counts) answered(bus string, batch *delivery.Batch, a *answer, now time.Time) {
	c.Add(buses.Requests, bus, strconv.Itoa(a.status))
	c.Observe(buses.Took, a.took, bus)
	if a.outcome == settled {
		c.AddMore(buses.Delivered, len(batch.Events), bus)
		c.Observe(buses.Delay, max(now.Sub(time.UnixMilli(batch.Events[0].ID.MS)), 0), bus)
	}
}
