package security

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const journalEnv = "RUNNEL_SECURITY_JOURNAL" // URL of where workers note what they do

// This test binary also runs the workers.
func TestMain(m *testing.M) {
	if url := os.Getenv(journalEnv); url != "" {
		opts, err := redis.ParseURL(url)
		if err != nil {
			panic(err)
		}
		app, _ := declare(&runnel.Options{}, redis.NewClient(opts))
		cli.Run(app)
	}
	os.Exit(m.Run())
}

// An order's key decides its partition and its outcome.
type order struct {
	Key string `json:"key"`
	Seq int    `json:"seq"`
}

var errOrder = errors.New("cannot do this order")

type streams struct{ orders, copies, small, strict, ring *runnel.Stream[order] }

// declare returns the app, whose workers record the orders that they begin in a list per key.
func declare(o *runnel.Options, journal *redis.Client) (*runnel.App, streams) {
	o.Processor = runnel.ProcessorOptions{Lease: time.Second, Grace: 5 * time.Second}
	o.LeaderPoll = 200 * time.Millisecond
	o.Stream.Codec, o.Stream.KeyField, o.Stream.Partitions = codec.JSON, "key", 4
	app := runnel.New("shop", o)
	key := func(o order) string { return o.Key }
	stream := func(name string, opts *runnel.StreamOptions) *runnel.Stream[order] {
		return runnel.NewStream(app, name, key, opts)
	}
	s := streams{
		stream("orders", nil), stream("copies", nil),
		stream("small", &runnel.StreamOptions{Partitions: 1, MaxLen: 5, Overflow: runnel.Block}),
		stream("strict", &runnel.StreamOptions{Partitions: 1, MaxLen: 5, Overflow: runnel.Reject}),
		stream("ring", &runnel.StreamOptions{Partitions: 1, MaxLen: 5, Overflow: runnel.DropOldest}),
	}
	note := func(ctx context.Context, e *runnel.Event, o order) error {
		return journal.RPush(ctx, "did:"+e.Stream+":"+o.Key, o.Seq).Err()
	}
	s.orders.Process("printer", runnel.Each(func(ctx context.Context, e *runnel.Event, o order) error {
		switch {
		case strings.HasPrefix(o.Key, "poison"), strings.HasPrefix(o.Key, "flaky") && e.Attempt == 1:
			return errOrder
		}
		if err := note(ctx, e, o); err != nil {
			return err
		}
		return s.copies.Send(ctx, o)
	}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2, MinBackoff: time.Millisecond, Jitter: -1, Order: runnel.OrderKey}})
	s.orders.Process("invoicer", runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		if strings.HasPrefix(o.Key, "poison") {
			return errOrder
		}
		return nil
	}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: time.Hour, Jitter: -1, Order: runnel.OrderKey}})
	s.orders.Process("auditor", runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		if strings.HasPrefix(o.Key, "poison") {
			return errOrder
		}
		return nil
	}), &runnel.ProcessorOptions{OnError: runnel.Quarantine})
	s.small.Process("eater", runnel.Each(note), nil)
	app.Every("tick", 100*time.Millisecond, func(ctx context.Context) error {
		return journal.Incr(ctx, "ticks").Err()
	}, &runnel.TaskOptions{Leader: true, Durable: true})
	return app, s
}

// A scene is one or more servers with restricted users, and the processes there.
type scene struct {
	t       *testing.T
	server  *redistest.Server // where it is one
	servers []*redistest.Server
	url     func(user string) string
	admin   redis.UniversalClient
	journal *redistest.Server // beside it, so that nothing of it needs rights
	layout  string
	workers []*exec.Cmd
}

func newScene(t *testing.T, layout string) *scene {
	t.Helper()
	server, admin := guarded(t, layout)
	return &scene{
		t: t, server: server, servers: []*redistest.Server{server}, url: func(user string) string { return urlOf(server, user) },
		admin: admin, journal: redistest.Start(t), layout: layout,
	}
}

func (s *scene) app(user string) (*runnel.App, streams) {
	s.t.Helper()
	app, all := declare(&runnel.Options{
		RedisURL: s.url(user), KeyLayout: runnel.KeyLayout(s.layout), Logger: slog.New(slog.DiscardHandler), WorkerName: "inside",
	}, s.journal.Client(s.t))
	s.t.Cleanup(func() { app.Close() })
	return app, all
}

// process starts a worker in its own process, and waits until it runs.
func (s *scene) process(name, user string) *exec.Cmd {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd, log := exec.Command(self, "worker"), &redistest.Log{}
	cmd.Env = append(os.Environ(), journalEnv+"="+s.journal.URL(), "RUNNEL_REDIS_URL="+s.url(user), "RUNNEL_WORKER_NAME="+name, "RUNNEL_KEY_LAYOUT="+s.layout)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.workers = append(s.workers, cmd)
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // most are dead
		_ = cmd.Wait()
		if s.t.Failed() {
			s.t.Logf("worker %s: %s", name, log)
		}
	})
	s.await("worker "+name, func() bool { return strings.Contains(log.String(), "worker started") })
	return cmd
}

func (s *scene) command(user string, args ...string) (code int, out, errs string) {
	s.t.Helper()
	app, _ := s.app(user)
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	return mainOf(ctx, app, args...)
}

func mainOf(ctx context.Context, app *runnel.App, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = cli.Main(ctx, app, args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// run is command with an expected exit code.
func (s *scene) run(want int, user string, args ...string) string {
	s.t.Helper()
	code, out, errs := s.command(user, args...)
	if code != want || strings.Contains(errs, "NOPERM") || strings.Contains(out, "NOPERM") {
		s.t.Errorf("%s: %q: code %d, want %d: %s%s", user, args, code, want, out, errs)
	}
	return out
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) await(what string, is func() bool) {
	s.t.Helper()
	redistest.Eventually(s.t, what, is)
}

// did returns the orders of a key that workers began, in order of their first begin.
func (s *scene) did(stream, key string) (seqs []string) {
	seen := map[string]bool{}
	for _, seq := range s.journal.Client(s.t).LRange(s.t.Context(), "did:"+stream+":"+key, 0, -1).Val() {
		if !seen[seq] {
			seqs = append(seqs, seq)
		}
		seen[seq] = true
	}
	return seqs
}

// inOrder fails unless the orders of every key were begun in the order 0 to n-1.
func (s *scene) inOrder(stream string, keys []string, n int) {
	s.t.Helper()
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
	}
	for _, key := range keys {
		if got := strings.Join(s.did(stream, key), " "); got != strings.Join(want, " ") {
			s.t.Errorf("%s of %s: began %s, want %s", key, stream, got, strings.Join(want, " "))
		}
	}
}

// denials returns the servers' ACL denials, each as "user: what".
func (s *scene) denials() (all []string) {
	s.t.Helper()
	for _, server := range s.servers {
		entries, err := server.Client(s.t).ACLLog(s.t.Context(), 1000).Result()
		s.must(err)
		for _, e := range entries {
			all = append(all, fmt.Sprintf("%s: %s %s (%s)", e.Username, e.Reason, e.Object, e.Context))
		}
	}
	return all
}
