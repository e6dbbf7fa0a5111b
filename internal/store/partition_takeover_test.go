package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// maxSequence is the largest sequence number of an ID.
const maxSequence = "18446744073709551615"

// Each case prepares a partition with entries 1-1, 2-2 and 3-3.
var floors = []struct {
	name, processor, start string
	largest                int64
	prepare                func(e *env, p Partition)
	floor                  string
	found                  Found
	rest                   string // what bob reads next
}{
	{name: "never ran", floor: "0-0", found: FoundStart, rest: "[1-1 2-2 3-3]"},
	{name: "never ran, from the end", start: "$", floor: "3-3", found: FoundStart, rest: "[]"},
	{name: "never ran, from an ID", start: "2-2", floor: "2-2", found: FoundStart, rest: "[3-3]"},
	{name: "flushed since", start: "$", largest: 5, floor: "0-0", found: FoundReset, rest: "[1-1 2-2 3-3]"},
	{name: "nothing pending", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 2)
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "1-1", "2-2")
	}, floor: "2-2", found: FoundGroup, rest: "[3-3]"},
	{name: "pending", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 3)
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "1-1", "3-3")
	}, floor: "2-1", found: FoundGroup, rest: "[2-2 3-3]"},
	{name: "the first entry pending", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 3)
	}, floor: "1-0", found: FoundGroup, rest: "[1-1 2-2 3-3]"},
	{name: "the first of a millisecond pending", prepare: func(e *env, p Partition) {
		e.add(p.Log, "1000-0")
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 4)
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "1-1", "2-2", "3-3")
	}, floor: "999-" + maxSequence, found: FoundGroup, rest: "[1000-0]"},
	{name: "several old groups: the lowest", prepare: func(e *env, p Partition) {
		e.group(p, alice, "2-2")
		e.group(p, carol, "1-1")
	}, floor: "1-1", found: FoundGroup, rest: "[2-2 3-3]"},
	{name: "our own group of an earlier ownership", prepare: func(e *env, p Partition) {
		e.own(p, tenure(bob, 6))
		e.read(p, bob, 2)
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, bob), "1-1")
	}, floor: "2-1", found: FoundGroup, rest: "[2-2 3-3]"},
	{name: "a plain group of Python's", processor: "my-proc", prepare: func(e *env, p Partition) {
		e.must(e.raw.XGroupCreate(e.ctx(), p.Log, "my-proc", "2-2").Err())
	}, floor: "2-2", found: FoundPlainGroup, rest: "[3-3]"},
	{name: "a plain group does not count beside ours", prepare: func(e *env, p Partition) {
		e.must(e.raw.XGroupCreate(e.ctx(), p.Log, p.Processor, "1-1").Err())
		e.group(p, alice, "2-2")
	}, floor: "2-2", found: FoundGroup, rest: "[3-3]"},
	{name: "foreign groups", processor: "a", prepare: func(e *env, p Partition) {
		for _, g := range []string{"a@b@x4567890123456", "b@" + alice, "a@short", "aa@" + alice, "a." + alice, "a-@" + alice} {
			e.must(e.raw.XGroupCreate(e.ctx(), p.Log, g, "2-2").Err())
		}
	}, floor: "0-0", found: FoundStart, rest: "[1-1 2-2 3-3]"},
	{name: "names that are patterns", processor: "my-proc", prepare: func(e *env, p Partition) {
		e.group(p, alice, "2-2")
		e.must(e.raw.XGroupCreate(e.ctx(), p.Log, "myyproc@"+carol, "1-1").Err())
	}, floor: "2-2", found: FoundGroup, rest: "[3-3]"},
	{name: "group destroyed by hand", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.checkpoint(p, tenure(alice, 1), "2-2", 2)
		e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice)).Err())
	}, floor: "2-2", found: FoundCheckpoint, rest: "[3-3]"},
	{name: "its consumer deleted by hand", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.checkpoint(p, tenure(alice, 1), "1-1", 1)
		e.read(p, alice, 3)
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "1-1")
		e.forgetConsumers(p, alice)
	}, floor: "1-1", found: FoundCheckpoint, rest: "[2-2 3-3]"},
	{name: "its consumer deleted by hand, with nothing pending", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 3)
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "1-1", "2-2", "3-3")
		e.checkpoint(p, tenure(alice, 1), "3-3", 3)
		e.forgetConsumers(p, alice)
	}, floor: "3-3", found: FoundGroup, rest: "[]"},
	{name: "another stream of lower IDs", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.checkpoint(p, tenure(alice, 1), "9-9", 3)
		e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName(p.Processor, alice)).Err())
	}, floor: "0-0", found: FoundReset, rest: "[1-1 2-2 3-3]"},
	{name: "partition deleted", start: "$", prepare: func(e *env, p Partition) {
		e.own(p, tenure(alice, 1))
		e.checkpoint(p, tenure(alice, 1), "2-2", 2)
		e.must(e.raw.Del(e.ctx(), p.Log).Err())
	}, floor: "0-0", found: FoundReset, rest: "[]"},
	{name: "the largest sequence", prepare: func(e *env, p Partition) {
		e.add(p.Log, "3-"+maxSequence)
		e.add(p.Log, "4-0")
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 5)
		e.raw.XAck(e.ctx(), p.Log, GroupName(p.Processor, alice), "1-1", "2-2", "3-3", "3-"+maxSequence)
	}, floor: "3-" + maxSequence, found: FoundGroup, rest: "[4-0]"},
	{name: "IDs that a double cannot hold", prepare: func(e *env, p Partition) {
		e.add(p.Log, "9007199254740993-1")
		e.group(p, alice, "9007199254740993-1")
		e.group(p, carol, "9007199254740992-1")
	}, floor: "9007199254740992-1", found: FoundGroup, rest: "[9007199254740993-1]"},
}

