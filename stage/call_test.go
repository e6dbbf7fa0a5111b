package stage_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/stage"
)

// late is a connection on which what contains a text comes late: replies by 10 ms, requests by 100 ms.
type late struct {
	net.Conn
	reply, request string
}

func (c late) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	if c.reply != "" && bytes.Contains(b[:n], []byte(c.reply)) {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

func (c late) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.request)) {
		time.Sleep(100 * time.Millisecond)
	}
	return c.Conn.Write(b)
}

// inLateRig runs fn with a worker whose connections are late. Its set has one partition.
func inLateRig(t *testing.T, link late, declare func(r *rig, s items), fn func(r *rig)) {
	t.Helper()
	r := &rig{T: t}
	set := func(o *runnel.Options) (*runnel.App, items) {
		app := runnel.New("shop", o)
		s := stage.New(app, "items", func(e item) string { return e.ID }, &stage.Options{Partitions: 1})
		declare(r, s)
		return app, s
	}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		server := *o.Redis.(*redis.Client).Options()
		dial := server.Dialer
		server.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return late{c, link.reply, link.request}, err
		}
		o.Redis = redis.NewClient(&server)
		app, _ := set(o)
		return app
	}, func(c *runneltest.Cluster) {
		r.c = c
		r.app, r.set = set(c.Options("outside"))
		defer r.app.Close()
		r.worker = r.start("w")
		fn(r)
	})
}

// A visit that waits behind one that a take has begun meanwhile is taken when that has ended, not at the end of the
// owner's lease.
func TestVisitBehindOneThatATakeBegan(t *testing.T) {
	inLateRig(t, late{reply: "\r\ntext\r\n", request: "\r\ntext\r\n$1\r\nb\r\n"}, func(r *rig, s items) {
		copies(r, s, "copy", 5*time.Millisecond, nil)
		s.Stage("text", func(e item) bool { return e.Text == "" }, func(_ context.Context, e *item) (stage.Result, error) {
			e.Text = "set"
			return stage.Updated, nil
		}, &stage.StageOptions{Concurrency: 64}) // more than a take reserves
	}, func(r *rig) {
		r.put(item{ID: "a", A: 1})
		r.c.Sleep(time.Second)
		if got := r.keys(); got != "" {
			t.Errorf("after a second there is %s", got)
		}
	})
}

// The function of a lone entity is called before the commit has come that begins its visit; what it made is stored
// behind that. Several entities wait for their commits.
func TestALoneFunctionIsCalledEarly(t *testing.T) {
	inLateRig(t, late{request: "\r\ncopy\r\n$1\r\nb\r\n"}, func(r *rig, s items) {
		copies(r, s, "copy", 0, nil)
	}, func(r *rig) {
		r.put(item{ID: "first", A: 1}) // the scripts are not loaded yet
		r.c.Sleep(time.Second)
		r.forget()
		r.put(item{ID: "a", A: 1})
		r.c.Sleep(99 * time.Millisecond)
		r.wants("copy a 1 at 1s")
		if got := r.keys(); got != "visitrun:shop.items" {
			t.Errorf("during the touch there is %s", got)
		}
		if e := r.get("a").Value; e.B != 0 {
			t.Errorf("stored before its visit began: %+v", e)
		}
		r.c.Sleep(2 * time.Millisecond)
		if e := r.get("a").Value; e.B != 1 || r.keys() != "" {
			t.Errorf("afterwards: %+v, there is %s", e, r.keys())
		}
		r.put(item{ID: "b", A: 1}, item{ID: "c", A: 1})
		r.c.Sleep(99 * time.Millisecond)
		r.wants()
		r.c.Sleep(2 * time.Millisecond)
		if calls := slices.Sorted(slices.Values(r.noted())); !slices.Equal(calls, []string{"copy b 1 at 1.2s", "copy c 1 at 1.2s"}) {
			t.Errorf("of two entities: %v", calls)
		}
	})
}

// Functions that are called early and take long leave touches to others.
func TestLongEarlyCallsTakeNoTouches(t *testing.T) {
	inRig(t, &stage.Options{Partitions: 140}, func(r *rig, s items) {
		copies(r, s, "copy", 20*time.Second, &stage.StageOptions{Concurrency: 1000})
	}, func(r *rig) {
		r.start("w")
		for n := range 1000 { // the first one of each partition is lone
			r.put(item{ID: fmt.Sprint(n), A: 1})
			r.c.Sleep(10 * time.Millisecond)
		}
		if n := len(r.noted()); n != 1000 {
			t.Errorf("%d functions of 1000 were called", n)
		}
	})
}

// A function that ends its worker when it is called early is called once more than its attempts: that crash is the
// touch's.
func TestAnEarlyCrashIsOfTheTouchOnce(t *testing.T) {
	var worker atomic.Pointer[runneltest.Worker]
	inLateRig(t, late{request: "\r\nkills\r\n$1\r\nb\r\n"}, func(r *rig, s items) {
		s.Stage("kills", nil, r.does(func(context.Context, *item) (stage.Result, error) {
			for worker.Load() == nil { // its start has not returned yet
				time.Sleep(time.Millisecond)
			}
			worker.Swap(nil).Kill()
			return stage.Untouched, runneltest.ErrKilled
		}), &stage.StageOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: time.Second, Jitter: -1}})
	}, func(r *rig) {
		worker.Store(r.worker)
		r.put(item{ID: "a"})
		for n := range 8 {
			r.c.Sleep(time.Minute)
			if worker.Load() != nil {
				break
			}
			worker.Store(r.start(fmt.Sprint("w", n)))
		}
		calls := r.noted()
		for i, call := range calls {
			calls[i], _, _ = strings.Cut(call, " at ")
		}
		if !slices.Equal(calls, []string{"kills a 1", "kills a 1", "kills a 2", "kills a 3"}) || r.keys() != "visitdead:shop.items.kills visitfail:shop.items" {
			t.Errorf("calls %v, there is %s", calls, r.keys())
		}
	})
}
