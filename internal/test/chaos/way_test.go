//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A way describes how a process reaches Redis: by a URL, or, where servers announce addresses, by a
// client that dials each of them through a proxy.
type way struct {
	URL       string            `json:"url,omitempty"`
	Sentinels []string          `json:"sentinels,omitempty"`
	Nodes     []string          `json:"nodes,omitempty"` // of a cluster
	Via       map[string]string `json:"via,omitempty"`   // from an address to that of its proxy
	Replicas  int               `json:"replicas,omitempty"`
}

// A link is one process's connection to Redis.
type link struct {
	way
	proxies []*faultproxy.Proxy // one for each server that it reaches
}

// through returns a link with a proxy in front of each of these servers.
func through(t *testing.T, w way, servers ...*redistest.Server) *link {
	l := &link{way: w}
	l.Via = map[string]string{}
	for _, s := range servers {
		p := faultproxy.Start(t, s.Addr())
		l.Via[s.Addr()] = p.Addr()
		l.proxies = append(l.proxies, p)
	}
	return l
}

// each calls do for all proxies of a link.
func (l *link) each(do func(p *faultproxy.Proxy)) {
	for _, p := range l.proxies {
		do(p)
	}
}

// String returns the form that parseWay reads.
func (w way) String() string {
	b, _ := json.Marshal(w)
	return string(b)
}

func parseWay(s string) (w way, err error) {
	err = json.Unmarshal([]byte(s), &w)
	return w, err
}

// use makes an app go this way. end closes what the app itself does not.
func (w way) use(o *runnel.Options) (end func()) {
	o.Durability.MinReplicas = w.Replicas
	switch {
	case w.Sentinels != nil:
		o.Redis = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: redistest.MasterName, SentinelAddrs: w.Sentinels, Dialer: w.dial, DisableIdentity: true,
		})
	case w.Nodes != nil:
		o.Redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: w.Nodes, Dialer: w.dial, DisableIdentity: true})
	default:
		o.RedisURL = w.URL
		return func() {}
	}
	return func() { o.Redis.Close() }
}

func (w way) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	via := w.Via[addr]
	if via == "" {
		return nil, fmt.Errorf("%s is none of %s", addr, strings.Join(append(w.Sentinels, w.Nodes...), ", "))
	}
	return new(net.Dialer).DialContext(ctx, network, via)
}
