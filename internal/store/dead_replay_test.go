package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

// dead makes a dead letter of entry 1-1, which has a field data, and returns its ID.
func (e *env) dead(p Partition) string {
	e.t.Helper()
	entry := e.ready(p, false)
	e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: entry, Key: "ada", Attempts: 3}))
	letters := e.letters(p)
	return letters[len(letters)-1].ID
}

// values returns the fields of all entries of a partition.
func (e *env) values(stream string, n int) (all []string) {
	e.t.Helper()
	entries := try(e.raw.XRange(e.ctx(), e.keys.Partition(stream, n), "-", "+").Result()).must(e.t)
	for _, entry := range entries {
		all = append(all, fmt.Sprint(entry.Values))
	}
	return all
}

// layouts runs a test under both key layouts, on both servers.
func layouts(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		t.Run(layout, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) { test(t, e.under(layout)) })
		})
	}
}

// under returns a client of the same server with keys of the given layout.
func (e *env) under(layout string) *env {
	e.t.Helper()
	c, err := Open(redisconn.Options{URL: "redis://" + e.addr, Keys: keys.Keys{App: "example", Layout: layout}})
	e.must(err)
	e.t.Cleanup(func() { c.Close() })
	return &env{Client: c, t: e.t, raw: e.raw, real: e.real, addr: e.addr}
}

// Replays go back to the event's partition, to the same number in another stream, and to another.
var replays = []struct {
	name, stream string
	partition    int
	fields       []string
	want         string // fields of the new entry
}{
	{"back", "orders", 2, nil, "map[data:1-1]"},
	{"same number", "again", 2, []string{KeyField, "ada"}, "map[__key:ada data:1-1]"},
	{"other number", "again", 7, []string{KeyField, "ada", "data", "never"}, "map[__key:ada data:1-1]"},
}

func TestReplay(t *testing.T) {
	layouts(t, func(t *testing.T, e *env) {
		for _, tt := range replays {
			t.Run(tt.name, func(t *testing.T) {
				e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real}
				e.must(e.raw.FlushAll(e.ctx()).Err())
				e.meta("orders", "again")
				p := e.Partition("orders", "printer", 2)
				r := Replay{From: p, ID: e.dead(p), Stream: tt.stream, Partition: tt.partition, Fields: tt.fields}
				before := e.values(tt.stream, tt.partition)
				id, ok, err := e.Replay(e.ctx(), r)
				e.must(err)
				equal(t, "appended", e.values(tt.stream, tt.partition), append(before, tt.want))
				newest := e.raw.XRevRangeN(e.ctx(), e.keys.Partition(tt.stream, tt.partition), "+", "-", 1).Val()
				equal(t, "reply", []any{id, ok}, []any{newest[0].ID, true})
				equal(t, "dead letters", len(e.letters(p)), 0)
				id, ok, err = e.Replay(e.ctx(), r)
				equal(t, "again", []any{id, ok, err}, []any{"", false, nil})
				equal(t, "appended", len(e.values(tt.stream, tt.partition)), len(before)+1)
			})
		}
	})
}

// cuts are the ways to lose a request: before or after the server executed it.
var cuts = []struct {
	name   string
	action faultproxy.Action
}{{"before", faultproxy.CloseBefore}, {"after", faultproxy.CloseAfter}}

// behindProxy returns a proxy of its own and a client of the same server behind it.
func (e *env) behindProxy() (*faultproxy.Proxy, *env) {
	e.t.Helper()
	proxy := faultproxy.Start(e.t, e.addr)
	return proxy, (&env{t: e.t, raw: e.raw, real: e.real, addr: proxy.Addr()}).under(e.keys.Layout)
}

// Wherever a replay is cut off, a second try leaves the event there once and no dead letter.
func TestReplayThatIsCutOff(t *testing.T) {
	layouts(t, func(t *testing.T, e *env) {
		for _, tt := range replays {
			for _, c := range cuts {
				for _, command := range []string{"EVALSHA", "XDEL", "XRANGE"} {
					for _, n := range []int{1, faultproxy.Every} {
						t.Run(fmt.Sprint(tt.name, " ", c.name, " ", command, " ", n), func(t *testing.T) {
							e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real, addr: e.addr}
							e.must(e.raw.FlushAll(e.ctx()).Err())
							e.must(errors.Join(replayScript.Load(e.ctx(), e.raw).Err(), sendScript.Load(e.ctx(), e.raw).Err()))
							e.meta("orders", "again")
							p := e.Partition("orders", "printer", 2)
							r := Replay{From: p, ID: e.dead(p), Stream: tt.stream, Partition: tt.partition, Fields: tt.fields}
							before := e.values(tt.stream, tt.partition)
							proxy, hurt := e.behindProxy()
							proxy.On(command, n).Do(c.action)
							_, ok, err := hurt.Replay(e.ctx(), r)
							if left := len(e.letters(p)); err == nil && (!ok || left > 0) || err != nil && !errors.Is(err, redisconn.ErrUnknownOutcome) && left == 0 {
								t.Errorf("replayed %v, %v, and %d dead letters", ok, err, left)
							}
							if now := e.values(tt.stream, tt.partition); len(e.letters(p)) == 0 && !slices.Contains(now[len(before):], tt.want) {
								t.Fatal("neither the dead letter nor the event is there")
							}
							_, _, err = e.Replay(e.ctx(), r) // the operator tries again
							e.must(err)
							equal(t, "appended", e.values(tt.stream, tt.partition), append(before, tt.want))
							equal(t, "dead letters", len(e.letters(p)), 0)
						})
					}
				}
			}
		}
	})
}

