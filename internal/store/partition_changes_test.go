package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// atWork is alice, who has committed 1-2 of ten entries by position, with 1-1 parked, and rows.
type atWork struct {
	*env
	p     Partition
	me    Claim
	table Table
}

// rowsTime is the partition's time of commits in tests.
const rowsTime = 5000

func (e *env) atWork(n int) *atWork {
	e.t.Helper()
	w := &atWork{env: e, p: e.Partition("orders", "printer", n), me: byPosition(alice), table: e.Table("orders", "totals", n)}
	e.series(w.p.Log, 10)
	e.own(w.p, w.me)
	e.park(w.p, alice, "1-1")
	ch := w.rows(map[string]Row{
		"old":  {Value: "0", There: true},
		"gone": {Value: "0", There: true, Until: rowsTime + 1},
		"due":  {Value: "0", There: true, Until: rowsTime},
		"stay": {Value: "0", There: true, Until: rowsTime + 1},
	})
	ch.Outputs, ch.Tables[0].Ended = w.outputs("bills", 0, 1), 1
	one := w.next(1, "1-2", ch)
	one.TakenOut = []string{"1-1"}
	e.must(w.store(one))
	return w
}

// rows are changes of the table alone.
func (w *atWork) rows(rows map[string]Row) *Changes {
	return &Changes{Tables: []TableChanges{{Table: w.table, Rows: rows, Ended: rowsTime}}}
}

func (w *atWork) outputs(stream string, partition, n int) (all []Output) {
	for i := range n {
		all = append(all, Output{Stream: stream, Partition: partition, Fields: []string{"data", fmt.Sprint(stream, partition, " ", i)}})
	}
	return all
}

// all are changes of every kind.
func (w *atWork) all() *Changes {
	ch := w.rows(map[string]Row{
		"old": {Value: "1", There: true}, "new": {Value: "1", There: true, Until: rowsTime + 9}, "gone": {},
	})
	ch.Settled = []string{"1-1"}
	ch.Outputs = slices.Concat(w.outputs("bills", 0, 2), w.outputs("bills", 1, 1), w.outputs("mails", 0, 1))
	return ch
}

// less are changes that need no memory.
func (w *atWork) less() *Changes {
	ch := w.rows(map[string]Row{"old": {}, "gone": {}})
	ch.Settled = []string{"1-1"}
	return ch
}

func (w *atWork) next(number int64, committed string, ch *Changes) Commit {
	return Commit{Partition: w.p, Claim: w.me, Number: number, Committed: committed, Read: -1, Changes: ch}
}

func (e *env) store(one Commit) error { return e.Commit(e.ctx(), []Commit{one})[0] }

// everything returns all keys with what they have, as the server would dump it if it can.
func (e *env) everything() map[string]string {
	e.t.Helper()
	all := map[string]string{}
	for _, key := range try(e.raw.Keys(e.ctx(), "*").Result()).must(e.t) {
		var got any
		switch kind := e.raw.Type(e.ctx(), key).Val(); {
		case e.real:
			got = try(e.raw.Dump(e.ctx(), key).Result()).must(e.t)
		case kind == "hash":
			got = e.raw.HGetAll(e.ctx(), key).Val()
		case kind == "zset":
			got = e.raw.ZRangeWithScores(e.ctx(), key, 0, -1).Val()
		case kind == "stream":
			got = fmt.Sprint(e.raw.XRange(e.ctx(), key, "-", "+").Val(), e.groups(key))
		default:
			got = e.raw.Get(e.ctx(), key).Val()
		}
		all[key] = fmt.Sprint(got)
	}
	return all
}

// unchanged runs a commit that is to be refused, and checks that it has written nothing.
func (e *env) unchanged(what string, commit func() error, want func(error) bool) {
	e.t.Helper()
	before := e.everything()
	if err := commit(); !want(err) {
		e.t.Errorf("%s: unexpected result %v", what, err)
	}
	after := e.everything()
	for key := range after {
		if after[key] != before[key] {
			e.t.Errorf("%s: %s is %q, was %q", what, key, after[key], before[key])
		}
	}
	for key := range before {
		if _, there := after[key]; !there {
			e.t.Errorf("%s: %s is gone", what, key)
		}
	}
}

