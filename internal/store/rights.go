package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// An ACL is what the user of this client may do on the server. Workers check it when they start,
// and the doctor of inspect explains it.
type ACL struct{ *core }

// A Right is a command that the framework calls, or a kind of key that it uses.
type Right struct {
	Name    string    // "XGROUP CREATE", or "keys __memb:shop.*"
	Rule    string    // what grants it: an argument of ACL SETUSER
	Roles   keys.Role // who needs it
	Without string    // what is worse without it; "": the role does not work
	When    When      // needed only then

	args []any // what tries it: a command that changes nothing
}

// A When is the kind of server on which a right is needed.
type When int

const (
	Always    When = iota
	Clustered      // in a Redis Cluster
	Moving         // where sentinels name the master
	Lasting        // where replicas have to confirm
)

// Tables is for Uses: the app has tables.
const Tables = "table"

// Uses makes the rights to what streams of a kind have besides the core's keys, or Tables, belong to those that
// roles need.
func (c ACL) Uses(kind string) {
	if e := (Meta{Kind: kind}).Extension(); e != "" || kind == Tables {
		e = cmp.Or(e, Tables)
		c.extensions.Store(e, true)
	}
}

// uses reports whether the app has keys of this kind.
func (c ACL) uses(kind keys.Kind) bool {
	if kind.Extension == "" {
		return true
	}
	_, is := c.extensions.Load(kind.Extension)
	return is
}

// wants reports whether a right is needed here.
func (c ACL) wants(r Right) bool {
	switch r.When {
	case Clustered:
		return c.Clustered()
	case Moving:
		return c.MasterMoves()
	case Lasting:
		return c.MinReplicas() > 0
	}
	return true
}

// nowhere is a partition that no stream has.
const nowhere = math.MaxInt32

// Rights returns what any role needs, commands before keys: those of the core, and of extensions that
// the app uses; see Uses. Tests run with users who have no more.
func (c ACL) Rights() []Right {
	return append(c.commands(), c.keyRights()...)
}

// Rule returns the arguments of ACL SETUSER that give a role what it needs and nothing else: keys,
// and then commands, without password and name.
func (c ACL) Rule(role keys.Role) []string {
	var keys, commands []string
	for _, r := range c.Rights() {
		switch {
		case r.Roles&role == 0:
		case strings.HasPrefix(r.Rule, "+"):
			commands = append(commands, r.Rule)
		case r.Rule != "":
			keys = append(keys, r.Rule)
		}
	}
	slices.Sort(keys)
	slices.Sort(commands)
	return append(slices.Compact(keys), slices.Compact(commands)...)
}