func TestTakeoverFindsTheFloor(t *testing.T) {
	me := tenure(bob, 7)
	both(t, func(t *testing.T, e *env) {
		for i, tt := range floors {
			t.Run(tt.name, func(t *testing.T) {
				e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}
				if tt.processor == "" {
					tt.processor = "printer"
				}
				p := e.Partition("a.b", tt.processor, i)
				for _, id := range []string{"1-1", "2-2", "3-3"} {
					e.add(p.Log, id)
				}
				foreign := map[string]string{}
				if tt.prepare != nil {
					tt.prepare(e, p)
					if n := e.raw.Exists(e.ctx(), p.Log).Val(); n == 1 {
						foreign = e.groups(p.Log)
					}
				}
				e.must(e.raw.Del(e.ctx(), p.Lock).Err())
				e.lock(p, me)
				pos := try(e.Takeover(e.ctx(), p, me, tt.start, tt.largest)).must(t)
				equal(t, "floor", pos.Committed, tt.floor)
				equal(t, "found", pos.Found, tt.found)
				equal(t, "rest", strings.Join(e.read(p, bob, 10), " "), strings.Trim(tt.rest, "[]"))
				left := e.groups(p.Log)
				for g, at := range foreign {
					ours := len(g) == len(tt.processor)+1+ExecutorIDLength && strings.HasPrefix(g, tt.processor+"@") && strings.Count(g, "@") == 1
					if now, ok := left[g]; !ours && (!ok || now != at) {
						t.Errorf("foreign group %s at %s is now %q", g, at, now)
					} else if ours && ok && g != GroupName(tt.processor, bob) {
						t.Errorf("group %s is still there", g)
					}
				}
			})
		}
	})
}

// group creates the group of an executor at a position.
func (e *env) group(p Partition, executor, at string) {
	e.t.Helper()
	e.must(e.raw.XGroupCreate(e.ctx(), p.Log, GroupName(p.Processor, executor), at).Err())
}

// forgetConsumers deletes the consumers of an executor's group, and what they have pending.
func (e *env) forgetConsumers(p Partition, executor string) {
	e.t.Helper()
	group := GroupName(p.Processor, executor)
	for _, c := range e.raw.XInfoConsumers(e.ctx(), p.Log, group).Val() {
		e.must(e.raw.XGroupDelConsumer(e.ctx(), p.Log, group, c.Name).Err())
	}
}

// checkpoint stores a committed position as a refresh does.
func (e *env) checkpoint(p Partition, t Claim, floor string, read int64) {
	e.t.Helper()
	got := e.refresh(LeaseRequest{Partition: p, Claim: t, Committed: floor, Read: read})
	equal(e.t, "state", got.Leases[0].State, Ours)
}

func TestTakeoverNoticesAShorterStreamOfHigherIDs(t *testing.T) {
	e := realEnv(t) // the embedded server does not count the entries ever added
	p := e.Partition("orders", "printer", 0)
	e.add(p.Log, "1-1")
	e.own(p, tenure(alice, 1))
	e.checkpoint(p, tenure(alice, 1), "5-5", 100)
	e.must(e.raw.Del(e.ctx(), p.Log).Err())
	e.add(p.Log, "3-3")
	e.add(p.Log, "7-7")
	pos := e.own(p, tenure(bob, 2))
	equal(t, "position", pos.Committed+" "+string(pos.Found), "0-0 reset")
}

