package store

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A delayedRecord is one record of an Append with due times.
type delayedRecord struct {
	Fields []string
	At     time.Time
	After  time.Duration
	ID     string
}

// delayed returns an Append of records to a partition of the stream orders.
func delayed(partition int, records ...delayedRecord) Append {
	a := Append{Stream: "orders", Partition: partition}
	for _, r := range records {
		a.Add(r.Fields, r.ID, &Due{At: r.At, After: r.After})
	}
	return a
}

// later returns n records that are due at a time; their field n counts from first.
func later(first, n int, at time.Time) []delayedRecord {
	out := make([]delayedRecord, n)
	for i, fields := range records(first, n) {
		out[i] = delayedRecord{Fields: fields, At: at}
	}
	return out
}

var (
	past   = time.UnixMilli(1000)
	future = time.Now().Add(24 * time.Hour)
)

// delay sends delayed records to partition 3 of the stream orders.
func (e *env) delay(records ...delayedRecord) Appended {
	e.t.Helper()
	return e.Append(e.ctx(), []Append{delayed(3, records...)})[0]
}

func (e *env) tryMove() Moved { return e.Move(e.ctx(), []StreamPartition{{"orders", 3}})[0] }

func (e *env) move() Moved {
	e.t.Helper()
	m := e.tryMove()
	e.must(m.Err)
	return m
}

// size sets the MaxLen of the stream orders.
func (e *env) size(n int64) {
	e.t.Helper()
	try(e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 4, MaxLen: n, Processors: []string{"p"}})).must(e.t)
}

// waiting returns the field n of the delayed events of partition 3.
func (e *env) waiting() []string {
	e.t.Helper()
	l := try(e.Delayed(e.ctx(), "orders", 3, 0, 100_000)).must(e.t)
	var out []string
	for _, d := range l {
		out = append(out, fmt.Sprint(d.Values["n"]))
	}
	return out
}

// ids returns the IDs of delayed events without their partition.
func (e *env) ids(sent Appended) (out []string) {
	for _, one := range sent.IDs {
		_, id, ok := ParseDelayedID(one)
		if !ok {
			e.t.Errorf("%q is not the ID of a delayed event", one)
		}
		out = append(out, id)
	}
	return out
}

// waitingIDs returns the IDs of the delayed events of partition 3, by due time.
func (e *env) waitingIDs() []string {
	return e.raw.ZRange(e.ctx(), e.dueKeys("orders", 3).Due, 0, -1).Val()
}

func numbers(first, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(first+i))
	}
	return out
}

func TestDelayAndMove(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		log := e.keys.Partition("orders", 3)
		sent := e.delay(later(0, 3, future)...)
		e.must(sent.Err)
		ids := e.ids(sent)
		if len(ids) != 3 || len(ids[0]) != 16 || ids[0] >= ids[1] || ids[1] >= ids[2] {
			t.Errorf("IDs %v: want three of 16 digits, rising", sent.IDs)
		}
		equal(t, "wait", e.waiting(), numbers(0, 3))
		if m := e.move(); m.Events != 0 || m.Wait < 23*time.Hour || m.Wait > 24*time.Hour {
			t.Errorf("moved early: %+v", m)
		}
		equal(t, "nothing is in", e.contents(log), []string(nil))

		// The first two become due, the second one earlier.
		for n, at := range []int64{2000, 1000} {
			ok, err := e.Reschedule(e.ctx(), "orders", 3, ids[n], time.UnixMilli(at))
			if !ok || err != nil {
				t.Fatalf("reschedule: %v, %v", ok, err)
			}
		}
		if m := e.move(); m.Events != 2 || m.Wait < 23*time.Hour || m.Full != nil {
			t.Errorf("moved: %+v", m)
		}
		equal(t, "in", e.contents(log), []string{"1", "0"})
		first := e.raw.XRange(e.ctx(), log, "-", "+").Val()[0].Values
		equal(t, "was due", first[DueField], "1000")
		equal(t, "data", first["data"], "x")
		if ms := fmt.Sprint(first[SentField]); len(ms) != 13 {
			t.Errorf("sent at %q", ms)
		}
		equal(t, "waits", e.waiting(), []string{"2"})
		if m := e.move(); m.Events != 0 {
			t.Errorf("moved again: %+v", m)
		}
	})
}

