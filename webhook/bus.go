package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/retryqueue"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// Options configure a bus. A zero field takes the variable of the environment that is named, then the default.
type Options struct {
	// RootToken is the token of the HTTP API that may do everything but publish; without one nobody can make tokens over HTTP.
	// RUNNEL_WEBHOOK_ROOT_TOKEN; at least 20 characters.
	RootToken string
	// SealKeys seal signing secrets and UUIDs in Redis, 32 bytes each: the first one seals, all of them open. Without any they
	// are stored as they are. RUNNEL_WEBHOOK_SEAL_KEYS, in base64, with commas.
	SealKeys [][]byte
	// Partitions is over how many parts subscribers are spread; it cannot change once the bus exists. Default 16.
	Partitions int

	// MaxLen is how many events a topic has at most. Default 1 000 000.
	MaxLen int64
	// Overflow decides what happens at MaxLen if subscribers still need the oldest: runnel.DropOldest, the default, drops and counts them;
	// runnel.Reject refuses what is published.
	Overflow runnel.Overflow
	// DedupWindow is for how long Event.DedupID is remembered. Default 10 minutes.
	DedupWindow time.Duration
	// Keep is how many events of a topic stay that nobody needs any more. Default 10 000.
	Keep int64
	// MaxData is how many bytes of JSON Event.Data may have. Default 4096.
	MaxData int
	// MaxMemory is how many bytes the server may use, in a cluster each: above MaxMemory less MinFree the oldest events are dropped,
	// whoever needs them, until twice that is free. Default no bound. RUNNEL_WEBHOOK_MAX_MEMORY, RUNNEL_WEBHOOK_MIN_FREE.
	MaxMemory, MinFree int64

	// Retry is how often a batch is attempted, and when. After its last attempt its events are sent one by one, and those that fail
	// alone become dead letters. Default: again and again, 1 s to 1 min apart. Order is of no use here.
	Retry *runnel.Retry
	// Retention is for how long an event waits for a subscriber before it is dropped, default 72 h; DisableAfter for how long all
	// attempts have failed when a subscriber is disabled, default 120 h. Negative: none.
	Retention, DisableAfter time.Duration
	// Concurrency is how many requests one worker makes at once, default 256 (RUNNEL_WEBHOOK_CONCURRENCY), PerHost how many of them
	// to one host, default 32. Subscribers that keep failing share half of Concurrency.
	Concurrency, PerHost int
	// ConnectTimeout and Timeout bound a connection and a whole request. Default 2 s and 20 s.
	ConnectTimeout, Timeout time.Duration

	AllowHTTP      bool              // callbacks and URLs of events without TLS, and requests to the API
	AllowAddresses []netip.Prefix    // callbacks at addresses that are not public
	TrustProxies   []netip.Prefix    // whose X-Forwarded-Proto and X-Forwarded-For the API believes
	TLS            *tls.Config       // towards callbacks
	Transport      http.RoundTripper // instead of the one for callbacks, such as for tests: nothing guards its addresses

	Lease, Grace, JoinDelay time.Duration // as in runnel.ProcessorOptions
}

const (
	leastToken = 20
	hintsKept  = 4096
)

// A Bus is an HTTP event bus. Its methods are safe for concurrent use. It is an http.Handler for the API.
type Bus struct {
	name string
	app  *runnel.App
	opts Options

	claims  recent[bool] // topics and who may publish to them
	streams sync.Map     // topics whose metadata this process has stored
	places  *places
	reads   chan struct{} // for reads at once that are for one subscriber
	feeds   *feeds
	sender  *sender
	seal    sealer
	handler http.Handler
	known   recent[Token] // by hash, without a client for none
	count   *counts

	mu     sync.Mutex // held by begin, which sets what follows
	stream *appview.Stream
	calls  *iwebhook.Bus
	log    *slog.Logger
	retry  *retryqueue.Retry
}

// New adds a bus to an app. Its name is in one space with those of streams; topics are streams NAME.TOPIC. A nil opts is all defaults. New does
// no I/O. It panics as runnel.NewStream does, and if an option is out of range.
func New(app *runnel.App, name string, opts *Options) *Bus {
	if opts == nil {
		opts = &Options{}
	}
	b, err := newBus(name, *opts)
	if err != nil {
		panic("runnel: app " + app.Name() + ": bus " + name + ": " + err.Error())
	}
	o := &b.opts
	hints := runnel.NewStream(app, name, func(struct{ Sub string }) string { return "" }, &runnel.StreamOptions{
		Partitions: o.Partitions, MaxLen: hintsKept, Partitioner: runnel.XXHash,
	})
	extension.Declare(hints, iwebhook.Kind, nil)
	hints.Process(iwebhook.Processor, b.process, &runnel.ProcessorOptions{
		OnError: runnel.Halt, Lease: o.Lease, Grace: o.Grace, JoinDelay: o.JoinDelay, Timeout: -1,
	})
	if o.MaxMemory > 0 {
		app.Every(name+"-memory", memoryEvery, janitor{b}.spare, &runnel.TaskOptions{Leader: true})
	}
	b.app, b.handler = app, newAPI(b)
	b.places, b.feeds, b.reads = newPlaces(o.Concurrency, o.PerHost), newFeeds(b), make(chan struct{}, readsAtOnce)
	b.sender = newSender(o)
	b.count = extension.Own(app, func() (*counts, *extension.Extension) {
		c := &counts{}
		return c, buses.New(&c.Counters, c.commands())
	})
	b.count.buses = append(b.count.buses, b)
	return b
}

