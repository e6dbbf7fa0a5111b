package inspect

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// Levels of a Diagnosis.
const (
	LevelOK      = "ok"
	LevelUnknown = "unknown" // the server denies the check
	LevelWarning = "warning" // an avoidable risk
	LevelProblem = "problem" // something is wrong
)

// A Diagnosis is the result of one check.
type Diagnosis struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do; "" if all is well
}

const (
	mostSkew   = 2 * time.Second
	slowTrip   = 10 * time.Millisecond
	trips      = 20
	fullMemory = 0.9 // of maxmemory
)

// Diagnose checks whether a server is fit for the framework and for production, and whether its
// user has the rights of a role. Trying the rights changes nothing. Diagnose returns an error if
// the server cannot be reached or lacks a required feature.
func Diagnose(ctx context.Context, c *store.Client, role keys.Role) ([]Diagnosis, error) {
	if err := c.Check(ctx); err != nil {
		return nil, err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	d := &doctor{c: c}
	d.link()
	d.sentinels(ctx)
	if err := d.cluster(ctx, nodes); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := d.server(ctx, n); err != nil {
			return nil, fmt.Errorf("redis at %s: %w", n.Addr, err)
		}
	}
	d.node = redisconn.Node{}
	if err := d.rights(ctx, role); err != nil {
		return nil, err
	}
	if role != keys.Produce { // a producer may not read the rest
		if err := d.app(ctx); err != nil {
			return nil, err
		}
	}
	return d.out, nil
}

// server checks one server; in a cluster it is called for each master.
func (d *doctor) server(ctx context.Context, n redisconn.Node) error {
	d.node, d.sections, d.config = n, nil, nil
	if err := d.ask(ctx); err != nil {
		return err
	}
	if err := d.version(ctx); err != nil {
		return err
	}
	d.role()
	d.persistence()
	d.memory()
	d.replication()
	return d.time(ctx)
}

type doctor struct {
	c        *store.Client
	node     redisconn.Node
	sections map[string]map[string]string // of INFO, nil: not permitted
	config   map[string]string            // nil: not permitted
	out      []Diagnosis
}

func (d *doctor) info(section, item string) string { return d.sections[section][item] }

// helps has the help by check. The findings of the check "app" differ, and bring their own.
var helps = map[string]string{
	"version": help.RedisVersion, "encryption": help.Encryption, "role": help.RedisRole, "persistence": help.Persistence,
	"memory": help.Memory, "replicas": help.Replicas, "distance": help.Distance, "clock": help.Clock, "cluster": help.Cluster,
	"rights": help.MissingRights, "sentinels": help.Sentinels,
}

func (d *doctor) say(check, level, advice, found string, args ...any) {
	switch h := helps[check]; {
	case level == LevelOK:
		advice = ""
	case h != "":
		advice += "; " + h
	}
	found = fmt.Sprintf(found, args...)
	if d.c.Clustered() && d.node.Addr != "" {
		found = "node " + d.node.Addr + ": " + found
	}
	d.out = append(d.out, Diagnosis{check, level, found, advice})
}

func (d *doctor) ask(ctx context.Context) error {
	info, err := d.node.Redis.Info(ctx).Result()
	if err != nil && !redisconn.IsReply(err) {
		return err
	}
	if err == nil {
		d.sections = sectionsOf(info)
	}
	// By name: CONFIG GET * would read the server's password as well.
	for _, name := range []string{"save", "appendfsync", "min-replicas-to-write", "cluster-require-full-coverage"} {
		found, err := d.node.Redis.ConfigGet(ctx, name).Result()
		if err != nil && !redisconn.IsReply(err) {
			return err
		}
		for name, value := range found {
			if d.config == nil {
				d.config = map[string]string{}
			}
			d.config[name] = value
		}
	}
	return nil
}

// sectionsOf parses the reply of INFO into sections and items.
func sectionsOf(info string) map[string]map[string]string {
	sections, section := map[string]map[string]string{}, ""
	for line := range strings.Lines(info) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# "); ok {
			section = strings.ToLower(name)
			sections[section] = map[string]string{}
		} else if name, value, ok := strings.Cut(line, ":"); ok && section != "" {
			sections[section][name] = value
		}
	}
	return sections
}

