// Run ends with an error if there is no server at its start, waits for one that is not ready,
// and retries for ever afterwards.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// poolSize is that of clients in fake time: go-redis shares the timers by which others wait
// for a connection between all bubbles.
const poolSize = 1 << 10

// unreachable is an app whose connections go nowhere.
func unreachable(dial func(ctx context.Context) (net.Conn, error)) (*runnel.App, *redis.Client) {
	rdb := redis.NewClient(&redis.Options{
		Addr:     "127.0.0.1:6390",
		PoolSize: poolSize,
		Dialer:   func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	})
	app := runnel.New("contract", &runnel.Options{Redis: rdb})
	runnel.NewStream(app, "items", keyOfItem, nil).Process("p", ignoreAll, nil)
	return app, rdb
}

func TestRunWithoutRedisIsAnErrorAfterFiveSeconds(t *testing.T) {
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"refused": func(context.Context) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"no answer": func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app, rdb := unreachable(dial)
				began := time.Now()
				err := app.Run(t.Context())
				if took := time.Since(began); took < 5*time.Second || took > 5500*time.Millisecond {
					t.Errorf("gave up after %v", took)
				}
				if err == nil || !strings.Contains(err.Error(), "127.0.0.1:6390") || !strings.Contains(err.Error(), "app contract") {
					t.Errorf("error %v", err)
				}
				if err := errors.Join(app.Close(), rdb.Close()); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second) // the pools notice that they are closed
			})
		})
	}
}

func TestRunThatIsStoppedBeforeItReachedRedisReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, rdb := unreachable(func(ctx context.Context) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := app.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		app.Close()
		rdb.Close()
		time.Sleep(10 * time.Second)
	})
}

func TestRunRetriesForEverOnceItHasStarted(t *testing.T) {
	t.Parallel()
	var n notes
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { n.add("done"); return nil })
	cluster(t, 1, fn, nil, func(c *runneltest.Cluster, send func(...int)) {
		w := ready(c, "a")
		w.Isolate(time.Hour)
		c.Sleep(time.Hour - time.Second)
		send(1)
		c.Sleep(time.Minute)
		if !n.has("done") {
			t.Error("nothing processed a minute after Redis came back")
		}
		if err := w.Err(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// troubled dials a server that is there and of no use, until the time is over.
type troubled struct {
	until time.Time
	then  func(ctx context.Context, network, addr string) (net.Conn, error)
	serve func(server net.Conn)
}

func (d *troubled) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.then != nil && time.Now().After(d.until) {
		return d.then(ctx, network, addr)
	}
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		d.serve(server)
	}()
	return reset{client}, nil
}

// reset behaves like a TCP connection that the peer has closed.
type reset struct{ net.Conn }

func (r reset) SetReadDeadline(at time.Time) error {
	_ = r.Conn.SetReadDeadline(at)
	return nil
}

func (r reset) SetWriteDeadline(at time.Time) error {
	_ = r.Conn.SetWriteDeadline(at)
	return nil
}

func (r reset) SetDeadline(at time.Time) error {
	_ = r.Conn.SetDeadline(at)
	return nil
}

func (r reset) Write(b []byte) (int, error) {
	n, err := r.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return n, err
}

// loading answers everything with LOADING, until the time is over.
func (d *troubled) loading(server net.Conn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil || (d.then != nil && time.Now().After(d.until)) {
			return
		}
		reply := strings.Repeat("-LOADING Redis is loading the dataset in memory\r\n", strings.Count(string(buf[:n]), "*"))
		if _, err := server.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// A server that is restarting accepts and closes, or loads its data: both are
// waited for as one is that cannot be reached.
func TestRunWaitsForAServerThatIsNotReady(t *testing.T) {
	for name, serve := range map[string]func(*troubled, net.Conn){
		"closes": func(*troubled, net.Conn) {},
		"loads":  (*troubled).loading,
	} {
		t.Run(name+", for ever", func(t *testing.T) { testNeverReady(t, serve) })
		t.Run(name+", for 3 s", func(t *testing.T) { testReadyAfter3s(t, serve) })
	}
}

func testNeverReady(t *testing.T, serve func(*troubled, net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		d := &troubled{}
		d.serve = func(c net.Conn) { serve(d, c) }
		app, rdb := unreachable(func(ctx context.Context) (net.Conn, error) { return d.dial(ctx, "", "") })
		began := time.Now()
		err := app.Run(t.Context())
		if took := time.Since(began); took < 5*time.Second || took > 5500*time.Millisecond {
			t.Errorf("gave up after %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), "127.0.0.1:6390") {
			t.Errorf("error %v", err)
		}
		if err := errors.Join(app.Close(), rdb.Close()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second) // the pools notice that they are closed
	})
}

func testReadyAfter3s(t *testing.T, serve func(*troubled, net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.New()
		defer srv.Close()
		d := &troubled{until: time.Now().Add(3 * time.Second), then: srv.Dial}
		d.serve = func(c net.Conn) { serve(d, c) }
		rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Dialer: d.dial, DisableIdentity: true, PoolSize: poolSize})
		app := runnel.New("contract", &runnel.Options{Redis: rdb, Logger: slog.New(slog.DiscardHandler)})
		s := runnel.NewStream(app, "items", keyOfItem, nil)
		var n notes
		s.Process("p", runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
			n.add(fmt.Sprint(i.N))
			return nil
		}), nil)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- app.Run(ctx) }()
		time.Sleep(5 * time.Second)
		if err := app.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		if err := s.Send(t.Context(), items(1)...); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		cancel()
		if err := <-result; err != nil {
			t.Errorf("Run: %v", err)
		}
		if !n.has("1") {
			t.Error("nothing was processed")
		}
		if err := errors.Join(app.Close(), rdb.Close()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
	})
}

