package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/bench/internal/stats"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const clusterAbout = "The backlog of drain, on one server and on a cluster of three masters, processed by one worker that reads by group or by position. " +
	"CPU is that of the worker for each event, and of the main threads of all servers; together is their sum."

// slotsOfCluster is how many hash slots there are.
const slotsOfCluster = 16384

var togetherColumn = Column{"together", "together µs/event", 1}

func planCluster(ctx context.Context, b *Bench) (*Plan, error) {
	t := b.packed()
	p := &Plan{Columns: []Column{rateColumn, cpuColumn, serverColumn, togetherColumn}}
	for _, masters := range []int{1, 3} {
		at, err := b.masters(ctx, masters)
		if err != nil {
			return nil, err
		}
		filled := t
		if filled.URL = at.url; masters == 1 {
			at.name = "one server"
		}
		if err := fillBySend(ctx, filled); err != nil {
			return nil, err
		}
		for _, loop := range []string{"raw", "position"} {
			name := map[string]string{"raw": "by group", "position": "by position"}[loop] + ", " + at.name
			p.Sides = append(p.Sides, Side{Name: name, Task: t.runnel(loop), Run: at.run})
		}
	}
	for _, how := range []string{"by group", "by position"} {
		p.Claims = append(p.Claims, ratio(togetherColumn.Figure, how+", three masters", how+", one server", atMost(1.25)), ratio("rate", how+", three masters", how+", one server", stats.Bar{}))
	}
	return p, nil
}

// A place is where a side runs: one server or a cluster.
type place struct {
	name, url string
	nodes     []*redis.Client
}

// masters returns the server of the case, or a cluster of new ones that end with the case.
func (b *Bench) masters(ctx context.Context, n int) (*place, error) {
	if n == 1 {
		return &place{url: b.url, nodes: []*redis.Client{b.rdb}}, nil
	}
	p, addrs := &place{name: "three masters"}, []string(nil)
	for i := range n {
		s, kill, err := redistest.Launch("--cluster-enabled", "yes")
		if err != nil {
			return nil, err
		}
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
		b.after = append(b.after, kill, func() { _ = rdb.Close() })
		p.nodes, addrs = append(p.nodes, rdb), append(addrs, s.Addr())
		host, port, _ := net.SplitHostPort(s.Addr())
		first := p.nodes[0]
		err = errors.Join(
			rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(),
			rdb.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*slotsOfCluster/n, (i+1)*slotsOfCluster/n-1).Err(),
			first.Do(ctx, "CLUSTER", "MEET", host, port).Err())
		if err != nil {
			return nil, fmt.Errorf("make a cluster: %w", err)
		}
	}
	for _, rdb := range p.nodes {
		for !strings.Contains(rdb.ClusterInfo(ctx).Val(), "cluster_state:ok") || strings.Count(rdb.ClusterNodes(ctx).Val(), "connected") < n {
			if err := rest(ctx, 20*time.Millisecond); err != nil {
				return nil, fmt.Errorf("wait for the cluster: %w", err)
			}
		}
	}
	p.url = "redis+cluster://" + strings.Join(addrs, ",")
	return p, nil
}

// run runs a side at the place.
func (p *place) run(ctx context.Context, t Task) (Result, error) {
	t.URL = p.url
	used := func() (sum time.Duration, err error) {
		for _, rdb := range p.nodes {
			one, failed := cpuOf(ctx, rdb)
			sum, err = sum+one, errors.Join(err, failed)
		}
		return sum, err
	}
	before, err := used()
	if err != nil {
		return nil, err
	}
	r, err := runChild(ctx, t)
	if err != nil {
		return nil, err
	}
	after, err := used()
	r[serverColumn.Figure] = float64((after - before).Nanoseconds()) / 1e3 / float64(t.Events)
	r[togetherColumn.Figure] = r[cpuColumn.Figure] + r[serverColumn.Figure]
	return r, err
}

// fillBySend fills the stream of a task with as many events as it has, spread by their keys.
func fillBySend(ctx context.Context, t Task) error {
	records, err := orders(codecNamed(t.Codec), distinct, t.Size)
	if err != nil {
		return err
	}
	app := newApp(t)
	defer app.Close()
	stream := t.stream(app)
	for left := t.Events; left > 0; left -= distinct {
		if err := stream.Send(ctx, records[:min(left, distinct)]...); err != nil {
			return fmt.Errorf("fill stream %s: %w", t.Stream, err)
		}
	}
	return nil
}
