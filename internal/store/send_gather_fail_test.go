package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

// Nothing is repeated, and all senders learn that their records may be in.
func TestASharedRoundTripThatIsCutOff(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, cut := range cuts {
			t.Run(cut.name, func(t *testing.T) {
				e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real, addr: e.addr}
				e.must(e.raw.FlushAll(e.ctx()).Err())
				c := e.crowded()
				var out []<-chan []Appended
				var in []string
				for i := range 5 {
					out = append(out, c.joins(e.ctx(), Append{Log: "a", Records: records(i, 1)}, Append{Log: "b", Records: records(i, 2)}))
					in = append(in, fmt.Sprint(i))
				}
				c.proxy.On("EVALSHA", 1).Do(cut.action)
				c.leave()
				for i := range out {
					for _, got := range <-out[i] {
						if !got.Unknown || !errors.Is(got.Err, redisconn.ErrUnknownOutcome) || len(got.IDs) != 0 {
							t.Errorf("%d: got %+v", i, got)
						}
					}
				}
				c.wg.Wait()
				equal(t, "script calls", c.proxy.Hits("EVALSHA")-c.hits, 1)
				if cut.name == "before" {
					in = nil
				}
				equal(t, "contents", e.contents("a"), in)
			})
		}
	})
}

// The caller that waits longest makes the trip, but none waits longer than its own limit.
func TestASharedRoundTripWithoutAnAnswer(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		c := e.crowded()
		began := time.Now()
		var out []<-chan []Appended
		wants := []time.Duration{300 * time.Millisecond, 4500 * time.Millisecond, 2400 * time.Millisecond}
		for i, d := range wants {
			ctx, cancel := context.WithTimeout(e.ctx(), d)
			defer cancel()
			out = append(out, c.joins(ctx, Append{Log: "a", Records: records(i, 1)}))
		}
		c.proxy.On("EVALSHA", 1).Do(faultproxy.Swallow)
		c.leave()
		next := map[int]time.Duration{0: wants[2], 2: wants[1], 1: time.Minute} // each returns before the next limit
		for _, i := range []int{0, 2, 1} {
			got := (<-out[i])[0]
			if took := time.Since(began); !got.Unknown || took < wants[i] || took > next[i] {
				t.Errorf("%v: got %+v after %v", wants[i], got, took)
			}
		}
		c.wg.Wait()
	})
}

// A failure of one sender in a shared round trip does not affect the others.
func TestEachSenderHasItsOwnFailure(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 4, MaxLen: 3, Overflow: OverflowReject, DedupWindow: time.Hour.Milliseconds()})
		e.must(err)
		e.must(e.Append(e.ctx(), []Append{e.to(0, 0, 2)})[0].Err)
		e.must(e.raw.Set(e.ctx(), e.to(3, 0, 0).Log, "x", 0).Err())
		c := e.crowded()
		two := c.joins(e.ctx(), c.to(0, 10, 2), c.to(1, 10, 1))
		fits := c.joins(e.ctx(), c.to(0, 20, 1))
		bad := c.joins(e.ctx(), c.to(3, 30, 1))
		full := c.joins(e.ctx(), c.to(0, 40, 1), c.to(2, 40, 1))
		c.leave()
		half := <-full
		e.must(half[1].Err)
		for name, got := range map[string]Appended{"two": (<-two)[0], "half": half[0]} {
			var is *FullError
			if !errors.As(got.Err, &is) || got.Unknown || len(got.IDs) != 0 {
				t.Errorf("%s: got %+v", name, got)
			}
		}
		e.must((<-fits)[0].Err)
		if got := (<-bad)[0]; !errors.Is(got.Err, redisconn.ErrWrongType) || got.Unknown {
			t.Errorf("bad: got %+v", got)
		}
		c.wg.Wait()
		for p, want := range [][]string{{"0", "1", "20"}, {"10"}, {"40"}} {
			equal(t, fmt.Sprint("partition ", p), e.contents(c.to(p, 0, 0).Log), want)
		}
	})
}

func TestDropOldestForSendersThatShareARoundTrip(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(3, OverflowDropOldest, "printer")
		e.must(e.send(e.ctx(), 0, 3).Err)
		c := e.crowded()
		a, b := c.joins(e.ctx(), c.to(0, 10, 1)), c.joins(e.ctx(), c.to(0, 11, 1))
		c.leave()
		e.must(errors.Join((<-a)[0].Err, (<-b)[0].Err))
		c.wg.Wait()
		in := e.contents(c.to(0, 0, 0).Log)
		slices.Sort(in)
		equal(t, "contents", in, []string{"10", "11", "2"})
	})
}

func TestAnIDOfTwoSendersThatShareARoundTripIsInOnce(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.window(2, time.Hour)
		c := e.crowded()
		first := c.joins(e.ctx(), c.to(0, 0, 1, "a"))
		second := c.joins(e.ctx(), c.to(0, 1, 2, "a", "b"))
		c.leave()
		a, b := (<-first)[0], (<-second)[0]
		e.must(errors.Join(a.Err, b.Err))
		c.wg.Wait()
		equal(t, "script calls", c.proxy.Hits("EVALSHA")-c.hits, 1)
		equal(t, "duplicates of the first", a.Duplicate, nil)
		equal(t, "duplicates of the second", b.Duplicate, []bool{true, false})
		equal(t, "where it is", b.IDs[0], a.IDs[0])
		equal(t, "contents", e.contents(c.to(0, 0, 0).Log), []string{"0", "2"})
	})
}

// A large call neither waits for a trip nor delays others.
func TestALargeCallGoesOnItsOwn(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		c := e.crowded()
		e.must(c.Append(e.ctx(), []Append{{Log: "a", Records: records(0, gatheredRecords+1)}})[0].Err)
		equal(t, "contents", len(e.contents("a")), gatheredRecords+1)
		c.leave()
		c.wg.Wait()
	})
}

func TestClosingTheClientOfSendersThatWait(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		c := e.crowded()
		a, b := c.joins(e.ctx(), Append{Log: "a", Records: records(0, 1)}), c.joins(e.ctx(), Append{Log: "a", Records: records(1, 1)})
		e.must(c.Close())
		c.leave()
		for _, out := range []<-chan []Appended{a, b} {
			if got := (<-out)[0]; !errors.Is(got.Err, redis.ErrClosed) || got.Unknown {
				t.Errorf("got %+v", got)
			}
		}
		c.wg.Wait()
		equal(t, "contents", len(e.contents("a")), 0)
	})
}

// A user without the right to one stream's keys is refused that stream only.
func TestAStreamThatIsForbiddenIsNothingToTheOthers(t *testing.T) {
	e := realEnv(t)
	e.must(e.raw.Do(e.ctx(), "ACL", "SETUSER", "default", "resetkeys", "~a", "~busy", "~__meta:*").Err())
	c := e.crowded()
	a := c.joins(e.ctx(), Append{Log: "a", Records: records(0, 1)})
	b := c.joins(e.ctx(), c.to(0, 0, 1))
	c.leave()
	e.must((<-a)[0].Err)
	if got := (<-b)[0]; got.Err == nil || got.Unknown {
		t.Errorf("got %+v", got)
	}
	c.wg.Wait()
}
