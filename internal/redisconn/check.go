package redisconn

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/help"
)

// CanUnblock reports whether the server permits CLIENT UNBLOCK. It is true until the
// server has refused the command.
func (c *Conn) CanUnblock() bool { return !c.cannotUnblock.Load() }

// CanKill reports whether the server permits CLIENT KILL. It is true until the server has
// refused the command.
func (c *Conn) CanKill() bool { return !c.cannotKill.Load() }

// Check checks once what every user of the server needs: the server is reachable, accepts
// the login, is Redis 7.0 or newer, and has scripts. It also determines whether CLIENT
// UNBLOCK and CLIENT KILL are permitted. The further needs of a worker are checked by
// CheckRights.
func (c *Conn) Check(ctx context.Context) error {
	err := c.check(ctx)
	if err == nil {
		return nil
	}
	if said := c.turnedAway(ctx, err); said != "" {
		err = &CrowdedError{said, err}
	}
	return fmt.Errorf("redis at %s: %w", c.addr, err)
}

// A CrowdedError is returned if the server runs, and accepts no more connections.
type CrowdedError struct {
	Said string // by the server
	Err  error  // what became of the connection
}

// Error returns what the server said, and the remedy.
func (e *CrowdedError) Error() string {
	return e.Said + ": raise maxclients, or end what has too many connections; CLIENT LIST tells whose they are; " + help.RedisUnreachable
}

// Unwrap returns Err.
func (e *CrowdedError) Unwrap() error { return e.Err }

// full begins the reply of a server that accepts no more connections; a node of a cluster
// adds more.
const full = "ERR max number of clients"

// turnedAway returns the reply of a server that accepts no more connections, "" if that
// is not why a connection broke. In a cluster it may be any node.
func (c *Conn) turnedAway(ctx context.Context, err error) string {
	if ReplyHas(err, full) {
		return err.Error()
	}
	if c.cluster == nil && notSent(err) || IsReply(err) || !Unavailable(err) {
		return ""
	}
	addrs := []string{c.base.Addr}
	if c.cluster != nil {
		addrs = c.cluster.askable()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, addr := range addrs {
		if said := c.greeting(ctx, addr); strings.Contains(said, full) {
			return said
		}
	}
	return ""
}

// greeting returns a server's first bytes on a new connection. A server that accepts no
// more connections sends its reason at once and closes the connection; a client that
// writes first may see only the close. If there are several servers, the result names the
// server.
func (c *Conn) greeting(ctx context.Context, addr string) string {
	conn, err := c.dialer()(ctx, cmp.Or(c.base.Network, "tcp"), addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second / 4))
	line, _ := bufio.NewReaderSize(io.LimitReader(conn, 256), 256).ReadString('\n')
	said := strings.TrimPrefix(strings.TrimSpace(line), "-")
	if c.cluster != nil || c.tracker != nil {
		said = conn.RemoteAddr().String() + ": " + said
	}
	return said
}

func (c *Conn) check(ctx context.Context) error {
	if err := c.NoRetry.Ping(ctx).Err(); err != nil {
		return c.reachError(err)
	}
	if err := c.checkVersion(ctx); err != nil {
		return err
	}
	calls := []*Call{
		PlainCall(ctx, "EVAL", "return 1", 0),
		PlainCall(ctx, "CLIENT", "UNBLOCK", NoConnection),
		PlainCall(ctx, "CLIENT", "KILL", "ID", NoConnection),
	}
	Pipeline(ctx, c.Retrying, calls)
	if err := calls[0].Reply.Err(); err != nil {
		return fmt.Errorf("scripts are not available to user %q: %w: let an administrator say: ACL SETUSER %s +eval +evalsha; %s", c.User(), err, c.User(), help.MissingRights)
	}
	c.cannotUnblock.Store(IsReply(calls[1].Reply.Err()))
	c.cannotKill.Store(IsReply(calls[2].Reply.Err()))
	return nil
}

// reachError explains why the server was not reached.
func (s *server) reachError(err error) error {
	switch {
	case ReplyHas(err, "NOAUTH"):
		return errors.New("a password is required, and none was given")
	case ReplyHas(err, "WRONGPASS", "invalid password", "invalid username-password"):
		return errors.New("wrong user name or password")
	case ReplyHas(err, "NOPERM"): // as to SELECT a database
		return fmt.Errorf("user %q: %w; %s", s.User(), err, help.MissingRights)
	case IsReply(err):
		return err
	}
	if told := tlsError(err, s.base.TLSConfig != nil); told != nil {
		return told
	}
	return err
}

// checkVersion refuses a server whose version is too old. The embedded one, which has no
// version, passes.
func (c *Conn) checkVersion(ctx context.Context) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		version, err := node.Version(ctx)
		if err != nil {
			return err
		}
		major, _, _ := strings.Cut(version.Number, ".")
		if n, err := strconv.Atoi(major); err == nil && n < 7 {
			return fmt.Errorf("%s is %s, and Redis 7.0 or newer is needed; %s", c.nameOf(node), version, help.RedisVersion)
		}
	}
	return nil
}

// nameOf returns the name of the whole followed by the node.
func (c *Conn) nameOf(n Node) string {
	if c.cluster == nil {
		return "it"
	}
	return "node " + n.Addr
}

// A Version is the name and the version number that a server reports.
type Version struct {
	Name   string // "Redis" or "Valkey"
	Number string // "" if the server does not tell
}

// String returns the name and the number, such as "Valkey 8.1.1", or "" if the number is
// unknown.
func (v Version) String() string {
	if v.Number == "" {
		return ""
	}
	return v.Name + " " + v.Number
}

// ParseVersion reads the version from the section "server" of INFO. Valkey gives the version of
// Redis that it is compatible with, and its own beside it.
func ParseVersion(info string) Version {
	v := Version{Name: "Redis"}
	for line := range strings.Lines(info) {
		key, number, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "redis_version":
			v.Number = number
		case "valkey_version":
			return Version{Name: "Valkey", Number: number}
		}
	}
	return v
}

// Version returns the version that the server reports, without a number if it reports
// none. If INFO is not permitted, HELLO is used, which every user may send.
func (n Node) Version(ctx context.Context) (Version, error) {
	info, err := n.Redis.Info(ctx, "server").Result()
	if err != nil && IsReply(err) {
		return n.helloVersion(ctx, err)
	}
	return ParseVersion(info), err
}

func (n Node) helloVersion(ctx context.Context, why error) (Version, error) {
	if !ReplyHas(why, "NOPERM", "unknown command") {
		return Version{}, nil
	}
	reply, err := n.Redis.Do(ctx, "HELLO").Result()
	if err != nil && !IsReply(err) {
		return Version{}, err
	}
	fields := map[any]any{}
	switch reply := reply.(type) {
	case map[any]any:
		fields = reply
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			fields[reply[i]] = reply[i+1]
		}
	}
	v := Version{Name: "Redis"}
	if fields["server"] == "valkey" {
		v.Name = "Valkey"
	}
	v.Number, _ = fields["version"].(string)
	return v, nil
}

// User returns the user name of the connections, "default" if none is set.
func (s *server) User() string {
	if s.base.Username != "" {
		return s.base.Username
	}
	return "default"
}

// NoConnection is the ID of no connection.
const NoConnection = math.MaxInt64
