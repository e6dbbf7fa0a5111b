package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/redisconn"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A crowd is a client whose senders wait for earlier ones to return.
type crowd struct {
	*env
	proxy *faultproxy.Proxy
	rules []*faultproxy.Rule
	wg    sync.WaitGroup
	hits  int // script calls of the earlier ones
}

// crowded returns a client with as many sends under way as may go alone: later ones wait for leave.
func (e *env) crowded() *crowd {
	e.t.Helper()
	proxy, hurt := e.behindProxy()
	c := &crowd{env: hurt, proxy: proxy}
	c.must(sendScript.Load(e.ctx(), e.raw).Err())
	for n := range groupcommit.AloneAtOnce {
		rule := proxy.On("EVALSHA", 1).Do(faultproxy.HoldReply(nil))
		c.wg.Go(func() { c.Append(e.ctx(), []Append{{Log: "busy", Records: records(n, 1)}}) })
		rule.Wait(e.t)
		c.rules = append(c.rules, rule)
	}
	c.hits = proxy.Hits("EVALSHA")
	return c
}

// joins queues a sender and returns the channel of its results.
func (c *crowd) joins(ctx context.Context, as ...Append) <-chan []Appended {
	c.t.Helper()
	before := c.waiting()
	out := make(chan []Appended, 1)
	c.wg.Go(func() { out <- c.Append(ctx, as) })
	redistest.Eventually(c.t, "queued", func() bool { return c.waiting() == before+1 })
	return out
}

func (c *crowd) waiting() int {
	return c.batches.Waiting()
}

// leave releases the sends that are under way.
func (c *crowd) leave() {
	for _, r := range c.rules {
		r.Release()
	}
}

// to returns an Append to a partition of orders.
func (e *env) to(partition, first, n int, ids ...string) Append {
	return Append{Stream: "orders", Partition: partition, Log: e.Partition("orders", "", partition).Log, Records: records(first, n), IDs: ids}
}

func TestSendersThatWaitShareARoundTrip(t *testing.T) {
	layouts(t, func(t *testing.T, e *env) {
		c := e.crowded()
		const senders = 60
		var out [senders]<-chan []Appended
		for i := range out {
			a := c.to(i%4, i, 1)
			a.Stream = "" // of any length
			out[i] = c.joins(e.ctx(), a)
		}
		c.leave()
		for i := range out {
			got := (<-out[i])[0]
			e.must(got.Err)
			found := e.raw.XRange(e.ctx(), c.to(i%4, 0, 0).Log, got.IDs[0], got.IDs[0]).Val()
			if len(found) != 1 || found[0].Values["n"] != fmt.Sprint(i) {
				t.Errorf("sender %d got ID %s, which has %v", i, got.IDs[0], found)
			}
		}
		c.wg.Wait()
		want := 1
		if e.keys.Layout != example.Layout {
			want = senders
		}
		equal(t, "script calls", c.proxy.Hits("EVALSHA")-c.hits, want)
		for p := range 4 {
			equal(t, "contents", len(e.contents(c.to(p, 0, 0).Log)), senders/4)
		}
	})
}

func TestAloneASendIsOneRequestAtOnce(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		writes, c := e.counted()
		defer c.Close()
		send := func() { e.must(c.Append(e.ctx(), []Append{{Log: "a", Records: records(0, 1)}})[0].Err) }
		send()
		for range 3 {
			writes.Store(0)
			send()
			equal(t, "writes", writes.Load(), 1)
		}
	})
}

