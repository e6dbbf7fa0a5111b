package buses

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	flagBus     = "bus"
	flagAddr    = "addr"
	flagClient  = "client"
	flagFailing = "failing"
	flagLimit   = "limit"
	flagSecret  = "secret"

	// Of those which package webhook reads.
	FlagAllowHTTP = "allow-http"
	FlagAllow     = "allow"

	defaultName = "bus" // of a bus without code
)

// A request is a call of a command, with the buses that it is about.
type request struct {
	*extension.Env
	buses []*bus
	open  Opener
}

// arg returns an argument, "" if it is not there.
func (r *request) arg(i int) string {
	if i < len(r.Args) {
		return r.Args[i]
	}
	return ""
}

// calls returns the bus that is meant, and what package webhook does with it.
func (r *request) calls() (*bus, Calls, error) {
	if n := len(r.buses); n != 1 {
		return nil, nil, extension.Usagef("which bus? say --%s NAME: the app has %d", flagBus, n)
	}
	b := r.buses[0]
	open := r.open
	if open == nil {
		open = Open
	}
	calls, err := open(r.Client, b.Name(), b.meta, r.Flags)
	return b, calls, err
}

// allowFlags are which callbacks are allowed although they are not public, or without TLS.
func allowFlags() []extension.Flag {
	return []extension.Flag{
		{Name: FlagAllowHTTP, Usage: "also without TLS", Default: false},
		{Name: FlagAllow, Usage: "callbacks at these `ADDRESSES` although they are not public, as in 10.0.0.0/8, with commas between them", Default: ""},
	}
}

// List splits at commas.
func List(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

// fits returns what is wrong with the number of arguments of a call.
func fits(words, args []string) error {
	for i, word := range words {
		if i >= len(args) && !strings.HasPrefix(word, "[") {
			return extension.Usagef("%s is missing", strings.TrimSuffix(word, "..."))
		}
	}
	if n := len(words); len(args) > n && !strings.Contains(strings.Join(words, ""), "...") {
		return extension.Usagef("unexpected argument %q", args[n])
	}
	return nil
}

// command returns a command of a bus. The lines of example are example calls.
func (open Opener) command(call, usage, example string, run func(context.Context, *request) error, flags ...extension.Flag) extension.Command {
	words := slices.DeleteFunc(strings.Fields(call), func(w string) bool { return w == strings.ToLower(w) })
	return extension.Command{
		Call: call, Usage: usage, Examples: strings.Split(example, "\n"),
		Flags: append(flags, extension.Flag{Name: flagBus, Usage: "`NAME` of the bus (default the only one, or all in lists)", Default: ""}),
		Run: func(ctx context.Context, env *extension.Env) error {
			if err := fits(words, env.Args); err != nil {
				return err
			}
			name := env.Flags.String(flagBus)
			buses, err := load(ctx, env.Client, name)
			if err == nil && name != "" && len(buses) == 0 {
				err = fmt.Errorf("the app has no bus %q", name)
			}
			if err != nil {
				return err
			}
			return run(ctx, &request{env, buses, open})
		},
	}
}

// change returns a command that changes something.
func (open Opener) change(call, usage, example string, run func(context.Context, *request) error, flags ...extension.Flag) extension.Command {
	c := open.command(call, usage, example, run, flags...)
	c.Changes = true
	return c
}

func commands(open Opener) []extension.Command {
	return []extension.Command{
		open.command("topics", "list topics: who publishes, and how much",
			"PROG webhook topics", runTopics),
		open.command("subs [NAME]", "list subscribers, the one that is furthest behind first; or show one",
			"PROG webhook subs --failing\nPROG webhook subs mail", runSubs,
			extension.Flag{Name: flagFailing, Usage: "only those that are not ok", Default: false},
			extension.Flag{Name: flagLimit, Usage: "at most `N` subscribers (default all)", Default: 0}),
		open.command("publish TOPIC JSON", "publish an event",
			`PROG webhook publish orders '{"type": "update", "url": "https://shop.example.com/orders/7"}' --client shop`, runPublish,
			extension.Flag{Name: flagClient, Usage: "as the client of this `NAME`", Default: ""}, allowFlags()[0]),
		open.change("subscribe CLIENT CALLBACK TOPIC...", "have events of topics sent to a client, and of no others",
			"PROG webhook subscribe mail https://mail.example.com/hooks orders customers --secret", runSubscribe,
			append(allowFlags(),
				extension.Flag{Name: "max", Usage: "at most `N` events in a batch", Default: 100},
				extension.Flag{Name: "timeout", Usage: "for how long an event waits for others, a `TIME`; 0: not at all", Default: 500 * time.Millisecond},
				extension.Flag{Name: flagSecret, Usage: "make a secret that signs batches, and print it", Default: false},
				extension.Flag{Name: "uuid", Usage: "send this `TEXT` as the user of HTTP Basic", Default: ""},
				extension.Flag{Name: "format", Usage: "`FORMAT` of a batch: array or single", Default: "array"})...),
		open.change("unsubscribe CLIENT [TOPIC...]", "end topics of a client where they are; without a topic forget the client, with what is queued",
			"PROG webhook unsubscribe mail customers", runUnsubscribe),
		open.change("topic rm NAME", "remove a topic: what is queued is still sent",
			"PROG webhook topic rm orders", runTopicRemove),
		open.change("token add CLIENT", "make a token of the HTTP API, and print it",
			"PROG webhook token add shop\nPROG webhook token add grafana --role read", runTokenAdd,
			extension.Flag{Name: "role", Usage: "`ROLES` that it has, publish, subscribe or read, with commas between them (default publish,subscribe)", Default: ""}),
		open.command("token ls", "list tokens, which are not shown themselves", "PROG webhook token ls", runTokens),
		open.change("token rm ID", "remove a token", "PROG webhook token rm 8c6976e5b5410415", runTokenRemove),
		serveCommand(),
		open.command("listen", "receive batches and print them, for trying out, until interrupted",
			"PROG webhook listen", runListen,
			extension.Flag{Name: flagAddr, Usage: "listen at this `ADDRESS`", Default: "127.0.0.1:9999"},
			extension.Flag{Name: flagSecret, Usage: "refuse what is not signed with this `SECRET`", Default: ""}),
	}
}

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

// An Opener opens a bus that is in Redis; flags may have allowFlags.
type Opener func(c *store.Client, name string, meta store.Meta, flags extension.Flags) (Calls, error)

// What package webhook sets.
var (
	// Open opens a bus without the code of its app.
	Open Opener
	// Declare adds a bus to a *runnel.App without code, and returns its API. open says that nobody is root, or secrets are not sealed.
	Declare func(app any, name string, flags extension.Flags) (api http.Handler, open []string, err error)
	// Receive returns a handler that prints what is delivered. Without a secret it takes what anybody sends.
	Receive func(secret string, print func(v any, text func(extension.Table)) error) (http.Handler, error)
)
