package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A lagging is a server whose replica lags while link is paused, and two clients that wait for it.
type lagging struct {
	*env
	replica *redis.Client
	link    *faultproxy.Proxy
	patient *Client // waits long
	hasty   *Client // gives up soon
}

func newLagging(t *testing.T) *lagging {
	t.Helper()
	server := redistest.Start(t)
	l := &lagging{env: newEnv(t, server.Addr(), true), link: faultproxy.Start(t, server.Addr())}
	replica := server.ReplicaVia(t, l.link.Addr())
	l.replica = replica.Client(t)
	l.patient, l.hasty = l.durable(time.Minute), l.durable(100*time.Millisecond)
	return l
}

// durable returns a new client that requires one replica to confirm within timeout.
func (e *env) durable(timeout time.Duration) *Client {
	e.t.Helper()
	c, err := Open(redisconn.Options{URL: "redis://" + e.addr, Keys: e.keys, MinReplicas: 1, ReplicationTimeout: timeout})
	e.must(err)
	e.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			e.t.Error(err)
		}
	})
	return c
}

func (e *env) weak(what string, err error) {
	e.t.Helper()
	if !errors.Is(err, redisconn.ErrNotReplicated) || errors.Is(err, redisconn.ErrUnknownOutcome) || redisconn.Unavailable(err) {
		e.t.Errorf("%s: got %v", what, err)
	}
}

func sendWith(ctx context.Context, c *Client, ids ...string) Appended {
	a := Append{Log: "log"}
	for n, id := range ids {
		a.Add(records(n, 1)[0], id, nil)
	}
	return c.Append(ctx, []Append{a})[0]
}

func TestASendWaitsForItsReplicas(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.must(sendWith(l.ctx(), l.patient, "a").Err)
	equal(t, "on the replica", l.replica.XLen(l.ctx(), "log").Val(), 1)
	l.link.Pause()
	first := sendWith(l.ctx(), l.hasty, "b", "c")
	l.weak("the first send", first.Err)
	equal(t, "weak, of", []int{first.Weak, len(first.IDs)}, []int{2, 2})
	if !strings.Contains(first.Err.Error(), "0 of 1 replicas") {
		t.Errorf("the error is %v", first.Err)
	}
	// Connections that wrote nothing themselves wait, too.
	again := sendWith(l.ctx(), l.durable(100*time.Millisecond), "b", "d")
	l.weak("the second send", again.Err)
	equal(t, "duplicates", again.Duplicate, []bool{true, false})
	l.weak("a duplicate", sendWith(l.ctx(), l.durable(100*time.Millisecond), "b").Err)
	equal(t, "on the replica", l.replica.XLen(l.ctx(), "log").Val(), 1)
	l.link.Resume()
	last := sendWith(l.ctx(), l.patient, "b", "c", "d")
	l.must(last.Err)
	equal(t, "duplicates", last.Duplicate, []bool{true, true, true})
	equal(t, "on the replica", l.replica.XLen(l.ctx(), "log").Val(), 4)
}

// If ctx ends first, the results known by then are returned and nothing more is sent.
func TestNothingFollowsWhatIsNotReplicated(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.link.Pause()
	ctx, cancel := context.WithTimeout(l.ctx(), 2*time.Second)
	defer cancel()
	out := l.patient.Append(ctx, []Append{
		{Log: "long", Records: records(0, 2*recordsPerCall+1)}, {Log: "short", Records: records(0, 3)},
	})
	l.weak("the long one", out[0].Err)
	l.weak("the short one", out[1].Err)
	equal(t, "in, and weak", []int{len(out[0].IDs), out[0].Weak, len(out[1].IDs), out[1].Weak}, []int{recordsPerCall, recordsPerCall, 3, 3})
	equal(t, "in", l.raw.XLen(l.ctx(), "long").Val(), recordsPerCall)
	wide := l.hasty.Append(l.ctx(), []Append{{Log: "wide", Records: [][]string{make([]string, fieldsPerCall+2)}}})[0]
	l.weak("a wide record", wide.Err)
	equal(t, "in, and weak", []int{len(wide.IDs), wide.Weak}, []int{1, 1})
	for _, name := range []string{"a delayed record", "a duplicate of it, on another connection"} {
		sent := l.durable(100*time.Millisecond).Append(l.ctx(), []Append{
			delayed(0, delayedRecord{Fields: []string{"a", "b"}, After: time.Hour, ID: "once"})})[0]
		l.weak(name, sent.Err)
		equal(t, "in, and weak", []int{len(sent.IDs), sent.Weak}, []int{1, 1})
	}
}

