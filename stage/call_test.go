package stage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/stage"
)

// late is a connection on which what contains a text comes late: replies by 10 ms, requests by 100 ms. Where lose is set, it
// breaks instead once such a request was executed, and lose is set back. Each other request comes late by each.
type late struct {
	net.Conn
	reply, request string
	lose           *atomic.Bool
	each           time.Duration
	requests       *atomic.Int64 // counts them; nil: does not
}

func (c late) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	if c.reply != "" && bytes.Contains(b[:n], []byte(c.reply)) {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

func (c late) Write(b []byte) (int, error) {
	if c.requests != nil {
		c.requests.Add(1)
	}
	if !bytes.Contains(b, []byte(c.request)) {
		time.Sleep(c.each)
		return c.Conn.Write(b)
	}
	if c.lose != nil && c.lose.Swap(false) {
		n, err := c.Conn.Write(b)
		time.Sleep(time.Millisecond)
		c.Conn.Close()
		return n, err
	}
	time.Sleep(100 * time.Millisecond)
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
			one := link
			one.Conn = c
			return one, err
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
	inLateRig(t, late{reply: "\r\ntext\r\n", request: begins("text")}, func(r *rig, s items) {
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
	inLateRig(t, late{request: begins("copy")}, func(r *rig, s items) {
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
	tier.Sequential(t)
	entities := tier.Large(1000)
	inRig(t, &stage.Options{Partitions: tier.Large(140)}, func(r *rig, s items) {
		copies(r, s, "copy", 20*time.Second, &stage.StageOptions{Concurrency: 1000})
	}, func(r *rig) {
		r.start("w")
		for n := range entities { // the first one of each partition is lone
			r.put(item{ID: fmt.Sprint(n), A: 1})
			r.c.Sleep(10 * time.Millisecond)
		}
		if n := len(r.noted()); n != entities {
			t.Errorf("%d functions of %d were called", n, entities)
		}
	})
}

// A function that ends its worker when it is called early is called once more than its attempts: that crash is the
// touch's.
func TestAnEarlyCrashIsOfTheTouchOnce(t *testing.T) {
	var worker atomic.Pointer[runneltest.Worker]
	inLateRig(t, late{request: begins("kills")}, func(r *rig, s items) {
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

// begins is the commit that begins a visit of a stage.
func begins(name string) string { return fmt.Sprintf("\r\n%s\r\n$1\r\nb\r\n", name) }

// A visit that is put while the Func is called early is made behind it, though Redis does not know yet that it runs.
func TestVisitsPutDuringAnEarlyCallAreKept(t *testing.T) {
	tier.Sequential(t)
	for _, places := range []int{1, 16} {
		for _, in := range []time.Duration{0, 50 * time.Millisecond, time.Minute} {
			for _, own := range []bool{true, false} {
				t.Run(fmt.Sprint(places, " places, in ", in, ", by the function itself ", own), func(t *testing.T) {
					var fact atomic.Int64 // what the Func looks at beside its entity
					inLateRig(t, late{request: begins("sum")}, func(r *rig, s items) {
						s.Stage("sum", nil, r.does(func(ctx context.Context, e *item) (stage.Result, error) {
							if seen := int(fact.Load()); e.A != seen {
								e.A = seen
								return stage.Updated, nil
							}
							if own && e.ID == "a" && fact.CompareAndSwap(0, 2) {
								return stage.Untouched, s.Visit(ctx, "sum", stage.Now(ctx).Add(in), e.ID)
							}
							return stage.Untouched, nil
						}), &stage.StageOptions{Concurrency: places})
					}, func(r *rig) {
						r.put(item{ID: "first", A: 0}) // the scripts are not loaded yet
						r.c.Sleep(time.Second)
						r.forget()
						r.put(item{ID: "a"})
						r.c.Sleep(50 * time.Millisecond)
						if n := len(r.noted()); n != 1 {
							t.Fatalf("%d calls", n)
						}
						if !own {
							fact.Store(2)
							r.must(r.set.Visit(r.c.Context(), "sum", time.Now().Add(in), "a"))
						}
						r.c.Sleep(2 * time.Minute)
						if e := r.get("a").Value; e.A != 2 || r.keys() != "" {
							t.Errorf("%+v, calls %v, there is %q", e, r.noted(), r.keys())
						}
					})
				})
			}
		}
	}
}

// A visit that waited before is made by the early call, as by any other.
func TestAnEarlyCallMakesWhatWaited(t *testing.T) {
	tier.Sequential(t)
	inLateRig(t, late{request: begins("sum")}, func(r *rig, s items) {
		s.Stage("sum", nil, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			return stage.Untouched.After(time.Hour), nil
		}), nil)
	}, func(r *rig) {
		r.put(item{ID: "a"})
		r.c.Sleep(time.Minute)
		r.put(item{ID: "a", A: 1})
		r.c.Sleep(time.Hour)
		r.wants("sum a 1 at 0s", "sum a 1 at 1m0s")
	})
}

func TestAStageWhoseWhenPanicsIsNotCalledEarly(t *testing.T) {
	inRig(t, nil, func(r *rig, s items) {
		s.Stage("bad", func(item) bool { panic("when") }, r.does(func(_ context.Context, e *item) (stage.Result, error) {
			return stage.Updated, nil
		}), nil)
	}, func(r *rig) {
		r.start("w")
		r.put(item{ID: "a"})
		r.c.Sleep(100 * time.Millisecond)
		r.wants()
		if got := r.keys(); got != "visit:shop.items.bad visitfail:shop.items" {
			t.Errorf("there is %s", got)
		}
	})
}

// Nor do functions that were called in vain take touches: theirs were answered that the entity is gone.
func TestEarlyCallsInVainTakeNoTouches(t *testing.T) {
	tier.Sequential(t)
	inRig(t, &stage.Options{Partitions: 140}, func(r *rig, s items) {
		s.Stage("long", func(e item) bool { return e.Text == "" }, r.does(func(ctx context.Context, e *item) (stage.Result, error) {
			_, err := s.Delete(ctx, e.ID) // before the commit that begins the visit
			time.Sleep(20 * time.Second)
			return stage.Untouched, err
		}), &stage.StageOptions{Concurrency: 1000})
		copies(r, s, "quick", 0, nil)
	}, func(r *rig) {
		r.start("w")
		for n := range 400 { // the first one of each partition is lone
			r.put(item{ID: fmt.Sprint(n)})
			r.c.Sleep(10 * time.Millisecond)
		}
		r.put(item{ID: "q", A: 1, Text: "quick"})
		r.c.Sleep(time.Second)
		if e := r.get("q").Value; e.B != 1 {
			t.Errorf("the quick stage has not visited %+v, %d of 400 long functions were called", e, len(r.noted()))
		}
		r.c.Sleep(20 * time.Second)
		r.forget()
		r.put(item{ID: "again", A: 1, Text: "quick"})
		r.rests() // and all places are given back
	})
}

// A commit whose reply is lost may have begun the visit, which then waits no lease, and neither do those of other
// stages, which the chain puts back until a take tells it what is there.
func TestALostBeginningIsFoundAtOnce(t *testing.T) {
	for _, stages := range []int{1, 4} {
		for _, each := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond} {
			t.Run(fmt.Sprint(stages, " stages, ", each), func(t *testing.T) {
				lose, requests := &atomic.Bool{}, &atomic.Int64{}
				inLateRig(t, late{request: begins("s0"), lose: lose, each: each, requests: requests}, func(r *rig, s items) {
					for n := range stages {
						s.Stage(fmt.Sprint("s", n), nil, r.does(func(context.Context, *item) (stage.Result, error) {
							time.Sleep(50 * time.Millisecond)
							return stage.Untouched, nil
						}), nil)
					}
				}, func(r *rig) {
					r.put(item{ID: "first"})
					r.c.Sleep(2 * time.Second)
					for round := range 8 { // what comes first after a loss differs
						r.forget()
						requests.Store(0)
						lose.Store(true)
						r.put(item{ID: fmt.Sprint("a", round)})
						r.c.Sleep(2 * time.Second)
						if lose.Load() || len(r.noted()) != stages+1 || r.keys() != "" || requests.Load() > 200 {
							t.Fatalf("round %d: lost %v, calls %v, %d requests, there is %s", round, !lose.Load(), r.noted(), requests.Load(), r.keys())
						}
					}
				})
			})
		}
	}
}

// The same where a function has its own entity deleted and put anew while it is called.
func TestVisitsBesideACallInVainAreMade(t *testing.T) {
	requests := &atomic.Int64{}
	inLateRig(t, late{request: "no request", each: time.Millisecond, requests: requests}, func(r *rig, s items) {
		s.Stage("long", func(e item) bool { return e.A == 0 }, r.does(func(ctx context.Context, _ *item) (stage.Result, error) {
			_, err := r.set.Delete(ctx, "a")
			r.must(errors.Join(err, r.set.Put(ctx, item{ID: "a", A: 1}), r.set.Visit(ctx, "b", time.Now(), "a"), r.set.Visit(ctx, "c", time.Now(), "a")))
			time.Sleep(3 * time.Second)
			return stage.Untouched, nil
		}), nil)
		for _, name := range []string{"b", "c"} {
			s.Stage(name, func(e item) bool { return e.A == 1 }, r.does(func(context.Context, *item) (stage.Result, error) { return stage.Untouched, nil }), nil)
		}
	}, func(r *rig) {
		r.put(item{ID: "a"})
		r.c.Sleep(5 * time.Second)
		if r.keys() != "" || requests.Load() > 300 {
			t.Errorf("calls %v, %d requests, there is %s", r.noted(), requests.Load(), r.keys())
		}
	})
}