func (d *doctor) version(ctx context.Context) error {
	version, err := d.node.Version(ctx)
	switch {
	case err != nil:
		return err
	case version.Number == "":
		d.say("version", LevelUnknown, "make sure that it is Redis 7.0 or newer", "the server does not tell its version")
	default:
		d.say("version", LevelOK, "", "%s", version) // Check refuses older ones
	}
	return nil
}

func (d *doctor) link() {
	const advice = "encrypt it: a URL that begins with rediss://"
	switch l := d.c.Link(); {
	case l.TLS && l.Unchecked:
		d.say("encryption", LevelWarning, "leave out skip_verify, and name the authority with RUNNEL_REDIS_CA", "TLS, but any server is accepted")
	case l.TLS:
		d.say("encryption", LevelOK, "", "TLS, and the server's certificate is checked")
	case l.Here:
		d.say("encryption", LevelOK, "", "none, on this machine")
	case l.Password:
		d.say("encryption", LevelWarning, advice, "none: the password and all events can be read on the way")
	default:
		d.say("encryption", LevelWarning, advice+"; and give users passwords", "none, and no password: every client that reaches the server may do anything")
	}
}

func (d *doctor) role() {
	switch {
	case d.info("replication", "role") == "slave":
		d.say("role", LevelProblem, "connect to the master: a replica takes no writes, and its reads are behind", "it is a replica of %s:%s", d.info("replication", "master_host"), d.info("replication", "master_port"))
	case d.info("cluster", "cluster_enabled") == "1" && !d.c.Clustered():
		d.say("role", LevelProblem, "use a URL of the form redis+cluster://host:port, and the key layout cluster", "it is a node of a cluster, and is used as a server of its own")
	case d.c.Clustered() && d.config["cluster-require-full-coverage"] == "yes":
		d.say("role", LevelWarning, "set cluster-require-full-coverage no: then a master that is away costs its own partitions, and not all", "a master, which refuses everything while another one is away")
	case d.c.Clustered():
		d.say("role", LevelOK, "", "a master of the cluster")
	case d.sections["replication"] == nil:
		d.say("role", LevelUnknown, "let the user run INFO", "the server does not tell whether it is a replica")
	default:
		d.say("role", LevelOK, "", "a master of its own")
	}
}

func (d *doctor) persistence() {
	const advice = "set appendonly yes (appendfsync everysec): then a crash of the server costs a second at most"
	switch {
	case d.sections["persistence"] == nil:
		d.say("persistence", LevelUnknown, advice, "the server does not tell whether it writes to a disk")
	case d.info("persistence", "aof_enabled") == "1" && d.info("persistence", "aof_last_write_status") == "err":
		d.say("persistence", LevelProblem, "look at the disk and the log of Redis: it refuses writes meanwhile", "the append-only file cannot be written")
	case d.info("persistence", "aof_enabled") == "1":
		d.say("persistence", LevelOK, "", "append-only file, fsync %s", cmp.Or(d.config["appendfsync"], "unknown"))
	case d.info("persistence", "rdb_last_bgsave_status") == "err":
		d.say("persistence", LevelProblem, "look at the disk and the log of Redis: it refuses writes meanwhile", "the last snapshot failed")
	case d.config != nil && d.config["save"] == "":
		d.say("persistence", LevelWarning, advice, "none: a restart of the server forgets every event and every position")
	default:
		d.say("persistence", LevelWarning, advice, "snapshots only: a crash of the server forgets what came since the last one, acks and events alike")
	}
}