// Field values of any bytes survive.
func TestDelayedFields(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		wide := []string{}
		for i := range delayedFields {
			wide = append(wide, fmt.Sprint("f", i))
		}
		all := ""
		for b := range 256 {
			all += string([]byte{byte(b)})
		}
		rows := [][]string{{"data", all + ":5:x" + all}, {"", ""}, {"1:", ":"}, wide, {"big", strings.Repeat("\xff", 1<<20)}}
		var out []delayedRecord
		for _, r := range rows {
			out = append(out, delayedRecord{Fields: r})
		}
		e.must(e.delay(out...).Err) // due at once
		e.must(e.delay(slices.Clone(out)...).Err)
		for i := range out {
			out[i].At = future
		}
		sent := e.delay(out...)
		e.must(sent.Err)
		for n, d := range try(e.Delayed(e.ctx(), "orders", 3, 0, 10)).must(t) {
			equal(t, "listed", d.Values[rows[n][0]] == rows[n][1], true)
			try(e.Fire(e.ctx(), "orders", 3, d.ID)).must(t)
		}
		for e.move().Wait == 0 { // one share at a time
		}
		got := e.raw.XRange(e.ctx(), e.keys.Partition("orders", 3), "-", "+").Val()
		equal(t, "entries", len(got), 3*len(rows))
		for n, entry := range got {
			row := rows[n%len(rows)]
			for i := 0; i < len(row); i += 2 {
				if entry.Values[row[i]] != row[i+1] {
					t.Errorf("entry %d, field %.20q: got %.20q, want %.20q", n, row[i], entry.Values[row[i]], row[i+1])
				}
			}
		}
		tooWide := e.delay(delayedRecord{Fields: []string{"n", "1"}, At: future}, delayedRecord{Fields: append(wide, "a", "b"), At: future})
		if !errors.Is(tooWide.Err, ErrTooWide) || len(tooWide.IDs) != 1 || tooWide.Unknown {
			t.Errorf("too wide: %+v", tooWide)
		}
	})
}

// A record that is due is appended at once, unless earlier ones wait or there is no room.
func TestDelayOfWhatIsDue(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.size(4)
		log := e.keys.Partition("orders", 3)
		sent := e.delay(append(later(0, 2, past), later(2, 1, future)...)...)
		e.must(sent.Err)
		equal(t, "appended", e.contents(log), numbers(0, 2))
		entry := e.raw.XRange(e.ctx(), log, "-", "+").Val()[1]
		equal(t, "its ID", sent.IDs[1], entry.ID)
		equal(t, "due", entry.Values[DueField], "1000")
		equal(t, "delayed", e.ids(Appended{IDs: sent.IDs[2:]}), e.waitingIDs())

		// Only two more fit. The rest wait, and later sends wait behind them even once there is
		// room.
		e.must(e.delay(later(3, 4, past)...).Err)
		equal(t, "up to the size", e.contents(log), []string{"0", "1", "3", "4"})
		if m := e.move(); m.Events != 0 || m.Full == nil {
			t.Errorf("full: moved %+v", m)
		}
		e.must(e.raw.XTrimMaxLen(e.ctx(), log, 0).Err())
		e.must(e.delay(later(7, 3, past)...).Err)
		e.must(e.delay(later(10, 1, past.Add(-time.Millisecond))...).Err) // due before all of them
		equal(t, "the one that was due first", e.contents(log), []string{"10"})
		equal(t, "wait", e.waiting(), []string{"5", "6", "7", "8", "9", "2"})
		if m := e.move(); m.Events != 3 || m.Full == nil || !errors.Is(m.Full, ErrStreamFull) {
			t.Errorf("moved %+v", m)
		}
		e.must(e.raw.XTrimMaxLen(e.ctx(), log, 3).Err())
		if m := e.move(); m.Events != 1 || m.Full == nil {
			t.Errorf("moved %+v", m)
		}
		e.must(e.raw.XTrimMaxLen(e.ctx(), log, 3).Err())
		if m := e.move(); m.Events != 1 || m.Full != nil {
			t.Errorf("the last: moved %+v", m)
		}
		equal(t, "in order", e.contents(log), numbers(6, 4))
	})
}

// Thousands of events with the same due time keep the order of their sends.
func TestDelayedOrder(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		n := 10_000
		if !e.real { // slow with the race detector
			n = 2_000
		}
		sent := e.delay(later(0, n/2, future)...)
		e.must(sent.Err)
		for i := n / 2; i < n; i += 100 { // in several sends
			e.must(e.delay(later(i, 100, future)...).Err)
		}
		equal(t, "wait", e.waiting(), numbers(0, n))
		// The same events, due in the past.
		ctx, keys, ids := e.ctx(), e.dueKeys("orders", 3), e.waitingIDs()
		pipe := e.raw.Pipeline()
		for i := range n {
			pipe.Do(ctx, "ZADD", keys.Due, 5000, ids[i])
		}
		try(pipe.Exec(ctx)).must(t)
		moved, rounds := int64(0), 0
		for m := (Moved{Events: 1}); m.Events > 0; rounds++ {
			m = e.move()
			moved += m.Events
		}
		equal(t, "moved", moved, int64(n))
		equal(t, "rounds", rounds, n/(eventsPerTrip/movesPerTrip)+1)
		equal(t, "order", e.contents(e.keys.Partition("orders", 3)), numbers(0, n))
		equal(t, "what stays", e.raw.Exists(ctx, keys.Due, keys.Data, keys.Versions).Val(), 0)
	})
}

