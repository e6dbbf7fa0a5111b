package redisconn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// A tailRig is a Tail and its caller: logs, the position in each, and what came.
type tailRig struct {
	*Tail
	t           *testing.T
	logs, after []string
	came        map[string][]string // IDs by log
}

func newTailRig(t *testing.T, c *Conn, n int, opts TailOptions) *tailRig {
	r := &tailRig{Tail: c.NewTail(opts), t: t, came: map[string][]string{}}
	t.Cleanup(func() { r.Close() })
	for i := range n {
		r.logs, r.after = append(r.logs, c.Keys().Partition("orders", i)), append(r.after, "0-0")
	}
	return r
}

// read reads once, notes what came, and returns the number of entries. No test wants a read of 30 s to wait in vain.
func (r *tailRig) read(wait time.Duration) (n int) {
	r.t.Helper()
	begin := time.Now()
	out, err := r.Read(r.t.Context(), r.logs, r.after, wait)
	if err != nil {
		r.t.Fatal(err)
	}
	if wait == time30s && time.Since(begin) >= wait {
		r.t.Fatal("a wake-up or an entry was lost")
	}
	return r.take(out)
}

func (r *tailRig) take(out []Chunk) (n int) {
	for _, c := range out {
		r.came[c.Key] = append(r.came[c.Key], ids(c.Entries)...)
		n += len(c.Entries)
		for i, log := range r.logs {
			if log == c.Key {
				r.after[i] = c.Entries[len(c.Entries)-1].ID
			}
		}
	}
	return n
}

// until reads until so many entries have come, also after errors.
func (r *tailRig) until(n int) {
	r.t.Helper()
	redistest.Eventually(r.t, fmt.Sprint(n, " entries have come"), func() bool {
		out, _ := r.Read(r.t.Context(), r.logs, r.after, 100*time.Millisecond)
		n -= r.take(out)
		return n <= 0
	})
}

// blocked returns when the server holds a read back.
func blocked(t *testing.T, raw *redis.Client) {
	t.Helper()
	redistest.Eventually(t, "a read blocks", func() bool {
		return raw.InfoMap(t.Context(), "clients").Item("Clients", "blocked_clients") != "0"
	})
}

func TestTail(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		r := newTailRig(t, e.Conn, 3, TailOptions{Entries: 2})
		equal(t, "nothing there", r.read(0), 0)
		equal(t, "nothing came", r.read(20*time.Millisecond), 0)
		equal(t, "nothing came to a quiet log", r.read(20*time.Millisecond), 0)
		for _, id := range []string{"1-1", "2-2", "3-3"} {
			e.add(r.logs[1], id)
		}
		e.add(r.logs[2], "9-9")
		for range 4 {
			r.read(10 * time.Millisecond)
		}
		equal(t, "came", r.came, map[string][]string{r.logs[1]: {"1-1", "2-2", "3-3"}, r.logs[2]: {"9-9"}})
		came := make(chan int)
		go func() { came <- r.read(time30s) }()
		if e.real {
			blocked(t, e.raw)
		}
		e.add(r.logs[0], "1-1")
		equal(t, "came to a read that waits", <-came, 1)
		none := &tailRig{Tail: r.Tail, t: t}
		equal(t, "without logs", none.read(10*time.Millisecond), 0)
	})
}

// A Wake before a read, during one, or at any moment of its beginning ends it: none waits for its 30 s.
func TestTailIsWoken(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		r := newTailRig(t, e.Conn, 3, TailOptions{})
		for range 20 {
			r.Wake()
			r.Wake()
			equal(t, "woken before", r.read(time30s), 0)
		}
		for range tier.Large(500) {
			time.AfterFunc(rand.N(3*time.Millisecond), r.Wake)
			equal(t, "woken", r.read(time30s), 0)
		}
		e.add(r.logs[2], "1-1")
		equal(t, "came", r.read(time30s), 1)
	})
}

// A read that is woken all the time brings entries all the same.
func TestTailThatIsAlwaysWoken(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		r := newTailRig(t, e.Conn, 3, TailOptions{})
		ctx, stop := context.WithCancel(e.ctx())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		wg.Go(func() {
			for ctx.Err() == nil {
				r.Wake()
				time.Sleep(10 * time.Microsecond)
			}
		})
		for i := range 20 {
			e.add(r.logs[i%3], "*")
			redistest.Eventually(t, "the entry", func() bool { return r.read(time30s) == 1 })
		}
	})
}

