// The processes of a test, and what they leave at rest.

//go:build unix

package exact_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/exact"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// patience bounds the wait for what has to happen next.
const patience = 2 * time.Minute

// A crew is the workers of an app, and its producer.
type crew struct {
	t     *testing.T
	setup setup
	rdb   redis.UniversalClient
	keys  keys.Keys
	rng   *rand.Rand
	dir   string

	addr  string // of the server that each worker has a proxy to; "": they go by setup.URL
	live  []*process
	named int
	sent  int
	wg    sync.WaitGroup
}

type process struct {
	name    string
	cmd     *exec.Cmd
	proxy   *faultproxy.Proxy // nil: it has none
	log     string
	exited  chan struct{}
	err     error // of Wait, once exited
	stopped bool
	excused bool // it may end by itself
}

func newCrew(t *testing.T, rdb redis.UniversalClient, s setup, layout string) *crew {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("RUNNEL_EXACT_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("RUNNEL_EXACT_SEED=%d", seed)
	if s.Parts == [3]int{} {
		s.Parts = [3]int{16, 7, 5}
	}
	return &crew{
		t: t, setup: s, rdb: rdb, keys: keys.Keys{App: appName, Layout: layout}, rng: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(),
	}
}

// onServer is newCrew on a server of its own, which syncs before it replies, with a proxy for each worker.
func onServer(t *testing.T, s setup) (*crew, *redistest.Server) {
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "64mb")
	s.URL = srv.URL()
	c := newCrew(t, srv.Client(t), s, cmp.Or(s.Layout, keys.Standalone))
	c.addr = srv.Addr()
	return c, srv
}

// events is how many events a test sends.
func events(n int) int {
	if set, err := strconv.Atoi(os.Getenv("RUNNEL_EXACT_EVENTS")); err == nil {
		return set
	}
	return n
}

// start starts a worker process.
func (c *crew) start() *process {
	c.named++
	p := &process{name: fmt.Sprint("w", c.named), exited: make(chan struct{})}
	p.log = filepath.Join(c.dir, p.name+".log")
	s := c.setup
	s.Name = p.name
	if c.addr != "" {
		p.proxy = faultproxy.Start(c.t, c.addr)
		s.URL = "redis://" + p.proxy.Addr()
	}
	out, err := os.Create(p.log)
	if err != nil {
		c.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), setupVariable+"="+s.String())
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.wg.Go(func() {
		p.err = p.cmd.Wait()
		out.Close()
		if p.proxy != nil {
			p.proxy.Close()
		}
		close(p.exited)
	})
	c.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
		if c.t.Failed() {
			c.t.Logf("log of %s:\n%s", p.name, p.tail())
		}
	})
	c.live = append(c.live, p)
	return p
}

func (p *process) tail() []byte {
	b, _ := os.ReadFile(p.log)
	return b[max(0, len(b)-3000):]
}

func (c *crew) pick() *process { return c.live[c.rng.IntN(len(c.live))] }

func (c *crew) drop(p *process) {
	c.live = slices.DeleteFunc(c.live, func(o *process) bool { return o == p })
}

// reap replaces what has ended. It fails on workers that ended unasked.
func (c *crew) reap(most int) {
	for _, p := range slices.Clone(c.live) {
		select {
		case <-p.exited:
			if !p.excused {
				c.t.Errorf("worker %s ended by itself: %v\n%s", p.name, p.err, p.tail())
			}
			c.drop(p)
		default:
		}
	}
	for len(c.live) < most {
		c.start()
	}
}

// kill is kill -9.
func (c *crew) kill(p *process) {
	p.cmd.Process.Kill()
	c.drop(p)
	<-p.exited
}

// freeze stops a process, and lets it go on after d.
func (c *crew) freeze(p *process, d time.Duration) {
	p.stopped = true
	p.cmd.Process.Signal(syscall.SIGSTOP)
	c.wg.Go(func() {
		select {
		case <-p.exited:
		case <-time.After(d):
			p.cmd.Process.Signal(syscall.SIGCONT)
		}
	})
}

// terminate ends a process by SIGTERM, which must drain and exit 0.
func (c *crew) terminate(p *process) {
	redistest.Eventually(c.t, "start of "+p.name, func() bool {
		b, _ := os.ReadFile(p.log)
		return bytes.Contains(b, []byte(ready))
	})
	c.drop(p)
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		if p.err != nil && !p.excused {
			c.t.Errorf("worker %s after SIGTERM: %v\n%s", p.name, p.err, p.tail())
		}
	case <-time.After(patience):
		c.t.Errorf("worker %s does not end after SIGTERM\n%s", p.name, p.tail())
		c.kill(p)
	}
}

// produce begins to send n events in batches with pauses. wait returns when they are sent. What may have failed is sent
// again: another event, if it had not.
func (c *crew) produce(url string, n, batch int, pause time.Duration) (wait func()) {
	ctx := c.t.Context()
	a := c.setup.declare(url)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.Close()
		for ctx.Err() == nil && c.sent < n {
			var out []exact.Mark
			for range min(batch, n-c.sent) {
				out = append(out, exact.Mark{Key: fmt.Sprint("k", rand.IntN(300)), N: int64(c.sent + len(out))})
			}
			if err := a.streams[0].Send(context.WithoutCancel(ctx), out...); err == nil {
				c.sent += len(out)
			} else {
				<-time.After(20 * time.Millisecond)
			}
			<-time.After(pause)
		}
	}()
	return func() { <-done }
}

