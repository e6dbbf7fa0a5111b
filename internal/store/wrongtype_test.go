package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

// A wrongCase is an operation and the keys that it cannot do without.
type wrongCase struct {
	name string
	keys []string
	run  func(c *Client, ctx context.Context) error
}

// Each operation names a key of the wrong type that it meets.
func TestEachOperationNamesTheKeyOfAWrongType(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		for _, tt := range slices.Concat(wrongForSenders(e, p), wrongForOperators(e, p)) {
			for _, key := range tt.keys {
				e.withAllKeys(p)
				e.must(e.raw.Del(e.ctx(), key).Err())
				e.must(e.raw.RPush(e.ctx(), key, "x").Err())
				err := tt.run(e.Client, e.ctx())
				if !errors.Is(err, redisconn.ErrWrongType) || strings.Count(fmt.Sprint(err), redisconn.ErrWrongType.Error()+": "+key+": ") != 1 {
					t.Errorf("%s: %v does not name %s", tt.name, err, key)
				}
			}
		}
	})
}

// withAllKeys stores something of each kind in one partition, and nothing else.
func (e *env) withAllKeys(p Partition) {
	e.t.Helper()
	e.must(e.raw.FlushAll(e.ctx()).Err())
	_, err := e.EnsureMeta(e.ctx(), p.Stream, Meta{Partitions: 1, MaxLen: 3, DedupWindow: time.Hour.Milliseconds(), Processors: []string{p.Processor}})
	e.must(err)
	e.own(p, tenure(alice, 1))
	for _, id := range []string{"1-1", "2-1", "3-1"} {
		e.add(p.Log, id)
	}
	e.read(p, alice, 3)
	one := redisconn.Entry{ID: "1-1", Values: map[string]any{"data": "x"}}
	e.must(e.Park(e.ctx(), p, tenure(alice, 1), 0, []Parking{{Entry: one, State: RetryState{ID: "1-1", At: 1 << 50}}}))
	e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: redisconn.Entry{ID: "2-1", Values: one.Values}}))
	e.must(e.Append(e.ctx(), []Append{delayed(0, delayedRecord{Fields: []string{"data", "x"}, After: time.Hour})})[0].Err)
	e.must(e.raw.Set(e.ctx(), e.keys.Leader(), "me", 0).Err())
}

func wrongForSenders(e *env, p Partition) []wrongCase {
	queue, once := e.dueKeys("orders", 0), e.keys.Once("orders", 0, "a")
	const waiting = "0000000000000001"
	send := func(records [][]string, ids ...string) func(*Client, context.Context) error {
		return func(c *Client, ctx context.Context) error {
			return c.Append(ctx, []Append{{Stream: "orders", Log: p.Log, Records: records, IDs: ids}})[0].Err
		}
	}
	delay := func(c *Client, ctx context.Context) error {
		return c.Append(ctx, []Append{delayed(0, delayedRecord{Fields: []string{"data", "y"}, ID: "a", After: time.Hour})})[0].Err
	}
	return []wrongCase{
		{"send", []string{p.Log}, send([][]string{{"data", "y"}})},
		{"send of two fields", []string{p.Log}, send([][]string{{"data", "y", "n", "1"}})},
		{"send with an ID", []string{p.Log, once}, send([][]string{{"data", "y"}}, "a")},
		{"make room", []string{p.Own}, send([][]string{{"data", "y"}})},
		{"delay", []string{queue.Due, queue.Versions, queue.Data, queue.Sequence, once}, delay},
		{"move", []string{queue.Due, queue.Versions}, func(c *Client, ctx context.Context) error {
			return c.Move(ctx, []StreamPartition{{Stream: "orders"}})[0].Err
		}},
		{"cancel", []string{queue.Due, queue.Versions}, func(c *Client, ctx context.Context) error {
			_, err := c.Cancel(ctx, "orders", 0, waiting)
			return err
		}},
		{"reschedule", []string{queue.Due}, func(c *Client, ctx context.Context) error {
			_, err := c.Reschedule(ctx, "orders", 0, waiting, time.Now())
			return err
		}},
		{"fire", []string{queue.Due}, func(c *Client, ctx context.Context) error {
			_, err := c.Fire(ctx, "orders", 0, waiting)
			return err
		}},
		{"list", []string{queue.Due, queue.Data}, func(c *Client, ctx context.Context) error {
			_, err := c.Delayed(ctx, "orders", 0, 0, 9)
			return err
		}},
		{"count", []string{queue.Due}, func(c *Client, ctx context.Context) error {
			_, err := c.CountDelayed(ctx, "orders", 1)
			return err
		}},
	}
}

