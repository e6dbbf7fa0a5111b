package runnel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/runnel-go/runnel/codec"
)

// environment reads RUNNEL_* variables. Every malformed value is an error, even one that
// code overrides: it would surprise later.
type environment struct {
	lookup func(string) (string, bool)
	errs   []error
}

func newEnvironment() *environment { return &environment{lookup: os.LookupEnv} }

func (e *environment) err() error { return errors.Join(e.errs...) }

// formerly maps variables to their former names, which differed from those of the
// options. A former name is used if the new one is not set.
var formerly = map[string]string{
	"RUNNEL_LEASE": "RUNNEL_LOCK_EXPIRY", "RUNNEL_MAX_LEN": "RUNNEL_SIZE", "RUNNEL_DEDUP_WINDOW": "RUNNEL_ID_WINDOW",
	"RUNNEL_WORKER_NAME": "RUNNEL_WORKER",
}

// value parses the variable, if it is set and not empty.
func value[T any](e *environment, name string, parse func(string) (T, error)) T {
	var zero T
	s, ok := e.lookup(name)
	if before := formerly[name]; !ok && before != "" {
		name = before
		s, ok = e.lookup(name)
	}
	if s = strings.TrimSpace(s); !ok || s == "" {
		return zero
	}
	v, err := parse(s)
	if err != nil {
		e.errs = append(e.errs, fmt.Errorf("environment variable %s=%q: %w", name, s, err))
		return zero
	}
	return v
}

func (e *environment) text(name string) string {
	return value(e, name, func(s string) (string, error) { return s, nil })
}

// checked returns a text that passes check.
func (e *environment) checked(name string, check func(string) error) string {
	return value(e, name, func(s string) (string, error) { return s, check(s) })
}

// number returns an integer between low and high.
func (e *environment) number(name string, low, high int64) int64 {
	return value(e, name, func(s string) (int64, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("not a whole number between %d and %d", low, high)
		}
		return n, nil
	})
}

// duration returns a Go duration, such as "1m30s", of at least low.
func (e *environment) duration(name string, low time.Duration) time.Duration {
	return value(e, name, func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return 0, errors.New(`not a duration such as "10s"`)
		case d < low:
			return 0, fmt.Errorf("below %v", low)
		}
		return d, nil
	})
}

// choice returns the value of one of the listed words.
func choice[T any](e *environment, name string, words map[string]T) T {
	return value(e, name, func(s string) (T, error) {
		v, ok := words[strings.ToLower(s)]
		if !ok {
			return v, fmt.Errorf("not one of %s", strings.Join(sortedKeys(words), ", "))
		}
		return v, nil
	})
}

// app fills the zero fields of an App's own options.
func (e *environment) app(o *Options) {
	o.RedisURL = cmp.Or(o.RedisURL, e.text("RUNNEL_REDIS_URL"), defaultRedisURL)
	o.RedisCA = cmp.Or(o.RedisCA, e.text("RUNNEL_REDIS_CA"))
	o.RedisCert = cmp.Or(o.RedisCert, e.text("RUNNEL_REDIS_CERT"))
	o.RedisKey = cmp.Or(o.RedisKey, e.text("RUNNEL_REDIS_KEY"))
	o.LogLevel = cmp.Or(o.LogLevel, e.checked("RUNNEL_LOG_LEVEL", checkLogLevel), "info")
	o.LogFormat = cmp.Or(o.LogFormat, e.checked("RUNNEL_LOG_FORMAT", checkLogFormat), "text")
	o.WorkerName = cmp.Or(o.WorkerName, e.checked("RUNNEL_WORKER_NAME", checkWorker), defaultWorker())
	o.LeaderPoll = cmp.Or(o.LeaderPoll, e.duration("RUNNEL_LEADER_POLL", minLeaderPoll), defaultLeaderPoll)
	o.Durability.MinReplicas = cmp.Or(o.Durability.MinReplicas, int(e.number("RUNNEL_MIN_REPLICAS", 0, maxReplicas)))
	o.Durability.Timeout = cmp.Or(o.Durability.Timeout, value(e, "RUNNEL_REPLICATION_TIMEOUT", parseReplicationTimeout), defaultReplicationTimeout)
	o.KeyLayout = cmp.Or(o.KeyLayout, choice(e, "RUNNEL_KEY_LAYOUT", map[string]KeyLayout{
		string(LayoutStandalone): LayoutStandalone, string(LayoutCluster): LayoutCluster}), o.ownLayout())
	zone := value(e, "RUNNEL_TIME_ZONE", time.LoadLocation)
	o.TimeZone = cmp.Or(o.TimeZone, zone, time.UTC)
}

