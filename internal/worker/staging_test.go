package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
)

// atomicPartition is a partition of an Atomic processor, with three entries, 1-0 to 3-0, that the consumer has.
func atomicPartition(t *testing.T) *partition {
	t.Helper()
	p := &partition{
		staging: &staging{rows: &rows.Partition{}, refusals: outage.New(slog.New(slog.DiscardHandler), "commit", nil)},
		buffer:  prefetch.New(prefetch.Config{Capacity: 100, MaxBytes: 1 << 20, Committed: "0-0", ByPosition: true}),
	}
	var entries []redisconn.Entry
	for i := range 3 {
		entries = append(entries, redisconn.Entry{ID: fmt.Sprint(i+1, "-0"), Values: map[string]any{"data": ""}})
	}
	p.buffer.Push(entries)
	if _, err := p.buffer.Await(3, 0, -1); err != nil {
		t.Fatal(err)
	}
	return p
}

// does does an event, which emits so many bytes, none with 0.
func (p *partition) does(id string, size int) {
	if size > 0 {
		p.staging.rows.Emit(store.Output{Stream: id, Fields: []string{"data", strings.Repeat("x", size)}})
	}
	p.staging.done(id, func() { p.buffer.Done([]string{id}) })
}

// commitIs checks what the next commit has: "" for none, else its position, and the events whose outputs it has.
func (p *partition) commitIs(t *testing.T, want string) *store.Changes {
	t.Helper()
	one, ok := p.nextCommit(false)
	got := ""
	if ok {
		got = fmt.Sprint(one.Number, " ", one.Committed)
		if one.Changes != nil {
			for _, o := range one.Changes.Outputs {
				got += " " + o.Stream
			}
			for _, id := range one.Changes.Settled {
				got += " settled " + id
			}
		}
	}
	if got != want {
		t.Errorf("the next commit is %q, want %q", got, want)
	}
	return one.Changes
}

// answer is what byPosition.confirm and acker.send do with the reply to a commit.
func (p *partition) answer(err error) {
	p.staging.answered(err)
	if err == nil {
		p.commits++
	}
	p.answered(err)
}

// An ack and the changes of its iteration are one for the acker.
func TestAcksComeWithTheirChanges(t *testing.T) {
	p := atomicPartition(t)
	s := p.staging
	s.rows.Emit(store.Output{Stream: "1-0"})
	s.done("1-0", func() {
		if s.mu.TryLock() {
			t.Error("a commit may be made between an ack and its changes")
			s.mu.Unlock()
		}
		if len(s.queue) != 1 {
			t.Errorf("%d commits wait at the ack, want 1", len(s.queue))
		}
		p.buffer.Done([]string{"1-0"})
	})
	p.commitIs(t, "1 1-0 1-0")
}

// Iterations share a commit up to what the target of one of them allows.
func TestACommitOfManyIterationsFitsItsTarget(t *testing.T) {
	p := atomicPartition(t)
	for _, id := range []string{"1-0", "2-0", "3-0"} {
		p.staging.rows.Emit(store.Output{Stream: id, Together: 2})
		p.staging.done(id, func() { p.buffer.Done([]string{id}) })
	}
	p.commitIs(t, "1 2-0 1-0 2-0")
	p.answer(nil)
	p.commitIs(t, "2 3-0 3-0")
}

// A commit that may be stored is sent again as it is, and others wait behind it.
func TestACommitIsRepeatedUnchanged(t *testing.T) {
	p := atomicPartition(t)
	p.commitIs(t, "")
	p.does("1-0", 1)
	first := p.commitIs(t, "1 1-0 1-0")
	p.does("2-0", 1)
	p.commitIs(t, "") // the first is under way
	p.answer(errors.New("no reply"))
	if again := p.commitIs(t, "1 1-0 1-0"); again != first {
		t.Error("it has other changes")
	}
	p.does("3-0", 1)
	p.answer(errors.New("no reply"))
	p.commitIs(t, "1 1-0 1-0")
	p.answer(nil)
	p.commitIs(t, "2 3-0 2-0 3-0") // both iterations in one
	p.answer(nil)
	p.commitIs(t, "")
	if p.staging.bytes != 0 || p.staging.waits() {
		t.Errorf("%d bytes are left of nothing", p.staging.bytes)
	}
}

// Changes go with the position behind their events: neither later, nor earlier, though events are done out of order.
func TestChangesGoWithTheirPosition(t *testing.T) {
	p := atomicPartition(t)
	p.does("2-0", 1)
	p.commitIs(t, "") // 1-0 is not done
	p.does("1-0", 0)
	p.commitIs(t, "1 2-0 2-0")
	p.answer(nil)

	p = atomicPartition(t)
	p.does("1-0", bytesPerCommit)
	p.does("2-0", bytesPerCommit)
	p.does("3-0", 0)
	p.commitIs(t, "1 1-0 1-0") // more does not fit
	p.answer(nil)
	p.commitIs(t, "2 3-0 2-0")
	p.answer(nil)

	p = atomicPartition(t)
	p.does("1-0", 0)
	p.does("3-0", 1)
	p.commitIs(t, "1 1-0") // 2-0 is not done
	p.answer(nil)
	p.does("2-0", 0)
	p.commitIs(t, "2 3-0 3-0")
}

// A parked event is settled by a commit of its own, behind those of what was done before, also where no event is acked.
func TestAParkedEventIsCommittedBehindWhatWasDoneBefore(t *testing.T) {
	p := atomicPartition(t)
	p.does("1-0", 1)
	p.staging.rows.Emit(store.Output{Stream: "parked"})
	p.staging.parked("0-7", nil)
	p.does("2-0", 1)
	p.commitIs(t, "1 1-0 1-0")
	p.answer(nil)
	p.commitIs(t, "2 1-0 parked settled 0-7")
	p.answer(nil)
	p.commitIs(t, "3 2-0 2-0")
	p.answer(nil)
}

