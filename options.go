package runnel

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Options configure an App. A zero field takes its value from the environment variable
// that it names, which is read at first use, else the default.
type Options struct {
	// RedisURL is the address of Redis: "redis://user:password@host:port/db", or
	// "rediss://…" for TLS. For a master behind sentinels it is
	// "redis+sentinel://user:password@host1:26379,host2:26379/master-name/db", or
	// "rediss+sentinel://…" with TLS to both. The user and the password of the sentinels
	// are the options sentinel_username and sentinel_password. For a Redis Cluster it is
	// "redis+cluster://host1:port,host2:port", or "rediss+cluster://…"; one node that
	// answers is enough. RUNNEL_REDIS_URL; default redis://127.0.0.1:6379.
	RedisURL string
	// RedisCA, RedisCert and RedisKey are files in PEM for a RedisURL with TLS:
	// authorities that may have issued the server's certificate, in place of the
	// system's; and the app's own certificate and its key, for a server that requires
	// one. With another RedisURL they are an error; the client in Redis has its own
	// TLSConfig. RUNNEL_REDIS_CA, RUNNEL_REDIS_CERT, RUNNEL_REDIS_KEY; default none.
	RedisCA, RedisCert, RedisKey string
	// Redis is a client to share instead of RedisURL: a *redis.Client, also one of
	// redis.NewFailoverClient, or a *redis.ClusterClient. Blocking reads and sends use
	// further clients, made from its Options. The app never closes it.
	Redis redis.UniversalClient
	// Durability sets how many replicas must confirm writes. Default none.
	Durability Durability

	// Logger is the worker's logger; the default is made of LogLevel and LogFormat. Its
	// handler is called from a goroutine of its own: a worker never waits for its log.
	// While the handler blocks, some thousand lines wait; further lines are dropped, and
	// a later line has their number. Run waits for the last lines, two seconds at most.
	Logger    *slog.Logger
	LogLevel  string // "debug", "info", "warn", "error". RUNNEL_LOG_LEVEL; default info
	LogFormat string // "text" or "json", on stderr. RUNNEL_LOG_FORMAT; default text

	TimeZone   *time.Location // of Cron. RUNNEL_TIME_ZONE; default UTC
	WorkerName string         // name of this process in logs and status, of printable characters. RUNNEL_WORKER_NAME; default <host>-<pid>
	KeyLayout  KeyLayout      // how keys are named. RUNNEL_KEY_LAYOUT; default LayoutStandalone, in a Redis Cluster LayoutCluster

	// LeaderPoll is how often a worker with leader-only tasks tries to become or confirms
	// being the leader. RUNNEL_LEADER_POLL; default 4 s, at least 100 ms. A dead leader
	// is replaced after three polls.
	LeaderPoll time.Duration

	// SendHooks are called for each call that sends, in this order, and may add headers
	// to its records, such as a trace. Default none.
	SendHooks []SendHook

	Stream    StreamOptions    // what streams inherit
	Processor ProcessorOptions // what processors inherit
}

// A KeyLayout is a way to name Redis keys.
type KeyLayout string

const (
	LayoutStandalone KeyLayout = "standalone" // __strm:app.stream.3
	LayoutCluster    KeyLayout = "cluster"    // __strm:{app.3}.stream, for Redis Cluster, or to be ready for it
)

// StreamOptions configure a stream. A zero field inherits from Options.Stream,
// then from the environment, then takes the default.
type StreamOptions struct {
	// Partitions is how many ordered parts the stream has; it cannot change
	// once the stream exists. RUNNEL_PARTITIONS; default 16, at most 65 536.
	Partitions int
	// MaxLen is the length that a partition may have: older entries are trimmed
	// once every processor has acked them. RUNNEL_MAX_LEN; default 50 000.
	MaxLen int64
	// Overflow decides what happens to records for a partition that is full of events
	// that some processor has not acked. RUNNEL_OVERFLOW; default Reject.
	Overflow Overflow
	// MaxRecord is how many bytes of memory a record may take once it is unpacked and
	// decoded, by an upper bound. A larger record is rejected with codec.ErrTooLarge when
	// it is sent, and is a DecodeError when it is received. RUNNEL_MAX_RECORD; default 64
	// MiB, at least 1 KiB.
	MaxRecord int64
	// DedupWindow is how long the stream remembers an Outgoing.DedupID.
	// RUNNEL_DEDUP_WINDOW; default 10 minutes, at least 1 s.
	DedupWindow time.Duration
	// Codec turns records into bytes. Default codec.MsgPack.
	Codec codec.Codec
	// Partitioner maps keys to partitions. Default XXHash.
	Partitioner *Partitioner
	// KeyField names the JSON field that holds the key, so that `runnel send` can find it
	// without the app's types. With a KeyField, `send` and `sendmany` reject a record
	// that lacks the field; with the app's types, only if the key function also returns
	// "". Without a KeyField the empty key is a key like any other.
	KeyField string
}

