package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// ended is an owner who is done with all events, with rows of which some have ended for a minute and others have not.
func (e *env) ended(n int) (*atWork, Expiry) {
	e.t.Helper()
	w := &atWork{env: e, p: e.Partition("orders", "printer", n), me: byPosition(alice), table: e.Table("orders", "totals", n)}
	e.series(w.p.Log, 1)
	e.own(w.p, w.me)
	now := try(e.raw.Time(e.ctx()).Result()).must(e.t)
	ch := w.rows(map[string]Row{"stays": {Value: "1", There: true}, "soon": {Value: "1", There: true, Until: now.Add(-time.Second).UnixMilli()}})
	ch.Tables[0].Ended = 1
	for i := range 200 {
		ch.Tables[0].Rows[fmt.Sprint("over", i)] = Row{Value: "1", There: true, Until: now.Add(-time.Hour).UnixMilli()}
	}
	e.must(w.store(w.next(1, "1-1", ch)))
	return w, Expiry{Partition: w.p, Claim: w.me, Tables: []Table{w.table}}
}

func TestRowsEndWithoutFurtherEvents(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, e *env) {
		w, of := e.ended(0)
		other, late := e.ended(1)
		e.own(other.p, byPosition(bob))
		waits, behind := e.ended(2)
		e.add(waits.p.Log, "2-1")
		for round, want := range []bool{true, true, false} {
			more := try(e.ExpireRows(e.ctx(), []Expiry{of, late, behind}, time.Minute)).must(t)
			equal(t, fmt.Sprint("more in round ", round), more, []bool{want, false, false})
		}
		equal(t, "rows", e.raw.HLen(e.ctx(), w.table.Rows).Val(), 2)
		equal(t, "times", e.raw.ZRange(e.ctx(), w.table.Until, 0, -1).Val(), []string{"soon"})
		equal(t, "rows of another owner", e.raw.HLen(e.ctx(), other.table.Rows).Val(), 202)
		equal(t, "rows that a waiting event would see", e.raw.HLen(e.ctx(), waits.table.Rows).Val(), 202)
		e.must(e.raw.HSet(e.ctx(), w.p.Retry, "1-1", "{}").Err())
		equal(t, "with a parked event", try(e.ExpireRows(e.ctx(), []Expiry{of}, 0)).must(t), []bool{false})
		e.must(e.raw.Del(e.ctx(), w.p.Retry).Err())
		equal(t, "at once", try(e.ExpireRows(e.ctx(), []Expiry{of}, 0)).must(t), []bool{true})
	})
}

// What the function for an end may see stays until that end was told.
func TestRowsStayForEndsThatWait(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, e *env) {
		w, of := e.ended(0)
		of.Called = []Table{e.Table("orders", "told", 0), e.Table("orders", "waits", 0)}
		now := try(e.raw.Time(e.ctx()).Result()).must(t)
		for _, at := range []struct {
			ago  time.Duration
			left int64
		}{{2 * time.Hour, 202}, {30 * time.Minute, 202 - 128}} {
			e.must(e.raw.ZAdd(e.ctx(), of.Called[1].Until, redis.Z{Score: float64(now.Add(-at.ago).UnixMilli()), Member: "x"}).Err())
			try(e.ExpireRows(e.ctx(), []Expiry{of}, time.Minute)).must(t)
			equal(t, fmt.Sprint("rows with an end ", at.ago, " ago"), e.raw.HLen(e.ctx(), w.table.Rows).Val(), at.left)
		}
	})
}

