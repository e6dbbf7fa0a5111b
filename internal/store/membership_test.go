package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

func TestMembershipSwap(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		s := e.Group("orders", "printer")
		swap := func(old, new string, want bool) {
			t.Helper()
			got, err := s.Swap(e.ctx(), []byte(old), []byte(new))
			if got != want || err != nil {
				t.Errorf("swap %q for %q: %v, %v", old, new, got, err)
			}
		}
		value, err := s.Load(e.ctx())
		if value != nil || err != nil {
			t.Errorf("before: %q, %v", value, err)
		}
		swap("x", "1", false)
		swap("", "1", true)
		swap("", "2", false)
		swap("1", "2", true)
		swap("1", "2", true) // after a lost reply
		swap("1", "3", false)
		value = try(s.Load(e.ctx())).must(t)
		equal(t, "value", string(value), "2")
		equal(t, "key", e.raw.Get(e.ctx(), "__memb:example.orders.printer").Val(), "2")
	})
}

func TestExclusive(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		s := e.Group("orders", "printer")
		inside, n := 0, 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				err := s.Exclusive(e.ctx(), func(context.Context) error {
					mu.Lock()
					inside++
					if inside > 1 {
						t.Error("two ran at once")
					}
					mu.Unlock()
					_, err := s.Load(e.ctx())
					mu.Lock()
					inside--
					n++
					mu.Unlock()
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		equal(t, "runs", n, 8)
		mine := errors.New("mine")
		if err := s.Exclusive(e.ctx(), func(context.Context) error { return mine }); err != mine {
			t.Errorf("got %v", err)
		}
		equal(t, "locks", e.raw.Exists(e.ctx(), "__lock:example.orders.printer.admin").Val(), 0)
	})
}

func TestExclusiveBoundsAForeignLock(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		const key = "__lock:example.orders.printer.admin"
		s := e.Group("orders", "printer")
		e.must(e.raw.Set(e.ctx(), key, "immortal", 0).Err())
		ctx, cancel := context.WithTimeout(e.ctx(), 200*time.Millisecond)
		defer cancel()
		err := s.Exclusive(ctx, func(context.Context) error { return errors.New("ran") })
		if err == nil || strings.Contains(err.Error(), "ran") {
			t.Errorf("got %v", err)
		}
		if left := e.raw.PTTL(e.ctx(), key).Val(); left <= 0 || left > adminExpiry {
			t.Errorf("the foreign lock lives on for %v", left)
		}
	})
}

func TestAlive(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		s := e.Group("orders", "printer")
		beat := func(id string) string { return e.keys.Beat("orders", "printer", id) }
		e.must(e.raw.Set(e.ctx(), beat(alice), "1", 3*time.Second).Err())
		e.must(e.raw.Set(e.ctx(), beat(bob), "1", time.Hour).Err())
		e.must(e.raw.Set(e.ctx(), beat(carol), "1", 0).Err())
		got := try(s.Alive(e.ctx(), []string{alice, bob, "dddddddddddddddd", carol}, 10*time.Second)).must(t)
		if len(got) != 3 {
			t.Fatalf("got %v", got)
		}
		for id, most := range map[string]time.Duration{alice: 3 * time.Second, bob: 10 * time.Second, carol: 10 * time.Second} {
			if got[id] < most-time.Second || got[id] > most {
				t.Errorf("%s lives for %v, want about %v", id, got[id], most)
			}
		}
		got, err := s.Alive(e.ctx(), nil, time.Second)
		if len(got) != 0 || err != nil {
			t.Errorf("no executors: %v, %v", got, err)
		}
	})
}

func TestControl(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		s, other := e.Group("orders", "printer"), e.Group("orders", "mailer")
		names := []string{e.keys.Control("orders", "printer"), e.keys.Control("orders", "mailer")}
		sent := rebalance.Message{Kind: rebalance.Released, Executor: alice, Generation: 7, Partition: 3}
		e.must(s.Announce(e.ctx(), rebalance.Message{Kind: rebalance.Joined, Executor: bob}))
		tail := try(e.ControlTail(e.ctx(), names)).must(t)
		equal(t, "tail of none", tail[1], "0-0")

		r := e.NewTail(redisconn.TailOptions{})
		defer r.Close()
		got, err := r.Read(e.ctx(), names, tail, 10*time.Millisecond)
		if got != nil || err != nil {
			t.Errorf("nothing new: %v, %v", got, err)
		}
		e.must(s.Announce(e.ctx(), sent))
		e.must(other.Announce(e.ctx(), rebalance.Message{Kind: rebalance.Left, Executor: carol}))
		got, err = r.Read(e.ctx(), names, tail, time30s)
		if err != nil || len(got) != 2 {
			t.Fatalf("got %v, %v", got, err)
		}
		for _, c := range got {
			m := try(ParseControl(c.Entries[0])).must(t)
			want := sent
			if c.Key == names[1] {
				want = rebalance.Message{Kind: rebalance.Left, Executor: carol}
			}
			equal(t, c.Key, m, want)
		}
	})
}

func TestControlStreamIsBounded(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		s := e.Group("orders", "printer")
		for i := range 1000 {
			e.must(s.Announce(e.ctx(), rebalance.Message{Kind: rebalance.Joined, Executor: alice, Generation: int64(i)}))
		}
		if n := e.raw.XLen(e.ctx(), e.keys.Control("orders", "printer")).Val(); n < controlLength || n > 2*controlLength {
			t.Errorf("%d messages are kept", n)
		}
	})
}

func TestParseControlRefuses(t *testing.T) {
	good := func() map[string]any {
		return map[string]any{"v": "1", "kind": "released", "executor": alice, "generation": "7", "partition": "3"}
	}
	if _, err := ParseControl(redisconn.Entry{ID: "1-1", Values: good()}); err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]any{"v": "2", "kind": "jump", "generation": "x", "partition": nil} {
		values := good()
		values[field] = value
		if m, err := ParseControl(redisconn.Entry{ID: "1-1", Values: values}); err == nil || m != (rebalance.Message{}) {
			t.Errorf("%s %v: got %v, %v", field, value, m, err)
		}
	}
	if _, err := ParseControl(redisconn.Entry{ID: "1-1"}); err == nil {
		t.Error("an entry without data was read")
	}
}