func TestManySendersKeepTheirOrder(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		counter := redistest.CountingDialer(nil)
		rdb := redis.NewClient(&redis.Options{Addr: e.addr, Dialer: counter.Dial})
		defer rdb.Close()
		c := try(Open(redisconn.Options{Redis: rdb, Keys: e.keys})).must(t)
		defer c.Close()
		const senders, each = 64, 30
		var wg sync.WaitGroup
		for s := range senders {
			wg.Go(func() {
				for i := range each {
					a := Append{Log: fmt.Sprint("log", i%3), Records: [][]string{{"n", fmt.Sprint(s), "i", fmt.Sprint(i)}}}
					if got := c.Append(e.ctx(), []Append{a})[0]; got.Err != nil || len(got.IDs) != 1 {
						t.Errorf("got %+v", got)
					}
				}
			})
		}
		wg.Wait()
		if n := counter.ByName()["EVALSHA"]; n > senders*each/2 {
			t.Errorf("%d sends cost %d script calls", senders*each, n)
		}
		got := map[string][]string{}
		for log := range 3 {
			for _, entry := range e.raw.XRange(e.ctx(), fmt.Sprint("log", log), "-", "+").Val() {
				k := fmt.Sprint(log, " ", entry.Values["n"])
				got[k] = append(got[k], entry.Values["i"].(string))
			}
		}
		for s := range senders {
			for log := range 3 {
				var want []string
				for i := log; i < each; i += 3 {
					want = append(want, fmt.Sprint(i))
				}
				if k := fmt.Sprint(log, " ", s); !slices.Equal(got[k], want) {
					t.Errorf("sender %d, log %d: got %v, want %v", s, log, got[k], want)
				}
			}
		}
	})
}

func TestASenderWhoseContextEndsInTheQueueSendsNothing(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.window(100, time.Hour)
		c := e.crowded()
		ctx, cancel := context.WithCancelCause(e.ctx())
		brief, stop := context.WithTimeout(e.ctx(), time.Second)
		defer stop()
		first := c.joins(e.ctx(), c.to(0, 0, 1))
		gone := []<-chan []Appended{c.joins(ctx, c.to(0, 1, 1)), c.joins(brief, c.to(0, 2, 1))}
		last := c.joins(e.ctx(), c.to(0, 3, 1))
		cancel(errors.New("the cause"))
		for i, want := range []error{context.Canceled, context.DeadlineExceeded} {
			if got := (<-gone[i])[0]; !errors.Is(got.Err, want) || got.Unknown || len(got.IDs) != 0 {
				t.Errorf("got %+v", got)
			}
		}
		if got := c.Append(ctx, []Append{c.to(0, 4, 1)})[0]; !errors.Is(got.Err, context.Cause(ctx)) || got.Unknown {
			t.Errorf("of a context that had ended: got %+v", got)
		}
		c.leave()
		e.must(errors.Join((<-first)[0].Err, (<-last)[0].Err))
		c.wg.Wait()
		equal(t, "contents", e.contents(c.to(0, 0, 0).Log), []string{"0", "3"})
	})
}

// A context that ends under way affects no other caller, and only a deadline ends the wait.
func TestASenderWhoseContextEndsOnTheWay(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.window(100, time.Hour)
		c := e.crowded()
		canceled, cancel := context.WithCancel(e.ctx())
		brief, stop := context.WithTimeout(e.ctx(), time.Second)
		defer stop()
		a, b := c.joins(canceled, c.to(0, 0, 1)), c.joins(brief, c.to(0, 1, 1))
		other := c.joins(e.ctx(), c.to(0, 2, 1))
		release := make(chan struct{})
		trip := c.proxy.On("EVALSHA", 1).Do(faultproxy.HoldReply(release))
		c.leave()
		trip.Wait(t)
		cancel()
		if got := (<-b)[0]; !got.Unknown || !errors.Is(got.Err, context.DeadlineExceeded) {
			t.Errorf("past its deadline: got %+v", got)
		}
		select {
		case got := <-a:
			t.Errorf("canceled: got %+v", got)
		case got := <-other:
			t.Errorf("the other: got %+v", got)
		default:
		}
		close(release)
		e.must(errors.Join((<-a)[0].Err, (<-other)[0].Err))
		c.wg.Wait()
		equal(t, "contents", e.contents(c.to(0, 0, 0).Log), []string{"0", "1", "2"})
	})
}
