package redisconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
)

const time30s = 30 * time.Second

func TestRead(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, q := "__strm:example.orders.0", "__strm:example.orders.1"
		e.own(p)
		e.own(q)
		logs := []string{p, q}
		r := e.NewReader()
		defer r.Close()
		got, err := r.Read(e.ctx(), group, "c", logs, 10, 0)
		if got != nil || err != nil {
			t.Errorf("nothing there: %v, %v", got, err)
		}
		got, err = r.Read(e.ctx(), group, "c", logs, 10, 20*time.Millisecond)
		if got != nil || err != nil {
			t.Errorf("nothing came: %v, %v", got, err)
		}
		for _, id := range []string{"1-1", "2-2", "3-3"} {
			e.add(q, id)
		}
		ended, cancel := context.WithCancel(e.ctx())
		cancel()
		got, err = r.Read(ended, group, "c", logs, 2, time.Second)
		if err != nil || len(got) != 1 || got[0].Key != q {
			t.Fatalf("got %v, %v", got, err)
		}
		equal(t, "entries", ids(got[0].Entries), []string{"1-1", "2-2"})
		equal(t, "values", got[0].Entries[0].Values, map[string]any{"data": "1-1"})
		history, err := r.History(e.ctx(), group, "c", q, "1-1", 10)
		e.must(err)
		equal(t, "history", ids(history), []string{"2-2"})
		history, err = r.History(e.ctx(), group, "c", q, "0-0", 1)
		e.must(err)
		equal(t, "bounded history", ids(history), []string{"1-1"})
	})
}

func TestReadOfWhatIsNotThere(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, q := "__strm:example.orders.0", "__strm:example.orders.1"
		e.own(p)
		r := e.NewReader()
		defer r.Close()
		for name, prepare := range map[string]func() error{
			"no key":     func() error { return e.raw.Del(e.ctx(), q).Err() },
			"no group":   func() error { return e.raw.XGroupCreateMkStream(e.ctx(), q, "other", "0").Err() },
			"wrong type": func() error { return e.raw.Set(e.ctx(), q, "x", 0).Err() },
		} {
			e.must(prepare())
			_, err := r.Read(e.ctx(), group, "c", []string{p, q}, 1, 0)
			if !errors.Is(err, ErrNoGroup) || errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

func TestLostDataComesWithoutValues(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := "__strm:example.orders.0"
		e.begin(p)
		e.must(e.raw.XDel(e.ctx(), p, "1-1", "3-3", "5-5").Err())
		r := e.NewReader()
		defer r.Close()
		for after, want := range map[string][]string{"0-0": {"1-1", "2-2", "3-3"}, "1-1": {"2-2", "3-3", "4-4"}, "3-3": {"4-4", "5-5"}} {
			got, err := r.History(e.ctx(), group, "c", p, after, 3)
			e.must(err)
			equal(t, "entries after "+after, ids(got), want)
			for _, entry := range got {
				equal(t, "values of "+entry.ID, entry.Values != nil, entry.ID == "2-2" || entry.ID == "4-4")
			}
		}
	})
}

func TestInterrupt(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := "__strm:example.orders.0"
		e.own(p)
		r := e.NewReader()
		defer r.Close()
		e.must(r.Interrupt(e.ctx()))
		for range 3 {
			answered := make(chan error, 1)
			go func() {
				_, err := r.Read(e.ctx(), group, "c", []string{p}, 10, time30s)
				answered <- err
			}()
			err := servers.Interrupted(t, r, answered)
			if e.real && err != nil {
				t.Errorf("woken read: %v", err)
			}
			if !e.real && !errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("closed read: %v", err)
			}
			e.must(r.Kill(e.ctx()))
			e.must(r.Interrupt(e.ctx()))
		}
		equal(t, "CanUnblock", e.CanUnblock(), e.real)
		e.add(p, "1-1")
		got, err := r.Read(e.ctx(), group, "c", []string{p}, 10, time.Second)
		e.must(err)
		equal(t, "entries", ids(got[0].Entries), []string{"1-1"})
	})
}