func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) && (err == nil) == (want == nil) }
}

// stored checks that all of atWork.all is there.
func (w *atWork) stored(what string) {
	w.t.Helper()
	equal(w.t, what+": rows", w.raw.HGetAll(w.ctx(), w.table.Rows).Val(), map[string]string{"old": "1", "new": "1", "stay": "0"})
	equal(w.t, what+": their times", w.raw.ZRangeWithScores(w.ctx(), w.table.Until, 0, -1).Val(),
		[]redis.Z{{Score: rowsTime + 1, Member: "stay"}, {Score: rowsTime + 9, Member: "new"}})
	equal(w.t, what+": parked", w.raw.HLen(w.ctx(), w.p.Retry).Val()+w.raw.HLen(w.ctx(), w.p.Parked).Val(), 0)
	equal(w.t, what+": bills.0", w.texts("bills", 0), []string{"bills0 0", "bills0 0", "bills0 1"})
	equal(w.t, what+": bills.1", w.texts("bills", 1), []string{"bills1 0"})
	equal(w.t, what+": mails.0", w.texts("mails", 0), []string{"mails0 0"})
	equal(w.t, what+": position", w.at(w.p)[1:3], []any{"1-3", "1-3"})
}

// texts returns the data of the entries of a partition.
func (e *env) texts(stream string, partition int) (all []string) {
	e.t.Helper()
	for _, entry := range e.raw.XRange(e.ctx(), e.keys.Partition(stream, partition), "-", "+").Val() {
		all = append(all, fmt.Sprint(entry.Values["data"]))
	}
	return all
}

// Whichever key of a commit has a wrong type: nothing of it is done.
func TestChangesBesideAWrongTypeAreNotDone(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		w := e.atWork(0)
		for _, large := range []bool{false, true} {
			for _, key := range []string{
				w.p.Log, w.p.Own, w.p.Retry, w.p.Parked, w.table.Rows, w.table.Until,
				e.keys.Partition("bills", 0), e.keys.Partition("bills", 1), e.keys.Partition("mails", 0),
			} {
				kept := e.raw.RenameNX(e.ctx(), key, "kept").Err() == nil
				e.must(e.raw.Set(e.ctx(), key, "x", 0).Err())
				one := w.next(2, "1-3", w.all())
				one.Large = large
				e.unchanged(key, func() error { return e.store(one) }, is(redisconn.ErrWrongType))
				if one.Changes = w.less(); !strings.Contains(key, "bills") && !strings.Contains(key, "mails") {
					e.unchanged(key+", with less", func() error { return e.store(one) }, is(redisconn.ErrWrongType))
				}
				e.must(e.raw.Del(e.ctx(), key).Err())
				if kept {
					e.must(e.raw.Rename(e.ctx(), "kept", key).Err())
				}
			}
		}
		e.must(e.store(w.next(2, "1-3", w.all())))
		w.stored("with every key as it was")
	})
}

// Whichever right of a commit is missing: nothing of it is done.
func TestChangesWithoutARightAreNotDone(t *testing.T) {
	e := realEnv(t)
	w := e.atWork(0)
	var rules [][]string
	for _, name := range strings.Fields("hset hdel zadd zrem zrangebyscore xadd xpending xgroup|setid hmget") {
		rules = append(rules, []string{"-" + name})
	}
	touched := []string{w.p.Log, w.p.Own, w.p.Retry, w.p.Parked, w.table.Rows, w.table.Until}
	for _, stream := range []string{"bills", "mails"} {
		touched = append(touched, e.keys.Partition(stream, 0))
	}
	for _, missing := range touched {
		rule := []string{"resetkeys", "%R~" + missing} // may read it
		for _, key := range touched {
			if key != missing {
				rule = append(rule, "~"+key)
			}
		}
		rules = append(rules, append(rule, "~"+e.keys.Partition("bills", 1), "~__mta:*", "~__meta:*"))
	}
	for i, rule := range rules {
		name := fmt.Sprint("u", i)
		e.user(name, rule...)
		c := try(Open(redisconn.Options{URL: "redis://" + name + ":pw@" + e.addr, Keys: example})).must(t)
		defer c.Close()
		for _, ch := range []*Changes{w.all(), w.less(), {Settled: []string{"1-1"}}} {
			needs := slices.Contains([]string{"-hset", "-hdel", "-xpending", "-xgroup|setid", "-hmget"}, rule[0]) || // all do
				len(ch.Tables) > 0 && rule[0] != "-xadd" || len(ch.Outputs) > 0
			if rule[0] == "resetkeys" {
				key := strings.TrimPrefix(rule[1], "%R~")
				needs = slices.Contains([]string{w.p.Log, w.p.Own, w.p.Retry, w.p.Parked}, key) ||
					len(ch.Tables) > 0 && (key == w.table.Rows || key == w.table.Until) || len(ch.Outputs) > 0
			}
			if !needs {
				continue
			}
			for _, large := range []bool{false, true} {
				one := w.next(2, "1-3", ch)
				one.Large = large
				e.unchanged(fmt.Sprint(rule, " ", len(ch.Tables), len(ch.Outputs)), func() error { return c.Commit(t.Context(), []Commit{one})[0] },
					redisconn.Denied)
			}
		}
	}
	e.must(e.store(w.next(2, "1-3", w.all())))
	w.stored("with all rights")
}

