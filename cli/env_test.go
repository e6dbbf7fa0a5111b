package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// builtIn is the directory of the binaries that tests have built, "" for none.
var builtIn string

func TestMain(m *testing.M) {
	redisconn.MuteDialErrors() // as Run does
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

type order struct {
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
}

// A shop is an app, a server, and the command line for both.
type shop struct {
	t      *testing.T
	app    *runnel.App
	orders *runnel.Stream[order]
	url    string
	rdb    *redis.Client
}

// newShop returns an app with the stream orders, keyed by customer.
func newShop(t *testing.T, opts *runnel.StreamOptions) *shop {
	t.Helper()
	server := redistest.Start(t)
	return shopAt(t, server.URL(), server.Client(t), opts)
}

func shopAt(t *testing.T, url string, rdb *redis.Client, opts *runnel.StreamOptions) *shop {
	t.Helper()
	t.Setenv("RUNNEL_REDIS_URL", url)
	if opts == nil {
		opts = &runnel.StreamOptions{KeyField: "customer"}
	}
	app := runnel.New("shop", nil)
	t.Cleanup(func() { app.Close() })
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Customer }, opts)
	return &shop{t: t, app: app, orders: orders, url: url, rdb: rdb}
}

// handled declares a processor that passes every customer on.
func (s *shop) handled() <-chan string {
	out := make(chan string, 1000)
	s.orders.Process("printer", func(ctx context.Context, events *runnel.Events[order]) error {
		for o := range events.Records() {
			out <- o.Customer
		}
		return nil
	}, nil)
	return out
}

type result struct {
	code     int
	out, err string
}

func run(ctx context.Context, app *runnel.App, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := Main(ctx, app, args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// run runs a command of the app's binary, untyped one of the runnel binary.
func (s *shop) run(args ...string) result { return run(s.t.Context(), s.app, "", args...) }

func (s *shop) untyped(args ...string) result {
	return run(s.t.Context(), nil, "", append(args, "--app", "shop")...)
}

// want checks the code, and that each output contains a text, or is empty if the text is.
func (r result) want(t *testing.T, code int, out, err string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, c := range []struct{ name, got, want string }{{"stdout", r.out, out}, {"stderr", r.err, err}} {
		if c.want == "" && c.got != "" || !strings.Contains(c.got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
	if t.Failed() {
		t.Logf("code %d\nstdout: %s\nstderr: %s", r.code, r.out, r.err)
	}
}

func (s *shop) sends(orders ...order) {
	s.t.Helper()
	if err := s.orders.Send(s.t.Context(), orders...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) client() *store.Client {
	s.t.Helper()
	c, err := appview.Of(s.app).Client()
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *shop) configure(name, value string) {
	s.t.Helper()
	if err := s.rdb.ConfigSet(s.t.Context(), name, value).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// printed returns what a command of the runnel binary prints as JSON.
func printed[T any](s *shop, args ...string) T {
	s.t.Helper()
	return parse[T](s.t, s.untyped(append(args, "--output", "json")...))
}

func parse[T any](t *testing.T, r result) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != 0 || r.err != "" {
		t.Fatalf("%+v: %v", r, err)
	}
	return v
}

// matches checks that a command succeeded, and that its output matches patterns.
func (r result) matches(t *testing.T, patterns ...string) {
	t.Helper()
	if r.code != 0 {
		t.Errorf("%+v", r)
	}
	for _, want := range patterns {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no %s in\n%s", want, r.out)
		}
	}
}

// matchesNot checks that the output matches none of these.
func (r result) matchesNot(t *testing.T, pattern string) {
	t.Helper()
	if regexp.MustCompile(pattern).MatchString(r.out + r.err) {
		t.Errorf("%s in\n%s%s", pattern, r.out, r.err)
	}
}

// entries returns the entries of all partitions by the key of the partition.
func (s *shop) entries() map[string][]redis.XMessage {
	s.t.Helper()
	keys, err := s.rdb.Keys(s.t.Context(), "__strm:shop.orders.*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string][]redis.XMessage{}
	for _, key := range keys {
		if all[key], err = s.rdb.XRange(s.t.Context(), key, "-", "+").Result(); err != nil {
			s.t.Fatal(err)
		}
	}
	return all
}

func (s *shop) count() int {
	n := 0
	for _, entries := range s.entries() {
		n += len(entries)
	}
	return n
}

// A running command in this process.
type running struct {
	t        *testing.T
	cancel   context.CancelFunc
	out, err redistest.Log // readable while the command runs
	done     chan result
}

// start runs a command until stop.
func (s *shop) start(args ...string) *running { return start(s.t, s.app, args...) }

func start(t *testing.T, app *runnel.App, args ...string) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, cancel: cancel, done: make(chan result, 1)}
	go func() {
		code := Main(ctx, app, args, strings.NewReader(""), &r.out, &r.err)
		r.done <- result{code, r.out.String(), r.err.String()}
	}()
	t.Cleanup(cancel)
	return r
}

func (r *running) stop() result {
	r.t.Helper()
	r.cancel()
	return receive(r.t, r.done, "the end of the command")
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(redistest.Patience):
		t.Fatalf("no %s within %v", what, redistest.Patience)
		panic("unreachable")
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	redistest.Eventually(t, what, cond)
}