func TestTailEndsWithItsContext(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		r := newTailRig(t, e.Conn, 3, TailOptions{})
		leaves := errors.New("the caller leaves")
		ended, cancel := context.WithCancelCause(e.ctx())
		cancel(leaves)
		for _, wait := range []time.Duration{0, time30s} {
			if out, err := r.Read(ended, r.logs, r.after, wait); out != nil || !errors.Is(err, leaves) {
				t.Errorf("ended before: %v, %v", out, err)
			}
		}
		for range 50 {
			ctx, cancel := context.WithTimeoutCause(e.ctx(), rand.N(3*time.Millisecond), leaves)
			if out, err := r.Read(ctx, r.logs, r.after, time30s); out != nil || !errors.Is(err, leaves) {
				t.Errorf("ended: %v, %v", out, err)
			}
			cancel()
		}
		e.add(r.logs[0], "1-1")
		equal(t, "came", r.read(0), 1)
	})
}

// A server that answers nothing keeps neither Wake nor the end of ctx from ending a read.
func TestTailOfAServerThatStandsStill(t *testing.T) {
	s := redistest.Start(t)
	e := newEnv(t, s.Addr(), true)
	r := newTailRig(t, e.Conn, 3, TailOptions{})
	r.read(10 * time.Millisecond)
	s.Freeze()
	defer s.Thaw()
	for range 3 {
		time.AfterFunc(rand.N(3*time.Millisecond), r.Wake)
		out, err := r.Read(e.ctx(), r.logs, r.after, time30s)
		// The first waits for it at once; further ones try a read that does not wait, and give up after a second.
		if out != nil || err != nil && !Unavailable(err) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("woken: %v, %v", out, err)
		}
	}
	ctx, cancel := context.WithTimeout(e.ctx(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Read(ctx, r.logs, r.after, time30s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended: %v", err)
	}
	s.Thaw()
	e.add(r.logs[0], "1-1")
	r.until(1)
}

func TestTailOfAServerThatComesBack(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	e := newEnv(t, s.Addr(), true)
	r := newTailRig(t, e.Conn, 3, TailOptions{})
	e.add(r.logs[0], "1-1")
	r.until(1)
	failed := make(chan error, 1)
	go func() {
		_, err := r.Read(e.ctx(), r.logs, r.after, time30s)
		failed <- err
	}()
	blocked(t, e.raw)
	s.Kill()
	if err := <-failed; !Unavailable(err) {
		t.Errorf("killed: %v", err)
	}
	if _, err := r.Read(e.ctx(), r.logs, r.after, time30s); !Unavailable(err) {
		t.Errorf("away: %v", err)
	}
	s.Restart()
	s.Client(t).XAdd(e.ctx(), &redis.XAddArgs{Stream: r.logs[1], ID: "2-2", Values: []any{"a", "b"}})
	r.until(1)
	equal(t, "came", r.came, map[string][]string{r.logs[0]: {"1-1"}, r.logs[1]: {"2-2"}})
}

// Each of many logs brings all its entries in order, and a log with many does not hold up the others.
func TestTailOfManyLogs(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		const n = 2000
		r := newTailRig(t, e.Conn, n, TailOptions{Entries: 50})
		for range 2 {
			equal(t, "nothing", r.read(10*time.Millisecond), 0)
		}
		pipe := e.raw.Pipeline()
		for i := range 300 {
			pipe.XAdd(e.ctx(), &redis.XAddArgs{Stream: r.logs[7], ID: fmt.Sprintf("%d-1", i+1), Values: []any{"a", "b"}})
		}
		for _, log := range r.logs {
			pipe.XAdd(e.ctx(), &redis.XAddArgs{Stream: log, ID: "1000-1", Values: []any{"a", "b"}})
		}
		if _, err := pipe.Exec(e.ctx()); err != nil {
			t.Fatal(err)
		}
		most := 0
		for came := 0; came < n+300; {
			before := len(r.came[r.logs[7]])
			came += r.read(time30s)
			most = max(most, len(r.came[r.logs[7]])-before)
		}
		equal(t, "most of one log", most, 50)
		for _, log := range r.logs {
			if got := r.came[log]; got[len(got)-1] != "1000-1" || len(got) != 1 && log != r.logs[7] {
				t.Fatalf("%s: %v", log, got)
			}
		}
	})
}

// Many large entries come in many reads, none of which brings much more than its bound, and the logs take turns.
func TestTailIsBounded(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		const logs, each, size, bound = 50, 20, 4 << 10, 256 << 10
		r := newTailRig(t, e.Conn, logs, TailOptions{Bytes: bound})
		value := strings.Repeat("x", size)
		for _, log := range r.logs {
			for i := range each {
				e.must(e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: log, ID: fmt.Sprintf("%d-1", i+1), Values: []any{"a", value}}).Err())
			}
		}
		reads := 0
		for came := 0; came < logs*each; reads++ {
			n := r.read(time30s)
			if n*size > bound {
				t.Errorf("a read brought %d entries", n)
			}
			came += n
			if reads == 2*logs/tailGroup && len(r.came) < logs {
				t.Errorf("after %d reads there is something from %d logs only", reads, len(r.came))
			}
		}
		if least := logs * each * size / bound; reads > 3*least {
			t.Errorf("%d reads, %d are enough", reads, least)
		}
		for log, got := range r.came {
			equal(t, log, len(got), each)
		}
	})
}