// A full server refuses a commit that grows, as a whole, and passes one that only makes room and moves on.
func TestChangesOnAServerWhoseMemoryIsFull(t *testing.T) {
	e := realEnv(t)
	full := func(yes string) { e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", yes).Err()) }
	for n, large := range []bool{false, true} {
		w := e.atWork(n)
		output := &Changes{Outputs: w.outputs("bills", n, 1)}
		both := w.less()
		both.Tables[0].Rows["new"] = Row{Value: "x", There: true}
		for i, ch := range []*Changes{w.all(), output, w.rows(map[string]Row{"old": {Value: "1", There: true}}), both} {
			one := w.next(2, "1-3", ch)
			one.Large = large
			full("1")
			e.unchanged(fmt.Sprint("growth ", i), func() error { return e.store(one) }, func(err error) bool { return redisconn.ReplyHas(err, "OOM") })
		}
		for i, ch := range []*Changes{w.rows(map[string]Row{"gone": {}}), {Settled: []string{"1-1"}}, w.less(), {}} {
			one := w.next(int64(i+2), fmt.Sprint("1-", i+3), ch)
			one.Large = large
			e.must(e.store(one))
		}
		equal(t, "rows", e.raw.HGetAll(e.ctx(), w.table.Rows).Val(), map[string]string{"stay": "0"})
		equal(t, "parked", e.raw.Exists(e.ctx(), w.p.Retry, w.p.Parked).Val(), 0)
		equal(t, "position, pending", append(e.at(w.p)[1:3], e.pending(w.p, alice)), []any{"1-6", "1-6", 0})
		full("0")
	}
}

// A partition without room refuses a commit as a whole. The event's own stream always takes it, and one that is empty
// takes more than its length.
func TestChangesForAFullPartition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, stream := range []string{"bills", "orders"} {
			try(e.EnsureMeta(e.ctx(), stream, Meta{Partitions: 16, MaxLen: 3})).must(t)
		}
		w := e.atWork(0)
		refused := func(what string, one Commit, partition, wanted int) {
			t.Helper()
			e.unchanged(what, func() error { return e.store(one) }, func(err error) bool {
				var full *TargetFullError
				return errors.As(err, &full) && errors.Is(err, ErrFull) && *full == TargetFullError{Stream: "bills", Partition: partition, Wanted: wanted}
			})
		}
		for _, large := range []bool{false, true} {
			ch := w.all()
			ch.Outputs = append(w.outputs("mails", 0, 2), w.outputs("bills", 0, 3)...)
			one := w.next(2, "1-3", ch)
			one.Large = large
			refused("3 behind 1", one, 0, 3)
			ch.Outputs = w.outputs("bills", 0, 4)
			refused("4 behind 1", one, 0, 4)
		}
		ch := w.all()
		ch.Outputs = slices.Concat(w.outputs("bills", 1, 4), w.outputs("bills", 0, 2), w.outputs("orders", 0, 5), w.outputs("orders", 1, 4))
		e.must(e.store(w.next(2, "1-3", ch)))
		equal(t, "length of what was empty", len(e.texts("bills", 1)), 4)
		equal(t, "length of what has room", len(e.texts("bills", 0)), 3)
		equal(t, "length of the own stream's", []int{len(e.texts("orders", 0)), len(e.texts("orders", 1))}, []int{15, 4})
		again := w.next(2, "1-3", ch) // its reply was lost, and the partitions are full by now
		e.unchanged("again", func() error { return e.store(again) }, is(nil))
		one := w.next(3, "1-4", w.all())
		one.Changes.Outputs = w.outputs("bills", 1, 1)
		refused("1 behind 4", one, 1, 1)
	})
}