func (c ACL) commands() []Right {
	const most, change = keys.Produce | keys.Work | keys.Operate, keys.Work | keys.Operate
	p := c.Partition("doctor", "doctor", nowhere)
	due := c.keys.Delayed("doctor", nowhere)
	rights := []Right{
		{Roles: keys.Everyone, args: []any{"PING"}},
		{Roles: keys.Everyone, args: []any{"TIME"}},
		{Roles: keys.Everyone, args: []any{"EVAL", "return 1", 0}},
		{Roles: keys.Everyone, args: []any{"EVALSHA", strings.Repeat("0", 40), 0}},
		{Roles: keys.Everyone, args: []any{"GET", due.Sequence}},
		{Roles: change, args: []any{"GETRANGE", due.Sequence, 0, 0}},
		{Roles: most, args: []any{"SET", due.Sequence, "doctor", "XX"}},
		{Roles: keys.Everyone, args: []any{"EXISTS", due.Sequence}},
		{Roles: most, args: []any{"PEXPIRE", due.Sequence, 1}},
		{Roles: change | keys.Watch, args: []any{"PTTL", due.Sequence}},
		{Roles: change, args: []any{"DEL", due.Sequence}},
		{Roles: keys.Operate, args: []any{"UNLINK", p.Log}},
		{Roles: keys.Everyone, args: []any{"HGET", p.Own, "doctor"}},
		{Roles: keys.Everyone, args: []any{"HMGET", p.Own, "doctor"}},
		{Roles: keys.Everyone, args: []any{"HGETALL", p.Own}},
		{Roles: keys.Everyone, args: []any{"HLEN", p.Own}},
		{Roles: change | keys.Watch, args: []any{"HVALS", p.Own}},
		{Roles: change | keys.Watch, args: []any{"HKEYS", p.Own}},
		{Roles: change | keys.Watch, args: []any{"HSCAN", p.Own, 0}},
		{Roles: most, args: []any{"HEXISTS", p.Own, "doctor"}},
		{Roles: most, args: []any{"HSET", p.Own, "doctor", "a", "b"}}, // a field has no value
		{Roles: change, args: []any{"HDEL", p.Own, "doctor"}},
		{Roles: most, args: []any{"HINCRBY", p.Own, "doctor", "no number"}},
		{Roles: keys.Everyone, args: []any{"ZCARD", due.Due}},
		{Roles: keys.Everyone, args: []any{"ZRANGE", due.Due, 0, 0}},
		{Roles: keys.Work, args: []any{"ZRANGEBYSCORE", due.Due, 0, 0}},
		{Roles: keys.Work, args: []any{"ZCOUNT", due.Due, 0, 0}},
		{Roles: most, args: []any{"ZSCORE", due.Due, "doctor"}},
		{Roles: most, args: []any{"ZADD", due.Due, "XX", 1, "doctor"}},
		{Roles: change, args: []any{"ZREM", due.Due, "doctor"}},
		{Roles: most, args: []any{"INCRBY", due.Sequence, "no number"}},
	}
	rights = append(rights, streamRights(p)...)
	if _, is := c.extensions.Load("stage"); is {
		rights = append(rights, c.setRights(p)...)
	}
	if _, is := c.extensions.Load(Tables); is {
		rights = append(rights,
			Right{Roles: keys.Produce, args: []any{"HSCAN", p.Own, 0}},                    // all rows
			Right{Roles: keys.Watch, args: []any{"ZSCORE", due.Due, "doctor"}},            // when one ends
			Right{Roles: keys.Watch | keys.Operate, args: []any{"ZCOUNT", due.Due, 0, 0}}, // how many are over
		)
	}
	if _, is := c.extensions.Load("schedule"); is {
		due := c.keys.Delayed("doctor", nowhere)
		rights = append(rights,
			Right{Roles: keys.Work, args: []any{"ZLEXCOUNT", due.Due, "-", "+"}}, // how many logical times of a task are kept
			Right{Roles: keys.Watch, args: []any{"ZSCORE", due.Due, "doctor"}},   // when a trigger goes on
		)
	}
	return withNames(rights)
}

// setRights are the commands that sets of entities need beside the core's: producers delete entities and
// touch all of them, watchers and operators count visits.
func (c ACL) setRights(p Partition) []Right {
	due := c.keys.Delayed("doctor", nowhere)
	return []Right{
		{Roles: keys.Produce, args: []any{"HSCAN", p.Own, 0}},
		{Roles: keys.Produce, args: []any{"HDEL", p.Own, "doctor"}},
		{Roles: keys.Produce, args: []any{"ZREM", due.Due, "doctor"}},
		{Roles: keys.Watch | keys.Operate, args: []any{"ZCOUNT", due.Due, 0, 0}},
		{Roles: keys.Watch, args: []any{"ZSCORE", due.Due, "doctor"}},
	}
}