// stream fills the zero fields of a stream's options, which inherit from app's.
func (e *environment) stream(o, app StreamOptions) StreamOptions {
	o.Partitions = cmp.Or(o.Partitions, app.Partitions, int(e.number("RUNNEL_PARTITIONS", 1, maxPartitions)), defaultPartitions)
	o.MaxLen = cmp.Or(o.MaxLen, app.MaxLen, e.number("RUNNEL_MAX_LEN", 1, 1<<53), defaultMaxLen)
	o.Overflow = cmp.Or(o.Overflow, app.Overflow, choice(e, "RUNNEL_OVERFLOW", map[string]Overflow{
		"reject": Reject, "block": Block, "drop-oldest": DropOldest}), Reject)
	o.MaxRecord = cmp.Or(o.MaxRecord, app.MaxRecord, e.number("RUNNEL_MAX_RECORD", minMaxRecord, mostMaxRecord), codec.DefaultLimit)
	o.DedupWindow = cmp.Or(o.DedupWindow, app.DedupWindow, e.duration("RUNNEL_DEDUP_WINDOW", minDedupWindow), defaultDedupWindow)
	o.Partitioner = cmp.Or(o.Partitioner, app.Partitioner, XXHash)
	o.KeyField = cmp.Or(o.KeyField, app.KeyField)
	o.Codec = cmp.Or(o.Codec, app.Codec, codec.MsgPack)
	return o
}

// processor fills the zero fields of a processor's options, which inherit from
// app's.
func (e *environment) processor(o, app ProcessorOptions) ProcessorOptions {
	o.OnError = cmp.Or(o.OnError, app.OnError, choice(e, "RUNNEL_ON_ERROR", map[string]Policy{
		"halt": Halt, "quarantine": Quarantine, "ignore": Ignore}), Halt)
	o.Retry = cmp.Or(o.Retry, app.Retry)
	o.Start = cmp.Or(o.Start, app.Start, StartBeginning)
	o.Lease = cmp.Or(o.Lease, app.Lease, e.duration("RUNNEL_LEASE", minLease), defaultLease)
	o.Grace = cmp.Or(o.Grace, app.Grace, e.duration("RUNNEL_GRACE", -1), defaultGrace)
	o.Timeout = cmp.Or(o.Timeout, app.Timeout, e.duration("RUNNEL_TIMEOUT", 0))
	o.JoinDelay = cmp.Or(o.JoinDelay, app.JoinDelay, e.duration("RUNNEL_JOIN_DELAY", 0))
	o.Reads = cmp.Or(o.Reads, app.Reads, choice(e, "RUNNEL_READS", map[string]Reads{"group": ByGroup, "position": ByPosition}), ByGroup)
	o.Prefetch = cmp.Or(o.Prefetch, app.Prefetch, int(e.number("RUNNEL_PREFETCH", 1, 1<<20)))
	o.adapt = o.Prefetch == 0
	o.Atomic = o.Atomic || app.Atomic
	o.Prefetch = cmp.Or(o.Prefetch, defaultPrefetch)
	o.PrefetchBytes = cmp.Or(o.PrefetchBytes, app.PrefetchBytes, e.number("RUNNEL_PREFETCH_BYTES", 1, 1<<40), defaultPrefetchBytes)
	o.ReadConns = cmp.Or(o.ReadConns, app.ReadConns, int(e.number("RUNNEL_READ_CONNS", 1, 64)))
	o.anyConns = o.ReadConns == 0
	o.ReadConns = cmp.Or(o.ReadConns, defaultReadConns)
	o.Middleware = append(app.Middleware[:len(app.Middleware):len(app.Middleware)], o.Middleware...)
	return o
}

// checkWorker rejects a name with control sequences for the terminals that show it.
func checkWorker(name string) error {
	for i, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(name[i:], "\uFFFD") {
			return errors.New("it has characters that cannot be printed")
		}
	}
	return nil
}

func defaultWorker() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