// A script that the server has forgotten is sent again, with its WAIT.
func TestAForgottenScriptIsReplicatedToo(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.must(sendWith(l.ctx(), l.patient, "").Err)
	l.must(l.raw.ScriptFlush(l.ctx()).Err())
	redistest.Eventually(t, "the replica confirms all", func() bool { // so that a WAIT sent too early would succeed
		info := l.raw.InfoMap(l.ctx(), "replication")
		return strings.Contains(info.Item("Replication", "slave0"), "offset="+info.Item("Replication", "master_repl_offset")+",")
	})
	l.link.Pause()
	got := sendWith(l.ctx(), l.hasty, "")
	l.weak("the send", got.Err)
	equal(t, "in", len(got.IDs), 1)
}

// Until a takeover is replicated, no worker may act as the owner; then the same ownership may.
func TestATakeoverWaitsForItsReplicas(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	p, one := l.Partition("orders", "printer", 0), tenure(alice, 1)
	l.link.Pause()
	l.must(l.hasty.Lock(l.ctx(), p, one, time30s, 0))
	_, err := l.hasty.Takeover(l.ctx(), p, one, "", 0)
	l.weak("the takeover", err)
	_, err = l.durable(100*time.Millisecond).Takeover(l.ctx(), p, one, "", 0)
	l.weak("the same takeover again, on another connection", err)
	equal(t, "groups", len(l.groups(p.Log)), 1)
	l.link.Resume()
	pos := try(l.patient.Takeover(l.ctx(), p, one, "", 0)).must(l.t)
	equal(t, "lock on the replica", l.replica.Get(l.ctx(), p.Lock).Val(), one.LockValue())
	equal(t, "epoch on the replica", l.replica.HGet(l.ctx(), p.Own, "epoch").Val(), fmt.Sprint(pos.Epoch))
	l.link.Pause()
	l.must(l.hasty.Unlock(l.ctx(), p, one)) // the next takeover waits for it as well
}

func TestAClaimWaitsForItsReplicas(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.must(l.raw.Set(l.ctx(), l.keys.Leader(), "me", 0).Err())
	seen := try(l.patient.LookAtTask(l.ctx(), "me", "clean")).must(l.t)
	due := seen.Last.Add(time.Millisecond)
	redistest.Eventually(t, "its time has come", func() bool { return !try(l.raw.Time(l.ctx()).Result()).must(l.t).Before(due) })
	l.link.Pause()
	_, err := l.hasty.ClaimTask(l.ctx(), "me", "clean", seen.Last, due)
	l.weak("the claim", err)
	_, err = l.durable(100*time.Millisecond).ClaimTask(l.ctx(), "me", "clean", seen.Last, due)
	l.weak("the same claim again, on another connection", err)
	l.link.Resume()
	mark := try(l.patient.ClaimTask(l.ctx(), "me", "clean", seen.Last, due)).must(l.t)
	equal(t, "claimed", mark.Claimed, true)
}

// Without MinReplicas no WAIT is sent; if the server forbids WAIT, the error says so.
func TestWaitIsOnlySentOnDemand(t *testing.T) {
	t.Parallel()
	e := realEnv(t)
	proxy := faultproxy.Start(t, e.addr)
	c := try(Open(redisconn.Options{URL: "redis://" + proxy.Addr(), Keys: e.keys})).must(t)
	defer c.Close()
	e.must(sendWith(e.ctx(), c, "", "a").Err)
	equal(t, "WAIT", proxy.Hits("WAIT"), 0)
	equal(t, "clients", c.Replicated == c.NoRetry && c.BatchedReplicated.Client == c.NoRetry, true)
	e.user("weak", "-wait")
	d, err := Open(redisconn.Options{URL: "redis://weak:pw@" + e.addr, Keys: e.keys, MinReplicas: 1, ReplicationTimeout: time.Second})
	e.must(err)
	defer d.Close()
	got := sendWith(e.ctx(), d, "")
	e.weak("not permitted", got.Err)
	if !strings.Contains(got.Err.Error(), "NOPERM") || len(got.IDs) != 1 {
		t.Errorf("got %+v", got)
	}
}

// On a server that does not know the script, a send is not delayed by the wait for older writes.
func TestANewServerIsNotWaitedForTwice(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.link.Pause()
	l.add("other", "*") // an older write that is not replicated
	sent := make(chan Appended, 1)
	go func() { sent <- sendWith(l.ctx(), l.patient, "") }()
	redistest.Eventually(t, "it is in", func() bool { return l.raw.XLen(l.ctx(), "log").Val() == 1 })
	l.link.Resume()
	l.must((<-sent).Err)
}