// await waits until all is processed, as long as something is.
func (c *crew) await(most int) {
	before, deadline := "", time.Now()
	for left := c.left(); left != ""; left = c.left() {
		if left != before {
			before, deadline = left, time.Now().Add(patience)
		}
		c.reap(most)
		if time.Now().After(deadline) {
			c.t.Fatalf("not everything is processed:\n%s", left)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// left describes partitions that are not at rest.
func (c *crew) left() (out string) {
	ctx := c.t.Context()
	for i, name := range processors {
		for p := range c.setup.Parts[i] {
			key := c.keys.Partition(streams[i], p)
			info, err := c.rdb.XInfoStream(ctx, key).Result()
			if err != nil && err.Error() == "ERR no such key" {
				continue
			}
			groups, failed := c.rdb.XInfoGroups(ctx, key).Result()
			if err := errors.Join(err, failed); err != nil {
				out += fmt.Sprintln(key, err)
			} else if len(groups) != 1 || groups[0].LastDeliveredID != info.LastGeneratedID {
				out += fmt.Sprintln(key, info.LastGeneratedID, groups)
			}
			if n, err := c.rdb.HLen(ctx, c.keys.Parked(streams[i], name, p)).Result(); n > 0 || err != nil {
				out += fmt.Sprintln(key, n, "are parked", err)
			}
			if n, err := c.rdb.HLen(ctx, keys.MustKind("rows").Key(c.keys, streams[i], "visits", "", p)).Result(); n > 0 || err != nil {
				out += fmt.Sprintln(key, n, "rows have not ended", err)
			}
			if n, err := c.rdb.XLen(ctx, keys.MustKind("out").Key(c.keys, streams[i], name, "", p)).Result(); n > 0 || err != nil {
				out += fmt.Sprintln(key, n, "outputs have not come", err)
			}
		}
	}
	return out
}

// finish waits until all is processed, ends the workers, and judges.
func (c *crew) finish(most int) {
	c.t.Helper()
	c.await(most)
	for len(c.live) > 0 {
		c.terminate(c.live[0])
	}
	c.wg.Wait()
	if left := c.left(); left != "" {
		c.t.Errorf("at rest:\n%s", left)
	}
	c.judge()
}

func each(n int, key func(p int) string) (list []string) {
	for p := range n {
		list = append(list, key(p))
	}
	return list
}

func (c *crew) judge() {
	c.t.Helper()
	ctx, all := c.t.Context(), make([][][]exact.Entry, len(streams))
	for i, name := range streams {
		var err error
		all[i], err = exact.Entries(ctx, c.rdb, each(c.setup.Parts[i], func(p int) string { return c.keys.Partition(name, p) }))
		if err != nil {
			c.t.Fatal(err)
		}
	}
	ends, err := exact.Entries(ctx, c.rdb, each(endParts, func(p int) string { return c.keys.Partition("ends", p) }))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.setup.Narrow {
		all[1] = exact.Sources(all[2], c.setup.Parts[1])
	}
	for i, name := range processors {
		s := exact.Stage{Name: name, Events: all[i], Outputs: all[i+1], Skipped: map[string]bool{}}
		s.Ends, s.Pause, s.Target = ends, pause.Milliseconds(), func(key string) int { return runnel.XXHash.Func(key, endParts) }
		s.Batches = c.setup.Clock // what comes behind a step back may have a time before that of its partition
		if i == 0 {
			s.Batches = s.Batches || c.setup.Batch > 1
			s.Order = map[runnel.RetryOrder]exact.Order{runnel.OrderKey: exact.InKey, runnel.OrderNone: exact.InNone}[c.setup.Order]
			c.skip(&s)
		}
		if c.setup.TTL {
			s.TTL = ttl.Milliseconds()
		}
		var err1, err2 error
		s.Keys, err1 = exact.Rows(ctx, c.rdb, c.rowsOf(i, "keys"))
		s.Parts, err2 = exact.Rows(ctx, c.rdb, c.rowsOf(i, "parts"))
		if err := errors.Join(err1, err2); err != nil {
			c.t.Fatal(err)
		}
		v := s.Judge()
		c.t.Logf("%s: %v", name, v)
		if len(v.Faults) > 0 {
			c.t.Error("not exact")
		}
		if v.Events == 0 {
			c.t.Error("there were no events")
		}
	}
}

func (c *crew) rowsOf(i int, table string) []string {
	return each(c.setup.Parts[i], func(p int) string {
		return keys.MustKind("rows").Key(c.keys, streams[i], table, "", p)
	})
}

// skip finds the events that are to have left nothing: dead letters, and by the policy Ignore those that fail.
func (c *crew) skip(s *exact.Stage) {
	if c.setup.Policy == runnel.Ignore {
		for _, list := range s.Events {
			for _, e := range list {
				if hopeless(e.Mark) {
					s.Skipped[e.Event()] = true
				}
			}
		}
	}
	for p := range c.setup.Parts[0] {
		letters, err := c.rdb.XRange(c.t.Context(), c.keys.Dead(streams[0], processors[0], p), "-", "+").Result()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, l := range letters {
			s.Skipped[exact.EventID(p, fmt.Sprint(l.Values["__dead.id"]))] = true
		}
	}
}