func wrongForOperators(e *env, p Partition) []wrongCase {
	members := e.Group("orders", "printer")
	letter := func(c *Client, ctx context.Context) string {
		letters, _ := c.DeadLetters(ctx, p, "", 1)
		if len(letters) == 0 {
			return "1-1" // its key is to blame
		}
		return letters[0].ID
	}
	return []wrongCase{
		{"trim", []string{p.Log}, func(c *Client, ctx context.Context) error {
			_, err := c.Trim(ctx, []TrimRequest{{Log: p.Log, Processors: []string{"printer"}, Size: 1}})
			return err
		}},
		{"replay", []string{p.Dead, p.Log}, func(c *Client, ctx context.Context) error {
			_, _, err := c.Replay(ctx, Replay{From: p, ID: letter(c, ctx), Stream: "orders"})
			return err
		}},
		{"revive", []string{p.Dead, p.Parked, p.Retry, p.Own}, func(c *Client, ctx context.Context) error {
			_, err := c.Revive(ctx, p, letter(c, ctx), 0)
			return err
		}},
		{"retries", []string{p.Retry}, func(c *Client, ctx context.Context) error {
			_, _, err := c.Retries(ctx, p)
			return err
		}},
		{"retry now", []string{p.Retry, p.Own}, func(c *Client, ctx context.Context) error {
			_, err := c.RetryNow(ctx, p, []string{"1-1"})
			return err
		}},
		{"drop", []string{p.Parked, p.Retry, p.Own}, func(c *Client, ctx context.Context) error {
			_, err := c.DropParked(ctx, p, []string{"1-1"})
			return err
		}},
		{"parked event", []string{p.Parked}, func(c *Client, ctx context.Context) error {
			_, _, err := c.Parked(ctx, p, "1-1")
			return err
		}},
		{"hint", []string{e.keys.Control("orders", "printer")}, func(c *Client, ctx context.Context) error {
			return c.Hint(ctx, "orders", "printer", Hint{Kind: HintPoke})
		}},
		{"announce", []string{e.keys.Control("orders", "printer")}, func(c *Client, ctx context.Context) error {
			return members.Announce(ctx, rebalance.Message{Kind: rebalance.Joined, Executor: alice})
		}},
		{"task", []string{e.keys.Tasks(), e.keys.Leader()}, func(c *Client, ctx context.Context) error {
			_, err := c.LookAtTask(ctx, "me", "clean")
			return err
		}},
		{"takeover", []string{p.Log, p.Own}, func(c *Client, ctx context.Context) error {
			_, err := c.Takeover(ctx, p, tenure(alice, 1), "", 0)
			return err
		}},
		{"lock", []string{p.Lock}, func(c *Client, ctx context.Context) error {
			return c.Lock(ctx, p, tenure(bob, 2), time.Second, time.Second)
		}},
	}
}

// Every role may run the commands that ask for the type of a key.
func TestProbesNeedNoRightOfTheirOwn(t *testing.T) {
	c := realEnv(t).Client
	for _, kind := range keys.Kinds {
		right := slices.IndexFunc(c.Rights(), func(r Right) bool { return r.Name == kind.Probe })
		if kind.Probe != "" && (right < 0 || c.Rights()[right].Roles != keys.Everyone) {
			t.Errorf("%s is not permitted to every role", kind.Probe)
		}
	}
}
