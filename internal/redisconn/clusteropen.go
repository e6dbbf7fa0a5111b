package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
)

const clusterScheme = "+cluster"

// IsCluster reports whether o names a Redis Cluster.
func IsCluster(o Options) bool {
	if o.Redis != nil {
		_, ok := o.Redis.(*redis.ClusterClient)
		return ok
	}
	scheme, _, _ := strings.Cut(o.URL, "://")
	return strings.HasSuffix(scheme, clusterScheme)
}

// clusterOptions returns the options of a cluster, nil if o does not name one.
func clusterOptions(o Options) (*redis.ClusterOptions, error) {
	if !IsCluster(o) {
		return nil, nil
	}
	if o.Keys.Layout != keys.Cluster {
		return nil, errors.New("a Redis Cluster needs the key layout cluster, so that the keys of a partition are on one node")
	}
	if r, ok := o.Redis.(*redis.ClusterClient); ok {
		if r.Options().ClusterSlots != nil {
			return nil, errors.New("a ClusterClient with ClusterSlots is not supported: it is no Redis Cluster")
		}
		return r.Options(), nil
	}
	return parseClusterURL(o.URL)
}

// parseClusterURL reads "redis+cluster://user:password@a:7000,b:7000?dial_timeout=2s",
// and the same with "rediss". Its errors show neither password nor query.
func parseClusterURL(raw string) (*redis.ClusterOptions, error) {
	malformed := func(err error) error {
		if err == nil || strings.ContainsRune(raw, '@') {
			return fmt.Errorf("redis URL %q is malformed", masked(raw)) // what failed may be a part of the password
		}
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("redis URL %q is malformed: %w", masked(raw), err)
	}
	if _, fragment, _ := strings.Cut(raw, "#"); strings.ContainsRune(fragment, '@') {
		return nil, malformed(nil)
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	rest, query, _ := strings.Cut(rest, "?")
	user := ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, rest = rest[:at+1], rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if path != "" && path != "0" {
		return nil, malformed(errors.New("a cluster has no database but 0"))
	}
	unchecked := false
	if scheme == "rediss"+clusterScheme {
		query, unchecked = cutSkipVerify(query)
	}
	first, others, _ := strings.Cut(hosts, ",")
	opt, err := redis.ParseClusterURL(strings.TrimSuffix(scheme, clusterScheme) + "://" + user + first + "?" + query)
	if err != nil {
		return nil, malformed(err)
	}
	for _, addr := range strings.Split(others, ",") {
		if others == "" {
			break
		}
		if addr, err = hostPort(addr); err != nil {
			return nil, malformed(err)
		}
		opt.Addrs = append(opt.Addrs, addr)
	}
	if opt.TLSConfig != nil {
		opt.TLSConfig.ServerName = "" // each node by its own name
		opt.TLSConfig.InsecureSkipVerify = unchecked
	}
	return opt, nil
}

// cutSkipVerify removes the option skip_verify, which go-redis supports in all URLs
// except those of clusters.
func cutSkipVerify(query string) (rest string, unchecked bool) {
	options, err := url.ParseQuery(query)
	if err != nil || !options.Has("skip_verify") {
		return query, false // the parser of the rest reports the error
	}
	unchecked, _ = strconv.ParseBool(options.Get("skip_verify")) // else as without it, as go-redis has it
	options.Del("skip_verify")
	return options.Encode(), unchecked
}

func hostPort(addr string) (string, error) {
	u, err := url.Parse("redis://" + addr)
	switch {
	case err != nil:
		return "", err
	case u.Hostname() == "" || u.Host != addr:
		return "", fmt.Errorf("%q is no host", addr)
	case u.Port() == "":
		return net.JoinHostPort(u.Hostname(), "6379"), nil
	}
	return addr, nil
}

// nodeOptions returns the common options of the nodes of a cluster.
func nodeOptions(o *redis.ClusterOptions) *redis.Options {
	return &redis.Options{
		Addr: strings.Join(o.Addrs, ","), ClientName: o.ClientName, Dialer: o.Dialer, OnConnect: o.OnConnect, Protocol: o.Protocol,
		Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext: o.CredentialsProviderContext, StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, MaxConcurrentDials: o.MaxConcurrentDials, MaxIdleConns: o.MaxIdleConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
		ReadBufferSize: o.ReadBufferSize, WriteBufferSize: o.WriteBufferSize, TLSConfig: o.TLSConfig,
	}
}

// openCluster makes the client's parts for a cluster: a pool of connections for each
// node, and two clients that share them, of which one may repeat commands.
func (c *Conn) openCluster(seeds []string) {
	pool := func(addr string, own *redis.Options) *redis.Client {
		own.Addr = addr
		rdb := redis.NewClient(own)
		rdb.AddHook(redactHook{})
		return rdb
	}
	c.cluster = newCluster(seeds, Slot(c.keys.Rules()), func(addr string) *node {
		return &node{addr: addr, rdb: pool(addr, c.options(-1)), lasting: pool(addr, c.lastingOptions())}
	})
	c.Retrying = c.hooked(c.options(-1), clusterHook{k: c.cluster, repeat: true})
	c.NoRetry = c.hooked(c.options(-1), clusterHook{k: c.cluster})
}

// A Node is a server that takes writes.
type Node struct {
	Addr  string
	Redis *redis.Client // never to be closed
}

// Nodes returns the masters of a cluster that serve slots, by address; else the one
// server. It may ask a cluster for them.
func (c *Conn) Nodes(ctx context.Context) ([]Node, error) {
	if c.cluster == nil {
		return []Node{{c.addr, c.Retrying}}, nil
	}
	masters, err := c.cluster.masters(ctx)
	if err != nil {
		return nil, fmt.Errorf("redis at %s: %w", c.addr, err)
	}
	out := make([]Node, len(masters))
	for i, n := range masters {
		out[i] = Node{n.addr, n.rdb}
	}
	return out, nil
}

// NodeOf returns the address of the cluster node that has a key, "" if it is not known
// without I/O.
func (c *Conn) NodeOf(key string) string {
	if c.cluster == nil {
		return ""
	}
	if n := c.cluster.known(key); n != nil {
		return n.addr
	}
	return ""
}

// Clustered reports whether the client is connected to a Redis Cluster.
func (c *Conn) Clustered() bool { return c.cluster != nil }
