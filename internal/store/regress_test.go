package store

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// breakingServer is a server that appends once and then closes the connection,
// with the rest of the pipeline unanswered. Replies are by command.
func breakingServer(t *testing.T, replies map[string]string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					command, err := request(r)
					if err != nil {
						return
					}
					reply, last := replies[command]
					if !last {
						reply = "-ERR unknown command\r\n"
					}
					if _, err := c.Write([]byte(reply)); err != nil || last {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// request reads one request and returns its command.
func request(r *bufio.Reader) (command string, err error) {
	n, err := header(r)
	for i := 0; i < n && err == nil; i++ {
		var size int
		if size, err = header(r); err != nil {
			break
		}
		text := make([]byte, size+2)
		for at := 0; at < len(text) && err == nil; at++ {
			text[at], err = r.ReadByte()
		}
		if i == 0 {
			command = strings.ToUpper(string(text[:size]))
		}
	}
	return command, err
}

// header reads "*3" or "$5".
func header(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// When a connection breaks, go-redis gives its error to all commands of the
// pipeline. What was answered before is in all the same.
func TestAnAppendAnsweredBeforeTheConnectionBrokeIsIn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		records int
		replies map[string]string
		ids     string
	}{
		{"one record", 1, map[string]string{"EVALSHA": "*1\r\n$3\r\n1-1\r\n"}, "[1-1]"},
		{"two records", 2, map[string]string{"EVALSHA": "*1\r\n$7\r\n1-1 1-2\r\n"}, "[1-1 1-2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Open(redisconn.Options{URL: "redis://" + breakingServer(t, tt.replies), Keys: keys.Keys{App: "example", Layout: keys.Standalone}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			// More records than one call takes: the second partition gets a call of its own.
			out := c.Append(t.Context(), []Append{{Log: "a", Records: records(0, tt.records)}, {Log: "b", Records: records(0, recordsPerCall)}})
			if fmt.Sprint(out[0].IDs) != tt.ids || out[0].Err != nil || out[0].Unknown {
				t.Errorf("answered: got %+v", out[0])
			}
			if len(out[1].IDs) > 0 || !out[1].Unknown || !errors.Is(out[1].Err, redisconn.ErrUnknownOutcome) {
				t.Errorf("not answered: got %+v", out[1])
			}
		})
	}
}

// Two workers may be configured with different expiries: whoever waits must not
// cut the lock below what its owner counts on.
func TestALockIsNeverCutBelowItsOwnersExpiry(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		owner := Claim{Executor: alice, Number: 1, Expiry: time.Minute}
		e.must(e.Lock(e.ctx(), p, owner, owner.Expiry, 10*time.Second))
		_, err := e.Takeover(e.ctx(), p, owner, "", 0)
		e.must(err)
		life := func(what string, least, most time.Duration) {
			t.Helper()
			if err := e.Lock(e.ctx(), p, tenure(bob, 1), 10*time.Second, 10*time.Second); !errors.Is(err, ErrHeld) {
				t.Fatalf("%s: lock: %v", what, err)
			}
			if got := e.raw.PTTL(e.ctx(), p.Lock).Val(); got <= least || got > most {
				t.Errorf("%s: the lock lives for another %v, want more than %v and at most %v", what, got, least, most)
			}
		}
		life("an owner with a longer expiry", 30*time.Second, time.Minute)
		// A step of the server's clock leaves a dead owner's lock for an hour.
		e.must(e.raw.PExpire(e.ctx(), p.Lock, time.Hour).Err())
		life("a dead owner's", 30*time.Second, time.Minute)
		e.must(e.raw.Del(e.ctx(), p.Own).Err())
		e.must(e.raw.PExpire(e.ctx(), p.Lock, time.Hour).Err())
		life("an unknown owner's", time.Second, 10*time.Second)
	})
}

// The hash tells whoever waits how long an owner counts on its lock, but only from
// the takeover on:
//
//  1. the next owner, with a longer expiry, obtains the lock;
//  2. whoever waits cuts it to the expiry of the owner before;
//  3. the takeover comes. The lease is counted from before the first step.
func TestATakeoverRestoresALockThatWasCutBeforeIt(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		before := Claim{Executor: carol, Number: 1, Expiry: 10 * time.Second}
		e.own(p, before)
		e.must(e.Unlock(e.ctx(), p, before))
		owner := Claim{Executor: alice, Number: 1, Expiry: time.Minute}
		e.must(e.Lock(e.ctx(), p, owner, owner.Expiry, 0))
		if err := e.Lock(e.ctx(), p, tenure(bob, 1), 10*time.Second, 10*time.Second); !errors.Is(err, ErrHeld) {
			t.Fatalf("lock: %v", err)
		}
		_, err := e.Takeover(e.ctx(), p, owner, "", 0)
		e.must(err)
		if got := e.raw.PTTL(e.ctx(), p.Lock).Val(); got <= 30*time.Second || got > time.Minute {
			t.Errorf("the lock lives for another %v, its owner counts on %v", got, owner.Expiry)
		}
	})
}

// halfAcked has alice read 10 of 20 entries, and ack all of these but the third.
func (e *env) halfAcked(p Partition) {
	e.t.Helper()
	for i := range 20 {
		e.add(p.Log, fmt.Sprintf("1-%d", i+1))
	}
	e.own(p, tenure(alice, 1))
	given := e.read(p, alice, 10)
	e.must(e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), append(given[:2:2], given[3:]...)...).Err())
}

// Acks have gaps when a batch fails in part: the number of pending entries then
// says nothing of how far the committed position is. The owner does.
func TestTakeoverKnowsTheNumberReadThoughAcksHaveGaps(t *testing.T) {
	e := realEnv(t)
	p := e.Partition("orders", "printer", 0)
	e.halfAcked(p)
	e.release(LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "1-2", Read: 2})
	pos := e.own(p, tenure(bob, 1))
	equal(t, "floor", pos.Committed, "1-2")
	equal(t, "read", pos.Read, 2)
	for _, g := range e.raw.XInfoGroups(e.ctx(), p.Log).Val() {
		equal(t, g.Name+": lag", g.Lag, 18)
	}
	equal(t, "lag", e.behind(p), 18)
	equal(t, "rest", len(e.read(p, bob, 100)), 18)
}

// What an owner that died had acked behind a gap is not known to be behind its committed position until
// the next one has read everything. Nothing is taken for lost meanwhile.
func TestGapsOfAnOwnerThatDiedAreCountedOnceAllIsRead(t *testing.T) {
	e := realEnv(t)
	p := e.Partition("orders", "printer", 0)
	e.halfAcked(p)
	pos := e.own(p, tenure(bob, 1))
	equal(t, "floor", pos.Committed, "1-2")
	rest := e.read(p, bob, 100)
	equal(t, "rest", len(rest), 18)
	got, err := e.Refresh(e.ctx(), Heartbeat{Key: "beat", Expiry: 10 * time.Second, Membership: "members"}, []LeaseRequest{
		{Partition: p, Claim: tenure(bob, 1), Committed: pos.Committed, Read: pos.Read, At: rest[17], Count: pos.Read + 18}})
	e.must(err)
	equal(t, "lost, counted, count", []any{got.Leases[0].Lost, got.Leases[0].Counted, got.Leases[0].Count}, []any{int64(0), true, int64(20)})
	for _, g := range e.raw.XInfoGroups(e.ctx(), p.Log).Val() {
		equal(t, g.Name+": lag, read", []int64{g.Lag, g.EntriesRead}, []int64{0, 20})
	}
}