func TestTakeoverIsIdempotentPerTenure(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.add(p.Log, "1-1")
		e.add(p.Log, "2-2")
		first := e.own(p, tenure(alice, 1))
		equal(t, "read", e.read(p, alice, 1), []string{"1-1"})
		again := try(e.Takeover(e.ctx(), p, tenure(alice, 1), "$", 1<<60)).must(t)
		again.Now = first.Now // the clock goes on
		equal(t, "second reply", again, first)
		equal(t, "groups", e.groups(p.Log), map[string]string{GroupName("printer", alice): "1-1"})
		equal(t, "pending", e.raw.XPending(e.ctx(), p.Log, GroupName("printer", alice)).Val().Count, 1)
	})
}

func TestTakeoverIsFenced(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.add(p.Log, "1-1")
		fenced := func(what string, of Claim) {
			t.Helper()
			if _, err := e.Takeover(e.ctx(), p, of, "", 0); !errors.Is(err, ErrFenced) {
				t.Errorf("%s: got %v, want ErrFenced", what, err)
			}
		}
		fenced("no lock", tenure(alice, 1))
		equal(t, "keys of the ownership", e.raw.Exists(e.ctx(), p.Own).Val(), 0)

		e.own(p, tenure(alice, 1))
		e.must(e.Unlock(e.ctx(), p, tenure(alice, 1)))
		e.lock(p, tenure(alice, 2))
		fenced("an earlier ownership, late", tenure(alice, 1))
		fenced("a later ownership", tenure(alice, 3))
		pos := try(e.Takeover(e.ctx(), p, tenure(alice, 2), "", 0)).must(t)
		e.must(e.Unlock(e.ctx(), p, tenure(alice, 1)))
		equal(t, "lock after the release of an earlier ownership", e.raw.Get(e.ctx(), p.Lock).Val(), tenure(alice, 2).LockValue())

		e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName("printer", alice)).Err())
		fenced("the ownership whose group was destroyed", tenure(alice, 2))
		equal(t, "groups", e.groups(p.Log), map[string]string{})
		e.must(e.Unlock(e.ctx(), p, tenure(alice, 2)))
		next := e.own(p, tenure(alice, 3))
		if next.Epoch <= pos.Epoch {
			t.Errorf("epoch went from %d to %d", pos.Epoch, next.Epoch)
		}
	})
}

func TestEpochRisesStrictly(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		last := int64(0)
		for n := uint64(1); n <= 20; n++ {
			pos := e.own(p, tenure([]string{alice, bob}[n%2], n))
			if pos.Epoch <= last {
				t.Fatalf("epoch went from %d to %d", last, pos.Epoch)
			}
			last = pos.Epoch
		}
		e.must(e.raw.FlushAll(e.ctx()).Err())
		e.lock(p, tenure(bob, 30))
		pos := try(e.Takeover(e.ctx(), p, tenure(bob, 30), "", last+1e12)).must(t)
		equal(t, "epoch after a flush", pos.Epoch, last+1e12+1)
		pos = e.own(p, tenure(alice, 31))
		equal(t, "epoch stored", pos.Epoch, last+1e12+2)
	})
}

func TestTakeoverOfAWrongType(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 3)
		e.must(e.raw.Set(e.ctx(), p.Log, "x", 0).Err())
		e.lock(p, tenure(alice, 1))
		_, err := e.Takeover(e.ctx(), p, tenure(alice, 1), "", 0)
		if !errors.Is(err, redisconn.ErrWrongType) || !strings.Contains(err.Error(), "stream orders partition 3") {
			t.Errorf("got %v", err)
		}
		equal(t, "ownership keys", e.raw.Exists(e.ctx(), p.Own).Val(), 0)
	})
}

func TestTakeoverKeepsTheLagTrue(t *testing.T) {
	e := realEnv(t) // the embedded server has no lag
	p := e.Partition("orders", "printer", 0)
	for range 10 {
		e.add(p.Log, "*")
	}
	e.own(p, tenure(alice, 1))
	got := e.read(p, alice, 6)
	e.raw.XAck(e.ctx(), p.Log, GroupName("printer", alice), got[0], got[1], got[2])
	e.must(e.raw.XDel(e.ctx(), p.Log, got[0]).Err()) // without the true number the server would guess
	lag := func(executor string) int64 {
		t.Helper()
		infos := try(e.raw.XInfoGroups(e.ctx(), p.Log).Result()).must(t)
		if len(infos) != 1 || infos[0].Name != GroupName("printer", executor) {
			t.Fatalf("groups %v", infos)
		}
		return infos[0].Lag
	}
	pos := e.own(p, tenure(bob, 2))
	equal(t, "entries read", pos.Read, 3)
	equal(t, "lag from a group", lag(bob), 7)
	e.checkpoint(p, tenure(bob, 2), got[3], 4)
	e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName("printer", bob)).Err())
	e.own(p, tenure(carol, 3))
	equal(t, "lag from a checkpoint", lag(carol), 6)
}