func TestUnknownOutcomeIsRecovered(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := "__strm:example.orders.0"
		e.own(p)
		r := e.NewReader()
		defer r.Close()
		e.add(p, "1-1")
		_, err := r.Read(e.ctx(), group, "c", []string{p}, 10, 0)
		e.must(err)

		// The reply to a read of 2-2 and 3-3 is lost.
		e.add(p, "2-2")
		e.add(p, "3-3")
		cur := r.line(nil).cur
		cur.Conn = servers.DeafConn{Conn: cur.Conn}
		_, err = r.Read(e.ctx(), group, "c", []string{p}, 10, 0)
		if !errors.Is(err, ErrUnknownOutcome) {
			t.Fatalf("got %v, want ErrUnknownOutcome", err)
		}
		e.must(r.Kill(e.ctx()))
		e.must(r.Kill(e.ctx()))
		got, err := r.History(e.ctx(), group, "c", p, "1-1", 10)
		e.must(err)
		equal(t, "lost entries", ids(got), []string{"2-2", "3-3"})
		e.add(p, "4-4")
		next, err := r.Read(e.ctx(), group, "c", []string{p}, 10, 0)
		e.must(err)
		equal(t, "next", ids(next[0].Entries), []string{"4-4"})
	})
}

// After Kill, a read that lost its connection takes no entry, even if the server had not noticed.
func TestKillEndsABlockedRead(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := "__strm:example.orders.0"
		e.own(p)
		r := e.NewReader()
		defer r.Close()
		held := make(chan struct{})
		_, err := r.Read(e.ctx(), group, "c", []string{p}, 10, 0)
		e.must(err)
		l := r.line(nil)
		l.cur.Conn = heldConn{l.cur.Conn, held}
		defer close(held)
		_, err = r.Read(e.ctx(), group, "c", []string{p}, 10, time30s)
		if !errors.Is(err, ErrUnknownOutcome) {
			t.Fatalf("got %v, want ErrUnknownOutcome", err)
		}
		e.must(r.Kill(e.ctx()))
		e.add(p, "1-1")
		got, err := r.History(e.ctx(), group, "c", p, "0-0", 10)
		e.must(err)
		equal(t, "history", len(got), 0)
	})
}

func TestReadFromADeadServerSentNothing(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		c, err := Open(Options{URL: "redis://127.0.0.1:1", Keys: example})
		e.must(err)
		defer c.Close()
		r := c.NewReader()
		defer r.Close()
		_, err = r.Read(e.ctx(), "g", "c", []string{"log"}, 1, 0)
		if err == nil || errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNoGroup) {
			t.Errorf("got %v", err)
		}
	})
}

// Where the server lacks CLIENT UNBLOCK, an interruption that comes too late closes an idle
// connection. The next read finds it closed and sends nothing.
func TestALateInterruptionIsHarmless(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := "__strm:example.orders.0"
		e.own(p)
		r := e.NewReader()
		defer r.Close()
		for i := range 3 {
			id := e.add(p, "*")
			got, err := r.Read(e.ctx(), group, "c", []string{p}, 10, 0)
			if err != nil {
				t.Fatalf("read %d: %v", i, err)
			}
			equal(t, "entries", ids(got[0].Entries), []string{id})
			cur := r.line(nil).cur
			cur.closeNow()
		}
	})
}

// A server that pauses writes, as before a failover that is asked for, holds reads back. Redis and
// Valkey have ended with a panic when CLIENT UNBLOCK hit such a read.
func TestAnInterruptionDuringAPauseOfWrites(t *testing.T) {
	e := realEnv(t)
	p := "__strm:example.orders.0"
	e.own(p)
	r := e.NewReader()
	defer r.Close()
	_, err := r.Read(e.ctx(), group, "c", []string{p}, 10, 0)
	e.must(err)
	e.must(e.raw.Do(e.ctx(), "CLIENT", "PAUSE", 60_000, "WRITE").Err())
	answered := make(chan error, 1)
	go func() {
		_, err := r.Read(e.ctx(), group, "c", []string{p}, 10, time30s)
		answered <- err
	}()
	redistest.Eventually(t, "the read is held back", func() bool {
		return e.raw.InfoMap(e.ctx(), "clients").Item("Clients", "blocked_clients") == "1"
	})
	interrupted := make(chan error, 1)
	go func() { interrupted <- r.Interrupt(e.ctx()) }()
	redistest.Eventually(t, "the interruption, too", func() bool {
		return e.raw.InfoMap(e.ctx(), "clients").Item("Clients", "blocked_clients") == "2"
	})
	e.must(e.raw.Do(e.ctx(), "CLIENT", "UNPAUSE").Err())
	if err := <-interrupted; err != nil {
		t.Errorf("interruption: %v", err)
	}
	if err := servers.Interrupted(t, r, answered); err != nil {
		t.Errorf("woken read: %v", err)
	}
	equal(t, "CanUnblock", e.CanUnblock(), true)
}