// Outputs for a partition that their stream does not have any more refuse a commit as a whole: no processor would read them.
// A stream that has no metadata may have any number of partitions.
func TestChangesForAPartitionThatIsNoMore(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, stream := range []string{"bills", "orders"} {
			try(e.EnsureMeta(e.ctx(), stream, Meta{Partitions: 2})).must(t)
		}
		w := e.atWork(0)
		ch := w.all()
		ch.Outputs = append(ch.Outputs, w.outputs("bills", 2, 1)...)
		e.unchanged("a partition too many", func() error { return e.store(w.next(2, "1-3", ch)) }, func(err error) bool {
			return errors.Is(err, ErrNoPartition) && strings.Contains(err.Error(), "partition 2 of stream bills")
		})
		ch.Outputs = slices.Concat(w.outputs("bills", 1, 1), w.outputs("mails", 5, 1), w.outputs("orders", 1, 1))
		e.must(e.store(w.next(2, "1-3", ch)))
		equal(t, "stored", []int{len(e.texts("bills", 1)), len(e.texts("mails", 5)), len(e.texts("orders", 1))}, []int{1, 1, 1})
	})
}

// A commit that was done, one of a former tenure, and one that the server cannot follow write nothing, whatever has
// become of other keys.
func TestChangesThatAreNotDone(t *testing.T) {
	for _, large := range []bool{false, true} {
		both(t, func(t *testing.T, e *env) {
			w := e.atWork(0)
			one := w.next(2, "1-3", w.all())
			one.Large = large
			e.must(e.store(one))
			refused := func(what string, one Commit, want error) {
				t.Helper()
				one.Large = large
				e.unchanged(what, func() error { return e.store(one) }, is(want))
			}
			refused("again", one, nil)
			late := w.next(1, "1-2", w.rows(map[string]Row{"old": {Value: "late", There: true}}))
			refused("late", late, nil)
			refused("behind", w.next(4, "1-5", w.all()), ErrBehind)
			took := w.next(3, "1-4", w.less())
			took.TakenOut = []string{"1-4"}
			if !large { // for a large entry a consumer is made
				refused("what was not taken out", took, ErrBehind)
				refused("what was not read", w.next(3, "1-44", w.less()), ErrBehind)
			}
			e.must(e.raw.Rename(e.ctx(), w.table.Rows, "kept").Err())
			e.must(e.raw.Set(e.ctx(), w.table.Rows, "x", 0).Err())
			refused("again, beside a wrong type", one, nil)
			e.must(e.raw.Rename(e.ctx(), "kept", w.table.Rows).Err())

			group := GroupName(w.p.Processor, alice)
			e.must(e.raw.XGroupDestroy(e.ctx(), w.p.Log, group).Err())
			for i, ch := range []*Changes{w.all(), w.less(), {}} {
				refused(fmt.Sprint("without a group ", i), w.next(3, "1-4", ch), ErrFenced)
			}
			e.own(w.p, byPosition(bob))
			refused("late, of a former owner", w.next(3, "1-4", w.all()), ErrFenced)
			w.me = byPosition(bob)
			e.must(e.store(w.next(1, "1-4", nil)))
			refused("its number is the next one's", Commit{Partition: w.p, Claim: byPosition(alice), Number: 2, Committed: "1-5", Read: -1, Changes: w.all()}, ErrFenced)
			w.me.Number = 2
			e.own(w.p, w.me)
			refused("late, of a former ownership", Commit{Partition: w.p, Claim: byPosition(bob), Number: 1, Committed: "1-5", Read: -1, Changes: w.all()}, ErrFenced)
		})
	}
}
