package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slots      = 16384
	keysAtOnce = 100

	failoverTries = 3
	failoverTry   = 6 * time.Second
)

// A Cluster is a Redis Cluster of its own servers. Its methods may be called concurrently, except
// those that move slots; those that fail end the test.
type Cluster struct {
	t     testing.TB
	nodes []*Server
	ids   map[*Server]string
}

// StartCluster starts a cluster of so many masters, which share the slots evenly, each with so many
// replicas, and returns when all its nodes agree. args are those of Start; a "--requirepass" among
// them is also that of the replication. A node that does not answer for two seconds is given up by
// the others. The cluster is killed when the test ends.
func StartCluster(t testing.TB, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, ids: map[*Server]string{}}
	if password := argument(args, "--requirepass"); password != "" {
		args = append([]string{"--masterauth", password}, args...)
	}
	args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-replica-validity-factor", "0"}, args...)
	for range masters * (1 + replicas) {
		c.nodes = append(c.nodes, Start(t, args...))
	}
	for i, n := range c.nodes {
		c.ids[n] = c.text(n, "CLUSTER", "MYID")
		c.do(n, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < masters {
			c.do(n, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
		}
		host, port, _ := net.SplitHostPort(n.Addr())
		c.do(c.nodes[0], "CLUSTER", "MEET", host, port)
	}
	c.wait("the nodes know each other", func(n *Server) bool { return c.info(n, "cluster_known_nodes") == strconv.Itoa(len(c.nodes)) })
	for i, n := range c.nodes[masters:] {
		c.do(n, "CLUSTER", "REPLICATE", c.ids[c.nodes[i%masters]])
	}
	c.Settle()
	return c
}

// Nodes returns all servers: first those that began as masters.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// URL names some of the nodes.
func (c *Cluster) URL() string {
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.Addr())
	}
	return c.nodes[0].scheme("+cluster") + strings.Join(addrs, ",")
}

// Client returns a client of the cluster; it is closed when t ends.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	o := &redis.ClusterOptions{Password: c.nodes[0].password, TLSConfig: c.nodes[0].tls, DisableIdentity: true}
	for _, n := range c.nodes {
		o.Addrs = append(o.Addrs, n.Addr())
	}
	rdb := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Settle returns when all running nodes report that the cluster is complete, agree on the masters,
// and the replicas follow.
func (c *Cluster) Settle() {
	c.t.Helper()
	for _, n := range c.nodes {
		if crashed(n) {
			c.t.Fatalf("node %s ended by itself\n%s", n.Addr(), n.Log())
		}
	}
	c.wait("the cluster is complete", func(n *Server) bool {
		return c.info(n, "cluster_state") == "ok" && c.info(n, "cluster_slots_ok") == strconv.Itoa(slots)
	})
	c.wait("the replicas follow", func(n *Server) bool {
		replication := c.text(n, "INFO", "replication")
		// A master sends nothing to a replica that it has not heard of since the first copy, and that says "up" already.
		return strings.Contains(replication, "role:master") && strings.Count(replication, "state=") == strings.Count(replication, "state=online") ||
			strings.Contains(replication, "master_link_status:up")
	})
	views := func() (all []string) {
		for _, n := range c.running() {
			var view []string
			for line := range strings.Lines(c.text(n, "CLUSTER", "NODES")) {
				if w := strings.Fields(line); len(w) >= 8 && strings.Contains(w[2], "master") && !strings.Contains(w[2], "fail") {
					view = append(view, w[0]+" "+strings.Join(w[8:], " "))
				}
			}
			slices.Sort(view)
			all = append(all, strings.Join(view, "\n"))
		}
		return all
	}
	if !Within(startTimeout, func() bool { v := views(); return len(slices.Compact(v)) == 1 }) {
		c.t.Fatalf("the nodes of the cluster do not agree: %q", views())
	}
}

// crashed reports whether a server ended by itself.
func crashed(s *Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.ended() && !s.proc.killed
}

// Owner returns the master that serves a slot, according to the running nodes.
func (c *Cluster) Owner(slot int) *Server {
	c.t.Helper()
	var found *Server
	if !Within(startTimeout, func() bool {
		for _, n := range c.running() {
			if found = c.server(c.ownerBy(n, slot)); found != nil {
				return true
			}
		}
		return false
	}) {
		c.t.Fatalf("no node serves slot %d", slot)
	}
	return found
}

// Slot returns the hash slot of a key.
func (c *Cluster) Slot(key string) int {
	slot, _ := strconv.Atoi(c.text(c.running()[0], "CLUSTER", "KEYSLOT", key))
	return slot
}

// ReplicaOf returns a replica of a master.
func (c *Cluster) ReplicaOf(master *Server) *Server {
	c.t.Helper()
	for line := range strings.Lines(c.text(master, "CLUSTER", "REPLICAS", c.ids[master])) {
		id, _, _ := strings.Cut(strings.Trim(line, "[]\""), " ")
		if n := c.server(id); n != nil {
			return n
		}
	}
	c.t.Fatalf("node %s has no replica", master.Addr())
	return nil
}