func TestCancelAndFire(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		sent := e.delay(later(0, 3, future)...)
		e.must(sent.Err)
		ids := e.ids(sent)
		cancel := func(id string) string {
			ok, err := e.Cancel(e.ctx(), "orders", 3, id)
			return fmt.Sprint(ok, err)
		}
		equal(t, "before it is due", cancel(ids[1]), "true <nil>")
		equal(t, "again", cancel(ids[1]), "false <nil>")
		equal(t, "never there", cancel("0000000000000099"), "false <nil>")
		ok, err := e.Fire(e.ctx(), "orders", 3, ids[2])
		equal(t, "fired", fmt.Sprint(ok, err), "true <nil>")
		equal(t, "moved", e.move().Events, 1)
		equal(t, "after it was moved", cancel(ids[2]), "false <nil>")
		ok, err = e.Fire(e.ctx(), "orders", 3, ids[2])
		equal(t, "fired again", fmt.Sprint(ok, err), "false <nil>")
		ok, err = e.Reschedule(e.ctx(), "orders", 3, ids[2], future)
		equal(t, "rescheduled", fmt.Sprint(ok, err), "false <nil>")
		equal(t, "in", e.contents(e.keys.Partition("orders", 3)), []string{"2"})
		equal(t, "waits", e.waiting(), []string{"0"})
		counts := try(e.CountDelayed(e.ctx(), "orders", 5)).must(t)
		equal(t, "counted", counts, []int64{0, 0, 0, 1, 0})
	})
}

// A key of the wrong type has an error of its own, and nothing is changed.
func TestDelayWithWrongTypes(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		keys := e.delayKeys("orders", 3)
		e.must(e.delay(later(0, 1, future)...).Err)
		for _, key := range keys {
			e.raw.Rename(e.ctx(), key, "saved")
			e.must(e.raw.LPush(e.ctx(), key, "x").Err())
			sent := e.delay(later(1, 1, past)...)
			if !errors.Is(sent.Err, redisconn.ErrWrongType) || sent.Unknown {
				t.Errorf("%s: delay: %+v", key, sent)
			}
			moved := e.tryMove()
			if !errors.Is(moved.Err, redisconn.ErrWrongType) || !strings.Contains(moved.Err.Error(), "stream orders partition 3") {
				t.Errorf("%s: move: %+v", key, moved)
			}
			e.raw.Del(e.ctx(), key)
			e.raw.Rename(e.ctx(), "saved", key)
			e.raw.Del(e.ctx(), "saved")
		}
		equal(t, "waits", e.waiting(), []string{"0"})
	})
}

func TestDelayedIDs(t *testing.T) {
	for _, tt := range []struct {
		text      string
		partition int
		id        string
		ok        bool
	}{
		{"3/0000000000000042", 3, "0000000000000042", true},
		{"65535/9999999999999999", 65535, "9999999999999999", true},
		{"0000000000000042", 0, "", false},
		{"-1/0000000000000042", 0, "", false},
		{"x/0000000000000042", 0, "", false},
		{"3/42", 0, "", false},
		{"3/1700000000000-0", 0, "", false},
	} {
		p, id, ok := ParseDelayedID(tt.text)
		if ok != tt.ok || ok && (p != tt.partition || id != tt.id || DelayedID(p, id) != tt.text) {
			t.Errorf("%s: got %d, %q, %v", tt.text, p, id, ok)
		}
	}
}

// When a connection breaks, go-redis also fails commands that were already answered.
func TestADelayThatWasAnsweredIsKnown(t *testing.T) {
	reply := redis.NewCmd(t.Context())
	reply.SetVal([]any{[]any{"0000000000000007", "1-0"}, "", int64(1)})
	reply.SetErr(io.EOF)
	as := delayed(3, later(0, 2, future)...)
	p := &part{Append: &as, out: &Appended{}, rest: as.Records}
	a := delayedAnswer(reply, 2)
	if err := p.take(a); !a.earliest || err != nil {
		t.Errorf("got %+v, %v", a, err)
	}
	equal(t, "IDs", p.out.IDs, []string{"3/0000000000000007", "1-0"})
}
