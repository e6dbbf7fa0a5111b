package redisconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	sentinelPort    = "26379"
	sentinelTimeout = time.Second            // the longest wait for a sentinel
	sentinelCompany = 100 * time.Millisecond // and for the others once one has answered
	sentinelEvery   = time.Second            // how often they are asked where the master is
)

// sentinels find the address of a master by its name.
type sentinels struct {
	name    string
	addrs   []string
	clients []*redis.Client
	toDial  *redis.Options // of the master

	mu     sync.Mutex
	closed bool // nothing more is asked
	asking sync.WaitGroup
}

func isSentinelURL(raw string) bool {
	return strings.HasPrefix(raw, "redis+sentinel://") || strings.HasPrefix(raw, "rediss+sentinel://")
}

// parseSentinelURL parses redis+sentinel://user:password@host1:port,host2/name/db?options.
// The options are those of redis.ParseURL, and the user and the password of the
// sentinels. Its errors show nothing that could be a part of a password.
func parseSentinelURL(raw string) (*redis.Options, *sentinels, error) {
	malformed := func(why string) (*redis.Options, *sentinels, error) {
		return nil, nil, fmt.Errorf("redis URL %q is malformed: %s; want redis+sentinel://user:password@host1:26379,host2:26379/master-name/db", masked(raw), why)
	}
	scheme, rest, _ := strings.Cut(raw, "+sentinel://")
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	login := ""
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		login, hosts = hosts[:at+1], hosts[at+1:]
	}
	addrs, ok := sentinelAddrs(hosts)
	if !ok || strings.ContainsRune(path, '@') {
		return malformed("what stands before the name of the master are no hosts")
	}
	name, db, _ := strings.Cut(path, "/")
	name, err := url.PathUnescape(name)
	if err != nil || name == "" {
		return malformed("the name of the master is missing")
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return malformed("its options cannot be read")
	}
	user, password := q.Get("sentinel_username"), q.Get("sentinel_password")
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	o, err := redis.ParseURL(scheme + "://" + login + addrs[0] + "/" + db + "?" + q.Encode())
	if err != nil && (login != "" || password != "") {
		return malformed("user, password, database or options cannot be read")
	}
	if err != nil {
		return malformed(strings.TrimPrefix(err.Error(), "redis: "))
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // of each server its own
	}
	s := &sentinels{name: name, addrs: addrs}
	o.Addr = "master " + name + " of sentinels " + strings.Join(addrs, ", ")
	s.toDial = &redis.Options{DialTimeout: bounded(o.DialTimeout), TLSConfig: o.TLSConfig}
	for _, addr := range addrs {
		s.clients = append(s.clients, redis.NewClient(sentinelOptions(addr, user, password, o.TLSConfig)))
	}
	return o, s, nil
}

// sentinelAddrs reads hosts with and without ports.
func sentinelAddrs(hosts string) (addrs []string, ok bool) {
	for host := range strings.SplitSeq(hosts, ",") {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port, err = net.SplitHostPort(host + ":" + sentinelPort)
		}
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || name == "" || strings.ContainsAny(name, "@/#?% ") {
			return nil, false
		}
		addrs = append(addrs, net.JoinHostPort(name, port))
	}
	return addrs, true
}