const (
	defaultRedisURL      = "redis://127.0.0.1:6379"
	defaultPartitions    = 16
	maxPartitions        = 65536
	defaultMaxLen        = 50_000
	minMaxRecord         = 1 << 10
	mostMaxRecord        = 1 << 40
	defaultDedupWindow   = 10 * time.Minute
	minDedupWindow       = time.Second
	defaultLease         = 10 * time.Second
	minLease             = 500 * time.Millisecond
	defaultGrace         = 8 * time.Second
	defaultPrefetch      = 1024
	defaultPrefetchBytes = 8 << 20
	defaultReadConns     = 8
	clusterReadConns     = 32 // each can block for one partition only
	defaultLeaderPoll    = 4 * time.Second
	minLeaderPoll        = 100 * time.Millisecond
)

func (o *Options) check() error {
	switch {
	case o.KeyLayout != "" && o.KeyLayout != LayoutStandalone && o.KeyLayout != LayoutCluster:
		return fmt.Errorf("KeyLayout %q is neither %q nor %q", o.KeyLayout, LayoutStandalone, LayoutCluster)
	case o.LeaderPoll != 0 && o.LeaderPoll < minLeaderPoll:
		return fmt.Errorf("LeaderPoll %v is below %v", o.LeaderPoll, minLeaderPoll)
	}
	if err := checkWorker(o.WorkerName); err != nil {
		return fmt.Errorf("WorkerName %q: %w", o.WorkerName, err)
	}
	if err := o.Durability.check(); err != nil {
		return fmt.Errorf("Durability: %w", err)
	}
	if slices.ContainsFunc(o.SendHooks, func(h SendHook) bool { return h == nil }) {
		return fmt.Errorf("nil SendHook")
	}
	if err := o.Stream.check(); err != nil {
		return fmt.Errorf("Stream: %w", err)
	}
	if err := o.Processor.check(); err != nil {
		return fmt.Errorf("Processor: %w", err)
	}
	return nil
}

func (o *StreamOptions) check() error {
	switch {
	case o.Partitions < 0 || o.Partitions > maxPartitions:
		return fmt.Errorf("Partitions %d is not between 1 and %d", o.Partitions, maxPartitions)
	case o.MaxLen < 0:
		return fmt.Errorf("MaxLen %d is negative", o.MaxLen)
	case o.Overflow < 0 || o.Overflow > DropOldest:
		return fmt.Errorf("Overflow: unknown policy %d", o.Overflow)
	case o.MaxRecord != 0 && (o.MaxRecord < minMaxRecord || o.MaxRecord > mostMaxRecord):
		return fmt.Errorf("MaxRecord %d is not between %d and %d", o.MaxRecord, int64(minMaxRecord), int64(mostMaxRecord))
	case o.DedupWindow != 0 && o.DedupWindow < minDedupWindow:
		return fmt.Errorf("DedupWindow %v is below %v", o.DedupWindow, minDedupWindow)
	case o.Partitioner != nil && (o.Partitioner.Func == nil || o.Partitioner.Name == ""):
		return fmt.Errorf("Partitioner needs a Name and a Func")
	}
	return nil
}

func (o *Options) clustered() bool {
	return redisconn.IsCluster(redisconn.Options{Redis: o.Redis, URL: o.RedisURL})
}

// ownLayout is the layout of keys unless one was chosen.
func (o *Options) ownLayout() KeyLayout {
	if o.clustered() {
		return LayoutCluster
	}
	return LayoutStandalone
}

// keys names the Redis keys of an app.
func (o *Options) keys(app string) keys.Keys {
	return keys.Keys{App: app, Layout: string(o.KeyLayout)}
}

// nameOf returns the name of a value of an enumeration that begins with 1.
func nameOf(kind string, value int, names ...string) string {
	if value < 1 || value > len(names) {
		return fmt.Sprintf("%s(%d)", kind, value)
	}
	return names[value-1]
}

var (
	plainName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	dottedName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

// mustName panics if name is not a valid name.
func mustName(where, name string, dots bool) {
	if !dots && !plainName.MatchString(name) {
		panic(fmt.Sprintf(`%sthe name %q is not 1 to 64 of letters, digits, "_" and "-"`, where, name))
	}
	if dots && !dottedName.MatchString(name) {
		panic(fmt.Sprintf(`%sthe name %q is not 1 to 64 of letters, digits, "_", "-" and "."`, where, name))
	}
}