// A breaking is a server whose connection breaks at one request, and which is out of reach for a second then.
type breaking struct {
	*embedded.Server
	at int // the number of the request

	mu    sync.Mutex
	n     int
	until time.Time
}

func (f *breaking) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	f.mu.Lock()
	gone := time.Now().Before(f.until)
	f.mu.Unlock()
	if gone {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	conn, err := f.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &breakingConn{Conn: conn, f: f}, nil
}

type breakingConn struct {
	net.Conn
	f      *breaking
	broken atomic.Bool
}

func (c *breakingConn) Write(b []byte) (int, error) {
	c.f.mu.Lock()
	c.f.n++
	breaks := c.f.n == c.f.at
	if breaks {
		c.f.until = time.Now().Add(time.Second)
	}
	c.f.mu.Unlock()
	if breaks {
		c.broken.Store(true)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *breakingConn) Read(b []byte) (int, error) {
	if c.broken.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

// A worker that starts while its server goes away, at whichever of its requests, begins again when the server is back.
func TestAStartOutlivesABreakAtAnyRequest(t *testing.T) {
	for n := 1; ; n++ {
		asked := 0
		t.Run(fmt.Sprint("request ", n), func(t *testing.T) { asked = testBreakAt(t, n) })
		if asked < n || t.Failed() {
			break
		}
	}
}

// testBreakAt returns how many requests were made until the worker was ready.
func testBreakAt(t *testing.T, at int) (asked int) {
	synctest.Test(t, func(t *testing.T) {
		f := &breaking{Server: embedded.New(), at: at}
		defer f.Close()
		rdb := redis.NewClient(&redis.Options{Addr: f.Addr(), Dialer: f.dial, DisableIdentity: true, MaxRetries: -1, PoolSize: poolSize})
		app := runnel.New("contract", &runnel.Options{Redis: rdb, Logger: slog.New(slog.DiscardHandler), Stream: runnel.StreamOptions{Partitions: 1}})
		runnel.NewStream(app, "items", keyOfItem, nil).Process("p", ignoreAll, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		for began := time.Now(); app.Ready() != nil && time.Since(began) < time.Minute; {
			time.Sleep(100 * time.Millisecond)
		}
		f.mu.Lock()
		asked = f.n
		f.mu.Unlock()
		if err := app.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := errors.Join(app.Close(), rdb.Close()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
	})
	return asked
}

// Where neither a read nor a connection may be ended, whatever wakes a reader must
// not make the outcome of its read unknown: the executor would join again, which
// wakes the reader of the new one, and so on for ever.
func TestAServerThatEndsNoReads(t *testing.T) {
	srv := redistest.Start(t)
	weak := []any{"ACL", "SETUSER", "weak", "on", ">pw", "~*", "&*", "+@all", "-client|kill", "-client|unblock"}
	if err := srv.Client(t).Do(t.Context(), weak...).Err(); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(srv.URL(), "redis://", "redis://weak:pw@", 1)
	var log redistest.Log
	app := runnel.New("weak", &runnel.Options{RedisURL: url, Logger: log.Logger()})
	defer app.Close()
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: 8})
	got := make(chan string, 100)
	s.Process("print", func(_ context.Context, events *runnel.Events[parcel]) error {
		for p := range events.Records() {
			got <- p.Text
		}
		return nil
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	for i := range 20 {
		if err := s.Send(t.Context(), parcel{Key: fmt.Sprint(i), Text: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if text := <-got; text != fmt.Sprint(i) {
			t.Errorf("got event %s, want %d", text, i)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "rejoining") {
		t.Errorf("it joined again:\n%s", log.String())
	}
}