// An owner is told when rows end, first ones first, and when nothing comes before a time.
func TestEndsOfRows(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, e *env) {
		w := e.atWork(0)
		e.must(e.store(w.next(2, "1-9", w.rows(map[string]Row{
			"b": {Value: "1", There: true, Until: rowsTime + 7}, "a": {Value: "1", There: true, Until: rowsTime + 7}, "c\x00\xff": {Value: "1", There: true, Until: 1_700_000_000_123},
		}))))
		want := []End{{rowsTime + 1, "gone"}, {rowsTime + 1, "stay"}, {rowsTime + 7, "a"}, {rowsTime + 7, "b"}, {1_700_000_000_123, "c\x00\xff"}}
		equal(t, "all", try(e.Ends(e.ctx(), w.table, 9)).must(t), want)
		equal(t, "some", try(e.Ends(e.ctx(), w.table, 3)).must(t), want[:3])
		equal(t, "of a table without rows", len(try(e.Ends(e.ctx(), e.Table("orders", "none", 0), 3)).must(t)), 0)

		idle := func(what string, claim Claim, want bool) {
			t.Helper()
			now, idle, err := e.Idle(e.ctx(), w.p, claim)
			clock := try(e.raw.Time(e.ctx()).Result()).must(t)
			if e.must(err); idle != want || idle && (now > clock.UnixMilli() || clock.UnixMilli()-now > time.Minute.Milliseconds()) {
				t.Errorf("%s: idle is %v at %d, want %v at %d", what, idle, now, want, clock.UnixMilli())
			}
		}
		idle("an entry waits", w.me, false)
		e.must(e.store(w.next(3, "1-10", w.rows(nil))))
		idle("one is parked", w.me, false)
		e.must(e.raw.Del(e.ctx(), w.p.Retry).Err())
		idle("nothing waits", w.me, true)
		if _, _, err := e.Idle(e.ctx(), w.p, byPosition(bob)); !errors.Is(err, ErrFenced) {
			t.Errorf("of no owner: %v", err)
		}
	})
}

// On a full server rows end, too; another error is of its partition alone.
func TestRowsThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	e := realEnv(t)
	w, of := e.ended(0)
	other, broken := e.ended(1)
	e.must(e.raw.Del(e.ctx(), other.table.Until).Err())
	e.must(e.raw.Set(e.ctx(), other.table.Until, "no times", redis.KeepTTL).Err())
	e.must(e.raw.ConfigSet(e.ctx(), "maxmemory", "1").Err())
	more, err := e.ExpireRows(e.ctx(), []Expiry{of, broken}, time.Minute)
	equal(t, "more", more, []bool{true, false})
	if !redisconn.ReplyHas(err, "WRONGTYPE") {
		t.Errorf("got %v", err)
	}
	equal(t, "left", e.raw.HLen(e.ctx(), w.table.Rows).Val(), 202-128)
}

// behindScans does something after each HSCAN.
type behindScans func()

func (behindScans) DialHook(next redis.DialHook) redis.DialHook { return next }

func (behindScans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (do behindScans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer func() {
			if cmd.Name() == "hscan" {
				do()
			}
		}()
		return next(ctx, cmd)
	}
}

// A commit removes rows that have ended while a page of them is read: they are none that stay for good.
func TestRowsThatEndWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, e *env) {
		w := e.atWork(0)
		e.must(e.store(w.next(2, "1-9", w.rows(map[string]Row{
			"ends": {Value: "1", There: true, Until: rowsTime + 1}, "stays": {Value: "2", There: true}, "ends later": {Value: "3", There: true, Until: rowsTime + 9},
		}))))
		e.Retrying.AddHook(behindScans(func() {
			over := w.rows(nil)
			over.Tables[0].Ended = rowsTime + 1
			e.must(e.store(w.next(3, "1-9", over)))
		}))
		page, _, err := e.Page(e.ctx(), w.table, Cursor{})
		e.must(err)
		slices.SortFunc(page, func(a, b KeyedRow) int { return strings.Compare(a.Key, b.Key) })
		equal(t, "rows", page, []KeyedRow{{"ends later", Row{"3", rowsTime + 9, true}}, {"old", Row{"0", 0, true}}, {"stays", Row{"2", 0, true}}})
	})
}