func (d *doctor) memory() {
	policy, limit := d.info("memory", "maxmemory_policy"), number(d.info("memory", "maxmemory"))
	used, evicted := number(d.info("memory", "used_memory")), number(d.info("stats", "evicted_keys"))
	evictedText := ""
	if evicted > 0 {
		evictedText = fmt.Sprintf("; %d keys were evicted since its start", evicted)
	}
	switch {
	case policy == "":
		d.say("memory", LevelUnknown, "make sure that maxmemory-policy is noeviction", "the server does not tell what it does when its memory is full")
	case limit > 0 && policy != "noeviction":
		d.say("memory", LevelProblem, "set maxmemory-policy noeviction: else Redis drops events, or locks and heartbeats, when its memory is full", "maxmemory-policy is %s, with maxmemory %d MiB%s", policy, limit>>20, evictedText)
	case policy != "noeviction":
		d.say("memory", LevelWarning, "set maxmemory-policy noeviction before you set maxmemory", "maxmemory-policy is %s; nothing is evicted as long as maxmemory is not set", policy)
	case evicted > 0:
		d.say("memory", LevelWarning, "look at status and check, which tell what is known to be gone; a restart of the server counts from 0", "noeviction, but %d keys were evicted since its start", evicted)
	case limit > 0 && used >= limit:
		d.say("memory", LevelProblem, "raise maxmemory, lower MaxLen, or find out with status which processor does not ack", "%d MiB of %d MiB are used: it refuses what is sent", used>>20, limit>>20)
	case limit > 0 && float64(used) > fullMemory*float64(limit):
		d.say("memory", LevelWarning, "raise maxmemory, lower MaxLen, or find out with status which processor does not ack: a full server refuses sends", "%d MiB of %d MiB are used", used>>20, limit>>20)
	case limit > 0:
		d.say("memory", LevelOK, "", "noeviction, %d MiB of %d MiB are used", used>>20, limit>>20)
	default:
		d.say("memory", LevelOK, "", "noeviction, %d MiB are used, without a limit", used>>20)
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (d *doctor) replication() {
	replicas := number(d.info("replication", "connected_slaves"))
	least, known := d.config["min-replicas-to-write"]
	want := int64(d.c.MinReplicas())
	const advice = "set min-replicas-to-write 1 and min-replicas-max-lag: then a master that is cut off refuses writes soon, and less is lost at a failover"
	switch {
	case d.sections["replication"] == nil:
		d.say("replicas", LevelUnknown, "let the user run INFO", "the server does not tell whether it has any")
	case want > replicas:
		d.say("replicas", LevelProblem, "connect replicas, or lower RUNNEL_MIN_REPLICAS: until then sends end with an error, and no partition gets a new owner", "%d connected, and %d have to confirm", replicas, want)
	case want > 0 && want == replicas:
		d.say("replicas", LevelWarning, "have one replica more than RUNNEL_MIN_REPLICAS: when one is away, or has become the master, sends end with an error, and no partition gets a new owner", "%d connected, and all of them have to confirm", replicas)
	case replicas == 0 && d.c.Clustered():
		d.say("replicas", LevelWarning, "give each master a replica: else its partitions stand still while it is away", "none")
	case replicas == 0:
		d.say("replicas", LevelOK, "", "none: if this server is gone for good, so is what it held")
	case !known:
		d.say("replicas", LevelUnknown, advice, "%d connected; the server does not tell min-replicas-to-write", replicas)
	case number(least) == 0:
		d.say("replicas", LevelWarning, advice, "%d connected, min-replicas-to-write is 0: after a failover events and acks of the last moments may be gone", replicas)
	default:
		d.say("replicas", LevelOK, "", "%d connected, min-replicas-to-write is %s", replicas, least)
	}
}

// time compares the clocks, and measures the round trip.
func (d *doctor) time(ctx context.Context) error {
	best, skew, latest := time.Duration(0), time.Duration(0), time.Time{}
	for i := range trips {
		sent := time.Now()
		at, err := d.node.Redis.Time(ctx).Result()
		if err != nil {
			return fmt.Errorf("the clock of Redis: %w", err)
		}
		took := time.Since(sent)
		latest = at
		if i == 0 || took < best { // the shortest round trip is the most precise
			best, skew = took, at.Sub(sent.Add(took/2))
		}
	}
	if best > slowTrip {
		d.say("distance", LevelWarning, "run workers near Redis: each ack and each refresh of a lease takes a round trip", "a round trip takes %s at least", best.Round(time.Millisecond))
	} else {
		d.say("distance", LevelOK, "", "a round trip takes %s at least", best.Round(10*time.Microsecond))
	}
	const slew = "have NTP slew the clocks, never set them: due times and retention follow that of Redis, logs and Cron that of the worker, and a step forward of that of Redis ends all locks and heartbeats at once"
	saved := time.Unix(number(d.info("persistence", "rdb_last_save_time")), 0)
	if saved.Sub(latest) > mostSkew {
		d.say("clock", LevelWarning, slew, "that of Redis was set back, by %s at least, since its last snapshot or its start", saved.Sub(latest).Round(time.Second))
	} else if skew.Abs() > mostSkew {
		d.say("clock", LevelWarning, slew, "that of Redis is %s off from the one here", skew.Round(time.Millisecond))
	} else {
		d.say("clock", LevelOK, "", "that of Redis is %s off from the one here", skew.Round(time.Millisecond))
	}
	return nil
}