// The embedded server takes a key of another type for an empty log.
func TestTailOfAWrongType(t *testing.T) {
	e := realEnv(t)
	r := newTailRig(t, e.Conn, 3, TailOptions{})
	e.must(e.raw.Set(e.ctx(), r.logs[1], "x", 0).Err())
	e.add(r.logs[2], "1-1")
	for _, wait := range []time.Duration{0, 20 * time.Millisecond, time30s} {
		out, err := r.Read(e.ctx(), r.logs, r.after, wait)
		if !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), r.logs[1]) || strings.Contains(err.Error(), r.logs[2]) {
			t.Errorf("got %v", err)
		}
		r.take(out)
	}
	equal(t, "came", r.came, map[string][]string{r.logs[2]: {"1-1"}})
	_, err := r.Read(e.ctx(), r.logs[1:2], r.after[:1], 0)
	if !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), r.logs[1]) {
		t.Errorf("alone: %v", err)
	}
}

func TestTailOfACluster(t *testing.T) {
	k := redistest.StartCluster(t, 3, 0)
	c := clustered(t, k)
	add := func(log, id string) {
		t.Helper()
		if err := c.NoRetry.XAdd(t.Context(), &redis.XAddArgs{Stream: log, ID: id, Values: []any{"a", "b"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{1, 40} { // that is waited for, that are asked in turn
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newTailRig(t, c, n, TailOptions{})
			for i, log := range r.logs {
				add(log, fmt.Sprintf("%d-1", n+i))
			}
			r.until(n)
			equal(t, "logs", len(r.came), n)
			for range 50 {
				time.AfterFunc(rand.N(3*time.Millisecond), r.Wake)
				equal(t, "woken", r.read(time30s), 0)
			}
			slot := Slot(r.logs[0])
			to := k.Nodes()[0]
			if k.Owner(slot) == to {
				to = k.Nodes()[1]
			}
			move := k.Begin(slot, to)
			add(r.logs[0], "1000-1")
			r.until(1)
			move.End()
			add(r.logs[0], fmt.Sprint(2000+n, "-1"))
			r.until(1)
			equal(t, "of the slot that moved", r.came[r.logs[0]], []string{fmt.Sprint(n, "-1"), "1000-1", fmt.Sprint(2000+n, "-1")})
			c.NoRetry.Del(t.Context(), r.logs...)
		})
	}
}

// In fake time a read waits for exactly its time, and for a while after one that looked at many logs for little.
func TestTailInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.New()
		defer s.Close()
		shared := redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: s.Dial})
		defer shared.Close()
		c, err := Open(Options{Redis: shared, Keys: example})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r := newTailRig(t, c, 2000, TailOptions{})
		defer r.Close()
		passes := func(what string, want time.Duration, do func()) {
			t.Helper()
			begin := time.Now()
			do()
			equal(t, what, time.Since(begin), want)
		}
		add := func() {
			shared.XAdd(t.Context(), &redis.XAddArgs{Stream: r.logs[5], Values: []any{"a", "b"}})
		}
		passes("in vain", time.Minute, func() {
			for range 30 {
				r.read(2 * time.Second)
			}
		})
		time.AfterFunc(500*time.Millisecond, r.Wake)
		passes("woken", 500*time.Millisecond, func() { r.read(time30s) })
		time.AfterFunc(500*time.Millisecond, add)
		passes("found", 500*time.Millisecond, func() { equal(t, "entries", r.read(time30s), 1) })
		add()
		passes("found right after", 1999*tailRest, func() { equal(t, "entries", r.read(time30s), 1) })
		passes("without waiting", 0, func() { r.read(0) })
		r.Wake()
		passes("woken before", 0, func() { r.read(time30s) })
	})
}

// A Tail of a user without the right to CLIENT UNBLOCK is woken as well.
func TestTailWithoutRights(t *testing.T) {
	e := realEnv(t)
	e.must(e.raw.Do(e.ctx(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+xread").Err())
	c, err := Open(Options{URL: "redis://reader:secret@" + e.addr, Keys: example})
	e.must(err)
	defer c.Close()
	r := newTailRig(t, c, 2, TailOptions{})
	for range 20 {
		time.AfterFunc(rand.N(3*time.Millisecond), r.Wake)
		equal(t, "woken", r.read(time30s), 0)
	}
}