// Failover makes a replica the master, in agreement with the old one.
func (c *Cluster) Failover(replica *Server) {
	c.t.Helper()
	promoted := func() bool { return replica.role() == "master" }
	for range failoverTries { // a node gives up after five seconds
		c.do(replica, "CLUSTER", "FAILOVER")
		if Within(failoverTry, promoted) {
			break
		}
	}
	c.wait("the failover", func(n *Server) bool { return n != replica || promoted() })
	c.Settle()
}

// WaitFailover returns when another node than old serves a slot, according to a running node.
func (c *Cluster) WaitFailover(slot int, old *Server) {
	c.t.Helper()
	if !Within(failoverTimeout, func() bool { return c.Owner(slot) != old }) {
		c.t.Fatalf("no replica has taken the place of %s within %v", old.Addr(), failoverTimeout)
	}
}

// Masters returns the nodes that serve slots.
func (c *Cluster) Masters() (list []*Server) {
	c.t.Helper()
	for _, n := range c.running() {
		if n.role() == "master" {
			list = append(list, n)
		}
	}
	return list
}

// A Move is a slot on its way from one master to another.
type Move struct {
	c        *Cluster
	slot     int
	from, to *Server
}

// Begin begins to move a slot.
func (c *Cluster) Begin(slot int, to *Server) *Move {
	c.t.Helper()
	m := &Move{c, slot, c.server(c.ownerBy(to, slot)), to}
	if m.from == to {
		c.t.Fatalf("slot %d is at %s already", slot, to.Addr())
	}
	c.do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[m.from])
	c.do(m.from, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
	return m
}

// Some moves at most n keys and returns their number.
func (m *Move) Some(n int) int {
	m.c.t.Helper()
	ctx := context.Background()
	rdb := redis.NewClient(m.from.options())
	defer rdb.Close()
	keys, err := rdb.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
	if err == nil && len(keys) > 0 {
		host, port, _ := net.SplitHostPort(m.to.Addr())
		args := []any{"MIGRATE", host, port, "", 0, 5000}
		if m.to.password != "" {
			args = append(args, "AUTH", m.to.password)
		}
		args = append(args, "KEYS")
		for _, key := range keys {
			args = append(args, key)
		}
		err = rdb.Do(ctx, args...).Err()
	}
	if err != nil {
		m.c.t.Fatalf("move slot %d: %v", m.slot, err)
	}
	return len(keys)
}

// End moves the rest and gives the slot to its new node.
func (m *Move) End() {
	m.c.t.Helper()
	for m.Some(keysAtOnce) > 0 {
	}
	for _, n := range []*Server{m.to, m.from} {
		m.c.do(n, "CLUSTER", "SETSLOT", m.slot, "NODE", m.c.ids[m.to])
	}
	m.c.wait("the slot has moved", func(n *Server) bool { return m.c.ownerBy(n, m.slot) == m.c.ids[m.to] })
}

// ownerBy is the ID of the node that serves a slot as n sees it.
func (c *Cluster) ownerBy(n *Server, slot int) string {
	for line := range strings.Lines(c.text(n, "CLUSTER", "NODES")) {
		w := strings.Fields(line)
		if len(w) < 9 || !strings.Contains(w[2], "master") || strings.Contains(w[2], "fail") {
			continue
		}
		for _, r := range w[8:] {
			low, high, isRange := strings.Cut(r, "-")
			if !isRange {
				high = low
			}
			from, err1 := strconv.Atoi(low)
			to, err2 := strconv.Atoi(high)
			if err1 == nil && err2 == nil && from <= slot && slot <= to {
				return w[0]
			}
		}
	}
	return ""
}

func (c *Cluster) server(id string) *Server {
	for n, own := range c.ids {
		if own == id {
			return n
		}
	}
	return nil
}

func (c *Cluster) running() (out []*Server) {
	for _, n := range c.nodes {
		if n.Running() {
			out = append(out, n)
		}
	}
	return out
}

// wait returns when yes holds for all running nodes.
func (c *Cluster) wait(what string, yes func(*Server) bool) {
	c.t.Helper()
	if !Within(startTimeout, func() bool {
		return !slices.ContainsFunc(c.running(), func(n *Server) bool { return !yes(n) })
	}) {
		c.t.Fatalf("%s: not within %v\n%s", what, startTimeout, c.text(c.running()[0], "CLUSTER", "NODES"))
	}
}

func (c *Cluster) info(n *Server, field string) string {
	for line := range strings.Lines(c.text(n, "CLUSTER", "INFO")) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == field {
			return value
		}
	}
	return ""
}

func (c *Cluster) text(n *Server, args ...any) string {
	return ask(n, func(ctx context.Context, rdb *redis.Client) (string, error) {
		reply, err := rdb.Do(ctx, args...).Result()
		return fmt.Sprint(reply), err
	})
}

func (c *Cluster) do(n *Server, args ...any) {
	c.t.Helper()
	rdb := redis.NewClient(n.options())
	defer rdb.Close()
	if err := rdb.Do(context.Background(), args...).Err(); err != nil {
		c.t.Fatalf("%s: %v: %v", n.Addr(), args, err)
	}
}