// meta writes the metadata of streams with at most five entries in a partition.
func (e *env) meta(streams ...string) {
	e.t.Helper()
	for _, stream := range streams {
		try(e.EnsureMeta(e.ctx(), stream, Meta{Partitions: 8, MaxLen: 5, DedupWindow: 600_000})).must(e.t)
	}
}

func TestReplayOfAnEventWithVeryManyFields(t *testing.T) {
	layouts(t, func(t *testing.T, e *env) {
		e.meta("orders")
		for i := range 2 {
			p := e.Partition("orders", "printer", 1-i)
			entry := e.ready(p, false)
			for i := range fieldsPerCall {
				entry.Values[fmt.Sprint("f", i)] = "v"
			}
			e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: entry}))
			_, ok, err := e.Replay(e.ctx(), Replay{From: p, ID: e.letters(p)[0].ID, Stream: "orders", Partition: 1})
			e.must(err)
			all := e.values("orders", 1)
			if !ok || all[len(all)-1] != fmt.Sprint(entry.Values) || len(e.letters(p)) != 0 {
				t.Errorf("replayed %v, %d dead letters left", ok, len(e.letters(p)))
			}
		}
	})
}

func TestReplayOfNoEvent(t *testing.T) {
	layouts(t, func(t *testing.T, e *env) {
		e.meta("orders")
		p := e.Partition("orders", "printer", 0)
		id := try(e.raw.XAdd(e.ctx(), addArgs(p.Dead, "__dead.id", "1-1")).Result()).must(t)
		for n := range 2 {
			_, ok, err := e.Replay(e.ctx(), Replay{From: p, ID: id, Stream: "orders", Partition: n})
			if ok || !errors.Is(err, ErrNoEvent) {
				t.Errorf("got %v, %v", ok, err)
			}
		}
		equal(t, "dead letters", len(e.letters(p)), 1)
	})
}

// MaxLen holds for replays, too: only entries that all processors have acked make room.
func TestReplayIntoAFullPartition(t *testing.T) {
	layouts(t, func(t *testing.T, e *env) {
		for n := range 2 {
			e.must(e.raw.FlushAll(e.ctx()).Err())
			_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 8, MaxLen: 5, DedupWindow: 600_000, Processors: []string{"printer"}})
			e.must(err)
			from, to := e.Partition("orders", "printer", 0), e.Partition("orders", "printer", n)
			id := e.dead(from)
			e.own(to, tenure(bob, 1))
			for range 5 {
				e.add(to.Log, "*")
			}
			r := Replay{From: from, ID: id, Stream: "orders", Partition: n}
			_, ok, err := e.Replay(e.ctx(), r)
			if full := (*FullError)(nil); ok || !errors.As(err, &full) || full.Processor != "printer" {
				t.Errorf("got %v, %v", ok, err)
			}
			equal(t, "dead letters", len(e.letters(from)), 1)
			e.must(e.Ack(e.ctx(), GroupName("printer", bob), []Ack{{Place: to, IDs: e.read(to, bob, 5)}})[0])
			_, ok, err = e.Replay(e.ctx(), r)
			equal(t, "replayed", []any{ok, err}, []any{true, nil})
			equal(t, "dead letters", len(e.letters(from)), 0)
		}
	})
}

func TestDropDead(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p := e.Partition("orders", "printer", 0)
		for _, entry := range e.begin(p, 3) {
			e.must(e.DeadLetter(e.ctx(), p, tenure(alice, 1), DeadLetter{Entry: entry}))
		}
		all := e.letters(p)
		for range 2 {
			e.must(e.DropDead(e.ctx(), p, []string{all[0].ID, all[2].ID}))
			equal(t, "left", e.letters(p), all[1:2])
		}
		e.must(e.DropDead(e.ctx(), p, nil))
	})
}

// Wherever a resume is cut off, the quarantine either ends once or stays.
func TestResumeThatIsCutOff(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(resumeScript.Load(e.ctx(), e.raw).Err())
		i := 0
		for _, c := range cuts {
			for _, command := range []string{"HGET", "EVALSHA", "XADD"} {
				for _, n := range []int{1, faultproxy.Every} {
					i++
					p := e.Partition("orders", "printer", i)
					t.Run(fmt.Sprint(c.name, " ", command, " ", n), func(t *testing.T) {
						e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real, addr: e.addr}
						e.own(p, tenure(alice, 1))
						e.must(e.Quarantine(e.ctx(), p, tenure(alice, 1), Quarantine{Reason: "no ink", Event: "1-1"}))
						proxy, hurt := e.behindProxy()
						proxy.On(command, n).Do(c.action)
						_, ok, err := hurt.ReleaseQuarantine(e.ctx(), p, true)
						if ok == (err != nil) {
							t.Errorf("got %v, %v", ok, err)
						}
						left, skip := e.raw.HGet(e.ctx(), p.Own, "quarantine").Val(), e.raw.HGet(e.ctx(), p.Own, "skip").Val()
						if ok && left != "" || (left == "") != (skip == "1-1") {
							t.Errorf("resumed %v, left %q, skip %q", ok, left, skip)
						}
						_, _, err = e.ReleaseQuarantine(e.ctx(), p, true)
						e.must(err)
						equal(t, "left", e.raw.HMGet(e.ctx(), p.Own, "quarantine", "skip", "poke").Val(), []any{nil, "1-1", "1"})
					})
				}
			}
		}
	})
}