// newBus returns a bus that checks, seals and remembers, but reaches nothing yet.
func newBus(name string, o Options) (b *Bus, err error) {
	b = &Bus{name: name, log: slog.New(slog.DiscardHandler)}
	if b.opts, err = o.resolved(); err == nil {
		b.seal, err = newSealer(b.opts.SealKeys)
	}
	return b, err
}

// Name returns the name of the bus.
func (b *Bus) Name() string { return b.name }

// resolved returns the options without fields that are zero, and what is wrong with them.
func (o Options) resolved() (Options, error) {
	var wrong []error
	env := func(name string) string { return strings.TrimSpace(os.Getenv("RUNNEL_WEBHOOK_" + name)) }
	number := func(name string) (n int64) {
		if text := env(name); text != "" {
			var err error
			if n, err = strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
				wrong = append(wrong, fmt.Errorf("environment variable RUNNEL_WEBHOOK_%s: %q is no number", name, text))
			}
		}
		return n
	}
	o.RootToken = cmp.Or(o.RootToken, env("ROOT_TOKEN"))
	if o.RootToken != "" && len(o.RootToken) < leastToken {
		wrong = append(wrong, fmt.Errorf("option RootToken has less than %d characters", leastToken))
	}
	if len(o.SealKeys) == 0 {
		var err error
		if o.SealKeys, err = parseSealKeys(env("SEAL_KEYS")); err != nil {
			wrong = append(wrong, fmt.Errorf("environment variable RUNNEL_WEBHOOK_SEAL_KEYS: %w", err))
		}
	}
	if o.Overflow = cmp.Or(o.Overflow, runnel.DropOldest); o.Overflow != runnel.DropOldest && o.Overflow != runnel.Reject {
		wrong = append(wrong, fmt.Errorf("option Overflow %v: publishers do not wait", o.Overflow))
	}
	o.Concurrency = cmp.Or(o.Concurrency, int(number("CONCURRENCY")))
	o.MaxMemory, o.MinFree = cmp.Or(o.MaxMemory, number("MAX_MEMORY")), cmp.Or(o.MinFree, number("MIN_FREE"))
	o.Retention, o.DisableAfter = max(cmp.Or(o.Retention, 72*time.Hour), 0), max(cmp.Or(o.DisableAfter, 120*time.Hour), 0)
	return o, errors.Join(append(wrong,
		within("MaxLen", &o.MaxLen, 1_000_000, 1, math.MaxInt64),
		within("Keep", &o.Keep, 10_000, 1, math.MaxInt64),
		within("MaxData", &o.MaxData, 4096, 1, 32<<10),
		within("MaxMemory", &o.MaxMemory, 0, 0, math.MaxInt64),
		within("MinFree", &o.MinFree, 0, 0, o.MaxMemory/2),
		within("Concurrency", &o.Concurrency, 256, 2, 4096),
		within("PerHost", &o.PerHost, 32, 1, math.MaxInt),
		within("ConnectTimeout", &o.ConnectTimeout, 2*time.Second, time.Millisecond, math.MaxInt64),
		within("Timeout", &o.Timeout, 20*time.Second, time.Millisecond, math.MaxInt64),
		within("DedupWindow", &o.DedupWindow, 10*time.Minute, time.Second, math.MaxInt64),
	)...)
}

// within sets an option that is zero, and returns an error if it is not in bounds.
func within[T int | int64 | time.Duration](name string, option *T, standard, least, most T) error {
	if *option = cmp.Or(*option, standard); *option < least || *option > most {
		return fmt.Errorf("option %s %v is not in %v to %v", name, *option, least, most)
	}
	return nil
}

// begin resolves what the app gives, once. It does no I/O.
func (b *Bus) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls != nil {
		return nil
	}
	view := appview.Of(b.app)
	stream, client, inherited, err := view.Own(b.name)
	if err != nil {
		return err
	}
	settings, err := view.Settings()
	if err != nil {
		return err
	}
	if b.retry, err = inherited.Retry(cmp.Or(b.opts.Retry, &runnel.Retry{Max: 1, MaxBackoff: time.Minute}), 1); err != nil {
		return fmt.Errorf("option Retry: %w", err)
	}
	if b.opts.Retry == nil {
		b.retry.Max = 0
	}
	log := cmp.Or(settings.Logger, slog.New(slog.DiscardHandler))
	b.log = log.With("app", b.app.Name(), "bus", b.name)
	b.stream, b.calls = stream, iwebhook.New(client, b.name)
	return nil
}

// ready is begin, and ensures the metadata of the bus.
func (b *Bus) ready(ctx context.Context) error {
	if err := b.begin(); err != nil {
		return err
	}
	return b.stream.Ensure(ctx)
}

// partition returns the delivery partition of a subscriber.
func (b *Bus) partition(name string) int { return b.stream.Partition(name, b.stream.Meta.Partitions) }
