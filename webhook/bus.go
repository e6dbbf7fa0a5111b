package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
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
	defaultMaxLen       = 1_000_000
	defaultDedupWindow  = 10 * time.Minute
	defaultKeep         = 10_000
	defaultMaxData      = 4096
	mostData            = 32 << 10
	defaultRetention    = 72 * time.Hour
	defaultDisableAfter = 120 * time.Hour
	defaultConcurrency  = 256
	mostConcurrency     = 4096
	defaultPerHost      = 32
	defaultConnect      = 2 * time.Second
	defaultTimeout      = 20 * time.Second
	defaultMaxBackoff   = time.Minute
	leastToken          = 20
	topicPartitions     = 16 // a topic is in one of them, by its name
	hintsKept           = 4096
)

// A Bus is an HTTP event bus. Its methods are safe for concurrent use. It is an http.Handler for the API.
type Bus struct {
	name string
	app  *runnel.App
	opts Options

	claims  claims
	places  *places
	reads   chan struct{} // for reads at once that are for one subscriber
	feeds   *feeds
	sender  *sender
	seal    *sealer
	handler http.Handler
	tokens  *tokens
	count   *counts

	mu        sync.Mutex // held by begin, which sets what follows
	stream    *appview.Stream
	calls     *iwebhook.Bus
	owners    *iwebhook.Owners
	log       *slog.Logger
	retry     *retryqueue.Retry
	streams   map[string]bool // whose metadata this process has stored
	streamsMu sync.Mutex
}

// New adds a bus to an app. Its name is in one space with those of streams; topics are streams NAME.TOPIC. A nil opts is all defaults. New does
// no I/O. It panics as runnel.NewStream does, and if an option is out of range.
func New(app *runnel.App, name string, opts *Options) *Bus {
	var o Options
	if opts != nil {
		o = *opts
	}
	b, where := &Bus{name: name, app: app, streams: map[string]bool{}}, "runnel: app "+app.Name()+": bus "+name+": "
	if err := o.resolve(os.LookupEnv); err != nil {
		panic(where + err.Error())
	}
	seal, err := newSealer(o.SealKeys)
	if err != nil {
		panic(where + err.Error())
	}
	b.opts, b.seal = o, seal
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
	b.claims.known = map[string]claim{}
	b.tokens = newTokens(b)
	b.handler = newAPI(b)
	b.places, b.feeds, b.reads = newPlaces(o.Concurrency, o.PerHost), newFeeds(b), make(chan struct{}, readsAtOnce)
	b.sender = newSender(senderOptions{
		connectTimeout: o.ConnectTimeout, timeout: o.Timeout, tls: o.TLS, allow: o.AllowAddresses, transport: o.Transport, version: version(),
	})
	b.count = extension.Own(app, func() (*counts, *extension.Extension) {
		c := &counts{}
		return c, buses.New(&c.Counters, c.commands())
	})
	b.count.buses = append(b.count.buses, b)
	return b
}

// version returns the version of this module in the program, "" for none.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "github.com/runnel-go/runnel" {
			return strings.Trim(m.Version, "()")
		}
	}
	return ""
}

// Name returns the name of the bus.
func (b *Bus) Name() string { return b.name }

// resolve sets the fields that are zero, and returns what is wrong with the others.
func (o *Options) resolve(lookup func(string) (string, bool)) error {
	env := func(name string, set func(string) error) error {
		text, ok := lookup("RUNNEL_WEBHOOK_" + name)
		if text = strings.TrimSpace(text); !ok || text == "" {
			return nil
		}
		if err := set(text); err != nil {
			return fmt.Errorf("environment variable RUNNEL_WEBHOOK_%s: %w", name, err) // without its value: it may be a secret
		}
		return nil
	}
	number := func(name string, into *int64) error {
		return env(name, func(text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is no number", text)
			}
			*into = cmp.Or(*into, n)
			return nil
		})
	}
	concurrency := int64(o.Concurrency)
	for _, err := range []error{
		env("ROOT_TOKEN", func(text string) error { o.RootToken = cmp.Or(o.RootToken, text); return nil }),
		env("SEAL_KEYS", func(text string) (err error) {
			if len(o.SealKeys) == 0 {
				o.SealKeys, err = parseSealKeys(text)
			}
			return err
		}),
		number("MAX_MEMORY", &o.MaxMemory), number("MIN_FREE", &o.MinFree), number("CONCURRENCY", &concurrency),
	} {
		if err != nil {
			return err
		}
	}
	o.Concurrency = int(concurrency)
	o.defaults()
	return o.check()
}