func streamRights(p Partition) []Right {
	const most, change = keys.Produce | keys.Work | keys.Operate, keys.Work | keys.Operate
	return []Right{
		{Roles: most, args: []any{"XADD", p.Log, "NOMKSTREAM", "*", "a", "b"}},
		{Roles: most, args: []any{"XTRIM", p.Log, "MAXLEN", 0}},
		{Roles: keys.Everyone, args: []any{"XLEN", p.Log}},
		{Roles: keys.Everyone, args: []any{"XRANGE", p.Log, "-", "+", "COUNT", 1}},
		{Roles: keys.Everyone, args: []any{"XREVRANGE", p.Log, "+", "-", "COUNT", 1}},
		{Roles: keys.Everyone, args: []any{"XPENDING", p.Log, "doctor"}},
		{Roles: keys.Everyone, args: []any{"XINFO", "STREAM", p.Log}},
		{Roles: keys.Everyone, args: []any{"XINFO", "GROUPS", p.Log}},
		{Roles: change | keys.Watch, args: []any{"MEMORY", "USAGE", p.Log}, Without: "a look copies entries and states however large they are, and keeps the server from others meanwhile"},
		{Roles: change | keys.Watch, args: []any{"XREAD", "COUNT", 1, "STREAMS", p.Log, "0"}},
		{Roles: keys.Work, args: []any{"XREADGROUP", "GROUP", "doctor", "doctor", "COUNT", 1, "STREAMS", p.Log, ">"}},
		{Roles: keys.Work, args: []any{"XACK", p.Log, "doctor", "0-1"}},
		{Roles: change, args: []any{"XCLAIM", p.Log, "doctor", "doctor", 0, "0-1", "JUSTID"}, Without: "entries that were removed while they were pending count as lost later"},
		{Roles: change, args: []any{"XGROUP", "CREATE", p.Log, "doctor", "$"}},
		{Roles: change, args: []any{"XGROUP", "DESTROY", p.Log, "doctor"}},
		{Roles: most, args: []any{"XGROUP", "SETID", p.Log, "doctor", "$"}},
		{Roles: keys.Operate, args: []any{"XDEL", p.Log, "0-1"}},
		{Roles: most, Name: "@transaction", Rule: "+@transaction", args: []any{"DISCARD"}, Without: "large sends, of records of 16 KiB and more, take Redis twice as long"},
		{Roles: keys.Everyone, args: []any{"INFO", "server"}, Without: "the state of the server is not checked: its role, persistence, memory and replicas"},
		{Roles: keys.Work, args: []any{"CLIENT", "ID"}, Without: "CLIENT UNBLOCK and CLIENT KILL cannot be used"},
		{Roles: keys.Work, args: []any{"CLIENT", "UNBLOCK", redisconn.NoConnection}, Without: "partitions are handed over later: up to a fifth of a second"},
		{Roles: keys.Work, args: []any{"CLIENT", "KILL", "ID", redisconn.NoConnection}, Without: "a worker whose connection breaks has to join anew"},
		{Roles: keys.Everyone, args: []any{"CLUSTER", "SLOTS"}, When: Clustered},
		{Roles: keys.Everyone, args: []any{"CLUSTER", "INFO"}, When: Clustered, Without: "doctor cannot tell whether all slots are served"},
		{Roles: keys.Everyone, args: []any{"ASKING"}, When: Clustered, Without: "what has gone ahead of a slot on its way to another node is not reached until the slot has"},
		{Roles: keys.Everyone, args: []any{"ROLE"}, When: Moving, Without: "a server that is no master any more is noticed when it refuses a write"},
		{Roles: keys.Work, args: []any{"CLIENT", "INFO"}, Without: "what ends a broken connection may hit another one after a restart of the server, or a failover"},
		{Roles: most, args: []any{"WAIT", 0, 1}, When: Lasting},
		// For no role, since it also shows the server's own password.
		{args: []any{"CONFIG", "GET", "save"}, Without: "doctor cannot tell what is set for persistence and replicas"},
	}
}

// withSubcommand are the commands that a rule names with their subcommand.
var withSubcommand = []string{"XINFO", "XGROUP", "CLIENT", "CLUSTER", "CONFIG", "MEMORY"}

func withNames(rights []Right) []Right {
	for i, r := range rights {
		if r.Rule != "" {
			continue // a category, of which one command is tried
		}
		name := r.args[0].(string)
		rights[i].Rule = "+" + strings.ToLower(name)
		if slices.Contains(withSubcommand, name) {
			sub := r.args[1].(string)
			rights[i].Rule += "|" + strings.ToLower(sub)
			name += " " + sub
		}
		rights[i].Name = name
	}
	return rights
}

// keyRights returns the rights to keys of each kind. For a script, Redis wants both read and write
// access to all of its keys, whatever it does.
func (c ACL) keyRights() []Right {
	k := c.keys
	var rights []Right
	for _, kind := range keys.Kinds {
		if kind.Roles != 0 && c.uses(kind) {
			key := kind.Key(k, "doctor", "doctor", "doctor", nowhere)
			rights = append(rights, keyRight(kind.Roles, "~", k.Pattern(key), "EVAL", "return 1", 1, key))
		}
	}
	elsewhere, refused := k.Other().Meta("doctor"), keys.Everyone&^keys.Watch // a stream that is there under the other names
	if _, is := c.extensions.Load(Tables); is {
		refused = keys.Everyone // Table.Get is a watcher's
	}
	return append(rights,
		keyRight(refused, "%R~", k.Pattern(elsewhere), "EXISTS", elsewhere),
		keyRight(keys.Work, "%R~", k.OldLeader(), "EXISTS", k.OldLeader()),
		ruleRight(k.Rules(), "pause and resume"),
		ruleRight(k.Blocks(), "block and unblock"),
		keyRight(keys.Everyone&^keys.Operate, "%R~", k.Rules(), "HGET", k.Rules(), "generation"),
		keyRight(keys.Everyone&^keys.Operate, "%R~", k.Blocks(), "HGET", k.Blocks(), "generation"),
		keyRight(keys.Watch, "%R~", k.Audit(), "XLEN", k.Audit()))
}