func sentinelOptions(addr, user, password string, config *tls.Config) *redis.Options {
	o := &redis.Options{
		Addr: addr, Username: user, Password: password, TLSConfig: config,
		MaxRetries: -1, DialerRetries: 1, PoolSize: 4, ContextTimeoutEnabled: true, DisableIdentity: true,
		DialTimeout: sentinelTimeout, ReadTimeout: sentinelTimeout, WriteTimeout: sentinelTimeout, PoolTimeout: sentinelTimeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	o.Dialer = muteDialErrors(redis.NewDialer(&redis.Options{DialTimeout: sentinelTimeout, TLSConfig: config}))
	return o
}

// A masterSeen is the answer of a sentinel.
type masterSeen struct {
	Sentinel
	epoch int64 // of this configuration: the larger one is newer
}

// where asks all sentinels, and uses the answer with the newest configuration: a sentinel
// that was cut off may still report an older one. It waits for the first answer, and a
// moment for more.
func (s *sentinels) where(ctx context.Context) (string, error) {
	best, found := masterSeen{}, false
	var errs []error
	var enough <-chan time.Time
	answers := s.ask(ctx)
	for range s.clients {
		select {
		case a := <-answers:
			switch {
			case a.Err != nil:
				errs = append(errs, fmt.Errorf("sentinel %s: %w", a.Addr, detach(a.Err)))
			case !found || a.epoch > best.epoch:
				best, found = a, true
			}
			if found && enough == nil {
				enough = time.After(sentinelCompany)
			}
			continue
		case <-enough:
		case <-ctx.Done():
			errs = append(errs, detach(ctx.Err()))
		}
		break
	}
	if !found {
		return "", fmt.Errorf("no sentinel knows where the master %s is: %w", s.name, errors.Join(errs...))
	}
	return best.Master, nil
}

// ask asks all sentinels at once. There is one answer for each sentinel, within
// sentinelTimeout. Callers need not await all of them: close does.
func (s *sentinels) ask(ctx context.Context) <-chan masterSeen {
	answers := make(chan masterSeen, len(s.clients))
	ctx = context.WithoutCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.clients {
		if s.closed {
			answers <- masterSeen{Sentinel: Sentinel{Addr: s.addrs[i], Err: redis.ErrClosed}}
			continue
		}
		s.asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sentinelTimeout)
			defer cancel()
			a := s.sight(ctx, c)
			a.Addr = s.addrs[i]
			answers <- a
		})
	}
	return answers
}

// sight asks one sentinel two things: the address, which changes first when this sentinel leads the
// failover, and the epoch of the configuration, which the sentinel may refuse to tell.
func (s *sentinels) sight(ctx context.Context, c *redis.Client) masterSeen {
	p := c.Pipeline()
	at := p.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.name)
	state := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", s.name)
	_ = p.Process(ctx, state)
	_, _ = p.Exec(ctx) // every reply carries its error
	addr, err := at.StringSlice()
	switch {
	case errors.Is(err, redis.Nil):
		return masterSeen{Sentinel: Sentinel{Err: fmt.Errorf("it knows no master named %q", s.name)}}
	case err != nil:
		return masterSeen{Sentinel: Sentinel{Err: err}}
	case len(addr) != 2:
		return masterSeen{Sentinel: Sentinel{Err: fmt.Errorf("unexpected reply %q", addr)}}
	}
	number := func(name string) int64 { n, _ := strconv.ParseInt(state.Val()[name], 10, 64); return n }
	return masterSeen{Sentinel{
		Master: net.JoinHostPort(addr[0], addr[1]), Replicas: int(number("num-slaves")),
		Known: int(number("num-other-sentinels")) + 1, Quorum: int(number("quorum")),
	}, number("config-epoch")}
}

// A Sentinel is one sentinel's report about the master.
type Sentinel struct {
	Addr     string // its own
	Master   string // address of the master
	Replicas int    // of that, as far as it knows
	Known    int    // sentinels that watch the master, itself among them
	Quorum   int    // sentinels that must agree that the master is gone
	Err      error  // it did not answer
}

// Sentinels asks each sentinel of the URL and waits for all answers. Without a sentinel URL it returns
// none.
func (s *server) Sentinels(ctx context.Context) []Sentinel {
	if s.sentinels == nil {
		return nil
	}
	answers := s.sentinels.ask(ctx)
	var out []Sentinel
	for range s.sentinels.clients {
		out = append(out, (<-answers).Sentinel)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Addr < out[j].Addr })
	return out
}

// MasterMoves reports whether sentinels determine the server's address.
func (s *server) MasterMoves() bool { return s.tracker != nil }

// dial connects to the server that is the master now.
func (s *sentinels) dial(ctx context.Context, network string) (net.Conn, string, error) {
	addr, err := s.where(ctx)
	if err != nil {
		return nil, "", err
	}
	conn, err := redis.NewDialer(s.toDial)(ctx, cmp.Or(network, "tcp"), addr)
	return conn, addr, err
}

func (s *sentinels) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	s.asking.Wait()
	return errors.Join(errs...)
}