// Rows that end are committed between the entries before and behind them, with or without those.
func TestRowsThatEndAreCommittedInTheirTurn(t *testing.T) {
	p := atomicPartition(t)
	ends := func(what string) {
		p.staging.rows.Emit(store.Output{Stream: what})
		p.staging.done("", func() {})
	}
	ends("a")
	p.commitIs(t, "1 0-0 a")
	p.answer(nil)
	p.does("1-0", 1)
	ends("b")
	ends("c")
	p.does("2-0", 1)
	p.commitIs(t, "2 2-0 1-0 b c 2-0")
	ends("d") // while it is under way
	p.does("3-0", 0)
	p.commitIs(t, "")
	p.answer(nil)
	p.commitIs(t, "3 3-0 d")
	p.answer(nil)
	if p.commitIs(t, ""); p.staging.waits() {
		t.Error("something waits")
	}

	p = atomicPartition(t)
	p.does("1-0", bytesPerCommit)
	ends("e")
	p.does("2-0", bytesPerCommit)
	p.commitIs(t, "1 1-0 1-0")
	p.answer(nil)
	p.commitIs(t, "2 1-0 e") // 2-0 does not fit
	p.answer(nil)
	p.commitIs(t, "3 2-0 2-0")

	p = atomicPartition(t)
	p.does("2-0", 1)
	ends("f")
	p.commitIs(t, "") // 1-0 is not done
	p.does("1-0", 0)
	p.commitIs(t, "1 2-0 2-0 f")
}

// Rows are committed, and outputs counted, once the reply says so.
func TestOnlyAReplyConfirmsRows(t *testing.T) {
	p := atomicPartition(t)
	source := &noRows{}
	table := p.staging.rows.Add(rows.Config{
		Name: "t", Source: source, Budget: &rows.Budget{}, // nothing that is committed stays in memory
		Encode: func(v any) (string, error) { return v.(string), nil }, Decode: func(s string) (any, error) { return s, nil },
	})
	set := func(key, id string) {
		t.Helper()
		p.staging.rows.Mark()
		p.staging.rows.Begin(id)
		table.Set(key, "x", 0)
		if err := p.staging.rows.Seal(); err != nil {
			t.Fatal(err)
		}
		p.does(id, 0)
	}
	set("a", "1-0")
	p.commitIs(t, "1 1-0")
	p.answer(errors.New("no reply"))
	set(strings.Repeat("b", 1000), "2-0") // looks for memory
	if _, ok := table.Get("a"); !ok || source.asked {
		t.Error("a row that may not be committed was read from Redis")
	}
}

type noRows struct{ asked bool }

func (s *noRows) Rows(_ store.Table, keys []string) ([]store.Row, error) {
	s.asked = true
	return make([]store.Row, len(keys)), nil
}

func (s *noRows) Ends(store.Table, int64) ([]store.End, error) { return nil, nil }

func (s *noRows) Page(store.Table, store.Cursor) ([]store.KeyedRow, store.Cursor, error) {
	s.asked = true
	return nil, store.Cursor{}, nil
}

// allOnes is a Source in which each row is 1.
type allOnes struct{ rows.Source }

func (allOnes) Rows(_ store.Table, keys []string) ([]store.Row, error) {
	found := make([]store.Row, len(keys))
	for i := range found {
		found[i] = store.Row{Value: "1", There: true}
	}
	return found, nil
}

// What was seen in iterations that change nothing is forgotten with them: else a function that only reads takes longer each time.
func TestIterationsThatOnlyReadLeaveNothing(t *testing.T) {
	p := atomicPartition(t)
	table := p.staging.rows.Add(rows.Config{
		Name: "t", Source: allOnes{}, Budget: &rows.Budget{Most: 1 << 20},
		Encode: func(v any) (string, error) { return *v.(*string), nil }, Decode: func(s string) (any, error) { return &s, nil },
	})
	for _, id := range []string{"1-0", "2-0"} {
		p.staging.rows.Mark()
		p.staging.rows.Begin(id)
		value, _ := table.Get("a")
		*value.(*string) = "changed in place"
		seen := 0
		p.staging.rows.Altered(func(string, string) { seen++ })
		p.staging.rows.End()
		p.does(id, 0)
		p.staging.rows.Altered(func(string, string) { seen++ })
		if seen != 1 {
			t.Errorf("event %s: seen %d times", id, seen)
		}
	}
}

// In a cluster a partition whose slot has moved may be marked at the ackers of two nodes. The second one looks while the first is
// between the reply to a commit and AcksConfirmed.
func TestTwoAckersDoNotNumberACommitTwice(t *testing.T) {
	p := atomicPartition(t)
	p.does("1-0", 1)
	p.commitIs(t, "1 1-0 1-0")
	p.staging.parked("0-7", nil)
	p.staging.answered(nil)
	p.commitIs(t, "")
	p.commits++
	p.commitIs(t, "")
	p.buffer.AcksConfirmed()
	p.staging.free()
	p.commitIs(t, "2 1-0 settled 0-7")
}

// A commit that was given up while there was no room is not waited for once there is.
func TestACommitThatWasGivenUpIsStuck(t *testing.T) {
	p := atomicPartition(t)
	p.does("1-0", 1)
	p.commitIs(t, "1 1-0 1-0")
	p.answer(errHeld)
	p.staging.held = true
	given := p.staging.close()
	p.staging.held = false
	if !given || !p.staging.stuck() {
		t.Errorf("given up %v, stuck %v", given, p.staging.stuck())
	}
	p.commitIs(t, "")
}