// ruleRight returns the right to change rules of one kind; operators need not have both.
func ruleRight(key, what string) Right {
	r := keyRight(keys.Operate, "~", key, "EVAL", "return 1", 1, key)
	r.Without = "this user cannot " + what
	return r
}

func keyRight(roles keys.Role, access, pattern string, args ...any) Right {
	return Right{Name: "keys " + pattern, Rule: access + pattern, Roles: roles, args: args}
}

// Lacking returns the rights of a role that the user lacks, in a cluster on any master: the role
// does not work without the missing ones, and works worse without the others. The error is the
// connection's.
func (c ACL) Lacking(ctx context.Context, role keys.Role) (missing, worse []Right, err error) {
	var rights []Right
	for _, r := range c.Rights() {
		if (r.Roles&role != 0 || r.Roles == 0) && c.wants(r) {
			rights = append(rights, r)
		}
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	denied := map[string]bool{} // commands and keys, by rule
	for _, n := range nodes {
		// A node says that a right is missing before it says whose the slot is.
		refused, err := lackingAt(ctx, n.Redis, rights, role)
		if err != nil {
			return nil, nil, fmt.Errorf("at %s: %w", n.Addr, err)
		}
		for _, r := range refused {
			switch {
			case denied[r.Rule]:
			case r.Without != "":
				worse = append(worse, r)
			default:
				missing = append(missing, r)
			}
			denied[r.Rule] = true
		}
	}
	return missing, worse, nil
}

// lackingAt returns those of the rights that a server refuses.
func lackingAt(ctx context.Context, rdb *redis.Client, rights []Right, role keys.Role) (refused []Right, err error) {
	calls := make([]*redisconn.Call, len(rights))
	for i, r := range rights {
		calls[i] = redisconn.PlainCall(ctx, r.trial(role)...)
	}
	redisconn.Pipeline(ctx, rdb, calls)
	for i, r := range rights {
		err := calls[i].Reply.Err()
		switch {
		case err == nil || errors.Is(err, redis.Nil):
		case !redisconn.IsReply(err) || redisconn.Unavailable(err) && !redisconn.ReplyHas(err, "TRYAGAIN ", "CLUSTERDOWN "):
			return nil, err
		case refuses(r, err):
			refused = append(refused, r)
		}
	}
	return refused, nil
}

// trial returns the command that tries a right. Keys are tried by a cheaper one than EVAL if the
// role has it: HINCRBY needs read and write access as well, and refuses its argument.
func (r Right) trial(role keys.Role) []any {
	if strings.HasPrefix(r.Rule, "~") && role&keys.Watch == 0 {
		return []any{"HINCRBY", r.args[len(r.args)-1], "doctor", "no number"}
	}
	return r.args
}

// refuses reports whether an error means that the right is missing. A command may be tried on a
// forbidden key, and a key by a forbidden command: each is reported once.
func refuses(r Right, err error) bool {
	text := err.Error()
	ofKey := strings.Contains(text, "one of the keys") || strings.Contains(text, "access a key")
	switch {
	case strings.HasPrefix(text, "NOPERM"):
		return ofKey != strings.HasPrefix(r.Rule, "+")
	case strings.Contains(text, "unknown command"), strings.Contains(text, "unknown subcommand"):
		return strings.HasPrefix(r.Rule, "+")
	}
	return false
}

// CheckRights fails if the user lacks rights that the role needs, naming them and what grants them.
func (c ACL) CheckRights(ctx context.Context, role keys.Role) error {
	missing, _, err := c.Lacking(ctx, role)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("user %q lacks rights that %s needs: %s; let an administrator say: %s; %s",
			c.User(), role.Indefinite(), names(missing), c.Grant(missing), help.MissingRights)
	}
	if err != nil {
		return fmt.Errorf("redis at %s: %w", c.Addr(), err)
	}
	return nil
}

// Grant returns the administrator's command that gives the user these rights.
func (c ACL) Grant(rights []Right) string {
	words := []string{"ACL", "SETUSER", c.User()}
	for _, r := range rights {
		words = append(words, r.Rule)
	}
	return strings.Join(words, " ")
}

func names(rights []Right) string {
	var all []string
	for _, r := range rights {
		all = append(all, r.Name)
	}
	return strings.Join(all, ", ")
}