func (o *Options) defaults() {
	o.MaxLen, o.Overflow = cmp.Or(o.MaxLen, defaultMaxLen), cmp.Or(o.Overflow, runnel.DropOldest)
	o.DedupWindow, o.Keep, o.MaxData = cmp.Or(o.DedupWindow, defaultDedupWindow), cmp.Or(o.Keep, defaultKeep), cmp.Or(o.MaxData, defaultMaxData)
	o.Retention, o.DisableAfter = max(cmp.Or(o.Retention, defaultRetention), 0), max(cmp.Or(o.DisableAfter, defaultDisableAfter), 0)
	o.Concurrency, o.PerHost = cmp.Or(o.Concurrency, defaultConcurrency), cmp.Or(o.PerHost, defaultPerHost)
	o.ConnectTimeout, o.Timeout = cmp.Or(o.ConnectTimeout, defaultConnect), cmp.Or(o.Timeout, defaultTimeout)
}

func (o *Options) check() error {
	switch {
	case o.RootToken != "" && len(o.RootToken) < leastToken:
		return fmt.Errorf("option RootToken has less than %d characters", leastToken)
	case o.MaxLen < 1 || o.Keep < 1:
		return fmt.Errorf("options MaxLen %d and Keep %d: below 1", o.MaxLen, o.Keep)
	case o.Overflow != runnel.DropOldest && o.Overflow != runnel.Reject:
		return fmt.Errorf("option Overflow %v: publishers do not wait", o.Overflow)
	case o.MaxData < 1 || o.MaxData > mostData:
		return fmt.Errorf("option MaxData %d is not in 1 to %d", o.MaxData, mostData)
	case o.MaxMemory < 0 || o.MinFree < 0 || 2*o.MinFree > o.MaxMemory:
		return fmt.Errorf("option MinFree %d is more than half of MaxMemory %d", o.MinFree, o.MaxMemory)
	case o.Concurrency < 2 || o.Concurrency > mostConcurrency || o.PerHost < 1:
		return fmt.Errorf("option Concurrency %d is not in 2 to %d, or PerHost %d below 1", o.Concurrency, mostConcurrency, o.PerHost)
	case o.ConnectTimeout < time.Millisecond || o.Timeout < time.Millisecond || o.DedupWindow < time.Second:
		return fmt.Errorf("options ConnectTimeout %v, Timeout %v, DedupWindow %v: too short", o.ConnectTimeout, o.Timeout, o.DedupWindow)
	}
	for _, key := range o.SealKeys {
		if len(key) != 32 {
			return fmt.Errorf("a seal key has %d bytes, not 32", len(key))
		}
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
	stream, client, inherited, err := appview.Of(b.app).Own(b.name)
	if err != nil {
		return err
	}
	settings, err := appview.Of(b.app).Settings()
	if err != nil {
		return err
	}
	own := b.opts.Retry
	if own == nil {
		own = &runnel.Retry{Max: 1, MaxBackoff: defaultMaxBackoff}
	}
	if b.retry, err = inherited.Retry(own, 1); err != nil {
		return fmt.Errorf("option Retry: %w", err)
	}
	if b.opts.Retry == nil {
		b.retry.Max = 0
	}
	log := cmp.Or(settings.Logger, slog.New(slog.DiscardHandler))
	b.log = log.With("app", b.app.Name(), "bus", b.name)
	b.stream, b.calls = stream, iwebhook.New(client, b.name)
	b.owners = iwebhook.NewOwners(b.calls)
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

// logOf returns the log of a topic.
func (b *Bus) logOf(topic string) iwebhook.Log {
	return iwebhook.Log{Topic: topic, Partition: b.stream.Partition(topic, topicPartitions)}
}