func TestTheFenceHolds(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, q := e.Partition("orders", "printer", 0), e.Partition("orders", "printer", 1)
		group := GroupName("printer", alice)
		e.add(p.Log, "1-1")
		e.own(p, tenure(alice, 1))
		e.own(q, tenure(alice, 1))
		equal(t, "read", e.read(p, alice, 1), []string{"1-1"})

		r := e.NewReader()
		defer r.Close()
		woken := make(chan error, 1)
		go func() {
			_, err := r.Read(e.ctx(), group, "c", []string{p.Log, q.Log}, 1, time30s)
			woken <- err
		}()
		e.blocked(r)
		e.own(p, tenure(bob, 2))
		if err := <-woken; !errors.Is(err, redisconn.ErrNoGroup) || errors.Is(err, redisconn.ErrUnknownOutcome) {
			t.Errorf("blocked read of the old owner: %v", err)
		}
		errs := e.Ack(e.ctx(), group, []Ack{{Place: p, IDs: []string{"1-1"}}, {Place: q, IDs: []string{"1-1"}}})
		if !errors.Is(errs[0], ErrFenced) || errs[1] != nil {
			t.Errorf("acks of the old owner: %v", errs)
		}
		if n, err := e.raw.XAck(e.ctx(), p.Log, group, "1-1").Result(); n != 0 || err != nil {
			t.Errorf("XACK of the old owner: %d, %v", n, err)
		}
		equal(t, "first read of the new owner", e.read(p, bob, 1), []string{"1-1"})
	})
}

func TestScriptsSurviveScriptFlush(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		renew := []LeaseRequest{{Partition: p, Claim: tenure(alice, 1), Committed: "0-0", Read: -1}}
		two := []Append{{Log: p.Log, Records: [][]string{{"a", "1"}, {"a", "2"}}}}
		flush := func() {
			t.Helper()
			e.must(e.raw.ScriptFlush(e.ctx()).Err())
		}
		for range 2 {
			flush()
			e.own(p, tenure(alice, 1))
			flush()
			got := e.refresh(renew...)
			equal(t, "state", got.Leases[0].State, Ours)
			flush()
			out := e.Append(e.ctx(), two)
			e.must(out[0].Err)
			equal(t, "appended", len(out[0].IDs), 2)
			flush()
			try(e.Trim(e.ctx(), []TrimRequest{{Log: p.Log, Processors: []string{"printer"}, Size: 1}})).must(t)
			flush()
			e.must(e.Unlock(e.ctx(), p, tenure(alice, 1)))
			e.must(e.raw.Del(e.ctx(), p.Own, p.Log).Err())
		}
	})
}

var _ redis.Error = redisconn.ScriptError("")

// Every operation names a key of the wrong type that it meets.
func TestWrongTypesAreNamed(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		e.add(p.Log, "1-1")
		e.own(p, tenure(alice, 1))
		e.read(p, alice, 1)
		entry := redisconn.Entry{ID: "1-1", Values: map[string]any{"data": "x"}}
		for _, key := range []string{p.Parked, p.Own} {
			kept := e.raw.Dump(e.ctx(), key).Val()
			e.must(e.raw.Del(e.ctx(), key).Err())
			e.must(e.raw.Set(e.ctx(), key, "x", 0).Err())
			for name, err := range map[string]error{
				"park":       e.Park(e.ctx(), p, tenure(alice, 1), 0, []Parking{{Entry: entry, State: RetryState{ID: "1-1"}}}),
				"dead":       e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: entry}),
				"settle":     e.DoneRetry(e.ctx(), p, tenure(alice, 1), "1-1"),
				"quarantine": e.Quarantine(e.ctx(), p, tenure(alice, 1), Quarantine{Reason: "x"}),
			} {
				if err != nil && (!errors.Is(err, redisconn.ErrWrongType) || !strings.Contains(err.Error(), key)) {
					t.Errorf("%s: %v does not name %s", name, err, key)
				}
				if met := (name == "quarantine") == (key == p.Own); err == nil && met && name != "dead" && name != "park" {
					t.Errorf("%s: no error of %s", name, key)
				}
			}
			e.must(e.raw.Del(e.ctx(), key).Err())
			if kept != "" {
				e.raw.Restore(e.ctx(), key, 0, kept)
			}
		}
	})
}
