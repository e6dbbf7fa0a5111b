package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
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

// Full batches do not wait for their time when enough events are in Redis, also
// where less room is left than a read usually brings.
func TestTakeIsFullAtOnceWhenEnoughIsThere(t *testing.T) {
	for _, n := range []int{300, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := &batches{}
			cluster(t, 1, func(_ context.Context, ev *runnel.Events[item]) error {
				for is := range ev.Take(n, time.Hour).Records() {
					b.note(is)
				}
				return nil
			}, nil, func(c *runneltest.Cluster, send func(...int)) {
				var want [][]int
				for batch := range 3 {
					want = append(want, nil)
					for i := range n {
						want[batch] = append(want[batch], batch*n+i)
					}
					send(want[batch]...)
				}
				b.began = time.Now()
				ready(c, "a")
				c.Sleep(time.Second)
				b.want(t, want)
			})
		})
	}
}

// A partition whose next event does not fit any more, though by the size of the
// latest ones it would, is left alone: reading it again and again would bring
// nothing, and keep the others waiting.
func TestAPartitionNearItsBytesStarvesNobody(t *testing.T) {
	const small = 300
	srv := redistest.Start(t)
	counter := redistest.CountingDialer(nil)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Dialer: counter.Dial, DisableIdentity: true})
	defer rdb.Close()
	app := runnel.New("contract", &runnel.Options{Redis: rdb, Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	type parcel struct {
		Partition int
		Data      []byte
	}
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return fmt.Sprint(p.Partition) }, &runnel.StreamOptions{
		Partitions:  2,
		Partitioner: &runnel.Partitioner{Name: "own", Func: func(key string, _ int) int { return int(key[0] - '0') }},
	})
	var done atomic.Int64
	began, release := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	defer letGo()
	s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, p parcel) error {
		switch {
		case p.Partition == 1:
			done.Add(1)
		case e.Attempt == 1 && len(p.Data) == 1:
			close(began)
			<-release
		}
		return nil
	}), &runnel.ProcessorOptions{PrefetchBytes: 1 << 20, ReadConns: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- app.Run(ctx) }()
	send := func(p parcel) {
		t.Helper()
		if err := s.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	send(parcel{0, make([]byte, 1)})
	<-began
	for range 10 {
		send(parcel{0, make([]byte, 300<<10)}) // three fit
	}
	for range small {
		send(parcel{1, nil})
	}
	await(t, "all events of the other partition are processed", func() bool { return done.Load() == small })
	// One read for each of the small ones, at most, and some for the large ones.
	if n := counter.ByName()["XREADGROUP"]; n > small+100 {
		t.Errorf("%d reads for %d small events and 11 others", n, small)
	}
	letGo()
	cancel()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestGoexitInAFunctionHaltsTheWorker(t *testing.T) {
	fn := runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
		if i.N == 2 {
			runtime.Goexit()
		}
		return nil
	})
	for name, opts := range map[string]*runnel.ProcessorOptions{
		"plain":      nil,
		"middleware": middlewares(retry(2)),
		"ignore":     {OnError: runnel.Ignore},
	} {
		t.Run(name, func(t *testing.T) {
			cluster(t, 1, fn, opts, func(c *runneltest.Cluster, send func(...int)) {
				w := ready(c, "a")
				send(1, 2, 3)
				c.Sleep(time.Minute)
				select {
				case <-w.Done():
				default:
					t.Error("the worker goes on")
				}
				err := w.Stop()
				for _, part := range []string{"stream items", "partition 0", "processor p", "runtime.Goexit"} {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("Run: %v, want %s named", err, part)
					}
				}
				for _, g := range c.Redis().XInfoGroups(c.Context(), "__strm:contract.items.0").Val() {
					if g.Pending == 0 {
						t.Error("the event that was being processed is not pending")
					}
				}
			})
		})
	}
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
		if took := time.Since(began); took < 4500*time.Millisecond || took > 5500*time.Millisecond {
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
		rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Dialer: d.dial, DisableIdentity: true})
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

// Whoever asks while a worker is being stopped hears that it drains, not what its
// executors miss because of that.
func TestReadyTellsFromTheFirstMomentThatItDrains(t *testing.T) {
	cluster(t, 4, ignoreAll, nil, func(c *runneltest.Cluster, _ func(...int)) {
		for n := range 50 {
			w := ready(c, fmt.Sprint("w", n))
			first := make(chan error)
			go func() {
				for {
					if err := w.App().Ready(); err != nil {
						first <- err
						return
					}
					runtime.Gosched()
				}
			}()
			stopped := make(chan error, 1)
			go func() { stopped <- w.Stop() }()
			if err := <-first; !errors.Is(err, runnel.ErrNotReady) || !strings.HasSuffix(err.Error(), "draining") {
				t.Errorf("stop %d: %v", n+1, err)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			if t.Failed() {
				return
			}
		}
	})
}
