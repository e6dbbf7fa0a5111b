package prefetch

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
)

func testBuffer(capacity int, maxBytes int64) *Buffer {
	return New(Config{Capacity: capacity, Adaptive: true, MaxBytes: maxBytes, Committed: "0-0"})
}

func entries(first, last, size int) []redisconn.Entry {
	var out []redisconn.Entry
	for i := first; i <= last; i++ {
		id := fmt.Sprintf("%d-0", i)
		out = append(out, redisconn.Entry{ID: id, Values: map[string]any{"d": strings.Repeat("x", size-1-len(id))}})
	}
	return out
}

func idsOf(es []redisconn.Entry) []string {
	var out []string
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

func mustTake(t *testing.T, b *Buffer, n int, within time.Duration) []string {
	t.Helper()
	es, err := b.Await(n, within, -1)
	if err != nil {
		t.Fatal(err)
	}
	return idsOf(es)
}

func TestBytesBoundTheBufferButOneEntryAlwaysFits(t *testing.T) {
	b := testBuffer(100, 1000)
	b.Push(entries(1, 1, 5000))
	if got := b.Last(); got != "1-0" {
		t.Fatalf("an entry larger than the bound was not taken: position %s", got)
	}
	b.Push(entries(2, 3, 100))
	if got := b.Last(); got != "1-0" {
		t.Errorf("position %s, want 1-0: the buffer is full", got)
	}
	if n, behind := b.Room(100, 10, monotime.Now()); n != 0 || !behind {
		t.Errorf("room %d, behind %v, want 0, true", n, behind)
	}
	mustTake(t, b, 1, 0)
	if n, _ := b.Room(100, 10, monotime.Now()); n != 10 {
		t.Errorf("room %d of an empty buffer, want 10", n)
	}
}

func TestWhatDoesNotFitComesAgainFromTheHistory(t *testing.T) {
	b := testBuffer(100, 1000)
	b.Push(entries(1, 30, 100))
	if got := b.Last(); got != "10-0" {
		t.Fatalf("position %s, want 10-0", got)
	}
	if _, behind := b.Room(100, 10, monotime.Now()); !behind {
		t.Error("not behind, though 20 entries are pending that the buffer does not hold")
	}
}

func TestAFullBufferEndsATakeThatCouldNeverBeFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBuffer(100, 1000)
		b.Room(400, 10, monotime.Now())
		b.Push(entries(1, 2, 400))
		began := time.Now()
		if got := mustTake(t, b, 50, time.Hour); len(got) != 2 || time.Since(began) > 0 {
			t.Errorf("took %v after %v, want 2 at once", got, time.Since(began))
		}
	})
}

func TestTakeWaitsFromTheArrivalOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBuffer(100, 1<<20)
		go func() {
			time.Sleep(time.Hour) // an idle partition wakes no reader
			b.Push(entries(1, 2, 50))
			time.Sleep(3 * time.Second)
			b.Push(entries(3, 3, 50))
		}()
		began := time.Now()
		got := mustTake(t, b, 10, 5*time.Second)
		if want := []string{"1-0", "2-0", "3-0"}; !slices.Equal(got, want) {
			t.Errorf("took %v, want %v", got, want)
		}
		if d := time.Since(began); d != time.Hour+5*time.Second {
			t.Errorf("waited %v, want 1h0m5s", d)
		}
		// Entries that arrived while the handler was busy have waited already.
		b.Push(entries(4, 4, 50))
		time.Sleep(5 * time.Second)
		began = time.Now()
		mustTake(t, b, 10, 5*time.Second)
		if d := time.Since(began); d != 0 {
			t.Errorf("waited %v for an event that had waited its time", d)
		}
	})
}

func TestUnconfirmedAcksHoldTheLoopBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBuffer(4, 1<<20)
		for i := 1; i <= 4; i++ {
			b.Push(entries(i, i, 50))
			b.Done(mustTake(t, b, 1, 0))
		}
		b.Push(entries(5, 5, 50))
		taken := make(chan []string, 1)
		go func() {
			es, _ := b.Await(1, 0, -1)
			taken <- idsOf(es)
		}()
		synctest.Wait()
		select {
		case got := <-taken:
			t.Fatalf("took %v with 4 acks outstanding", got)
		default:
		}
		b.TakeAcks(1, "")
		b.AcksConfirmed()
		if got := <-taken; !slices.Equal(got, []string{"5-0"}) {
			t.Errorf("took %v", got)
		}
	})
}

func TestTheCommittedPositionStopsAtAGap(t *testing.T) {
	b := testBuffer(100, 1<<20)
	b.Push(entries(1, 4, 50))
	mustTake(t, b, 4, 0)
	b.Done([]string{"1-0"})
	b.TakeAcks(10, "")
	b.AcksConfirmed()
	b.Done([]string{"3-0", "4-0"}) // 2-0 failed
	b.TakeAcks(10, "")
	b.AcksConfirmed()
	if committed, read := b.Checkpoint(); committed != "1-0" || read != 1 {
		t.Errorf("committed %s, read %d, want 1-0, 1: an entry behind it is not done", committed, read)
	}
	if upTo, ok := b.PendingBelow("2-0"); ok {
		t.Errorf("2-0 failed and is pending, but would be acked as a stray up to %s", upTo)
	}
}

// By position an entry that is done is committed once all before it are, and what may be stored already is sent again
// as it was.
func TestAPositionPassesNothingThatIsNotDone(t *testing.T) {
	b := New(Config{Capacity: 100, MaxBytes: 1 << 20, Committed: "0-0", ByPosition: true})
	commit := func(want string, read int64) {
		t.Helper()
		ids, _ := b.TakeAcks(math.MaxInt, "")
		_, n := b.Checkpoint()
		if got := firstOf(ids[max(0, len(ids)-1):]); got != want || want != "" && n+int64(len(ids)) != read {
			t.Fatalf("commit of %q, %d read, want %q, %d", got, n, want, read)
		}
	}
	b.Push(entries(1, 9, 20))
	mustTake(t, b, 6, 0)
	if tell, _ := b.Done([]string{"2-0", "4-0"}); tell {
		t.Error("the acker is told of what lies behind a gap")
	}
	commit("", 0)
	if b.Moved([]string{"77-0"}) != 0 { // a parked event, which is in no partition
		t.Error("something was moved")
	}
	b.Moved([]string{"3-0"}) // parked: the position has yet to pass it
	commit("", 0)
	if tell, _ := b.Done([]string{"1-0"}); !tell {
		t.Error("the acker is not told of what it may commit")
	}
	if _, _, unacked := b.Held(); unacked != 4 {
		t.Errorf("%d wait for a commit, want 4", unacked)
	}
	commit("4-0", 4)
	b.Done([]string{"5-0"})
	commit("", 0) // one at a time
	b.AcksFailed()
	commit("4-0", 4) // unchanged, though 5-0 is done
	if n, more := b.AcksConfirmed(); n != 4 || !more {
		t.Errorf("%d were confirmed, more %v, want 4, true", n, more)
	}
	commit("5-0", 5)
	b.AcksConfirmed()
	if committed, read := b.Checkpoint(); committed != "5-0" || read != 5 {
		t.Errorf("committed %s, %d read, want 5-0, 5", committed, read)
	}
	b.Moved([]string{"6-0"})
	commit("6-0", 6)
}

// An event that was given back is not done, whatever lies behind it was moved out of the partition.
func TestAPositionPassesNothingThatWasGivenBack(t *testing.T) {
	for _, byPosition := range []bool{false, true} {
		b := New(Config{Capacity: 100, MaxBytes: 1 << 20, Committed: "0-0", ByPosition: byPosition})
		all := entries(1, 5, 20)
		b.Push(all)
		mustTake(t, b, 5, 0)
		b.Moved([]string{"3-0", "5-0"})
		b.Untake([]redisconn.Entry{all[1], all[3]})
		b.Done([]string{"1-0"})
		commit := func(when, want string) {
			t.Helper()
			b.TakeAcks(math.MaxInt, "")
			b.AcksConfirmed()
			if committed, _ := b.Checkpoint(); committed != want {
				t.Errorf("by position %v, %s: committed %s, want %s", byPosition, when, committed, want)
			}
		}
		commit("two given back", map[bool]string{true: "1-0", false: "0-0"}[byPosition])
		b.Done(mustTake(t, b, 1, 0))
		commit("one of them done", map[bool]string{true: "3-0", false: "0-0"}[byPosition])
		b.Close()
		commit("closed", map[bool]string{true: "3-0", false: "0-0"}[byPosition])
	}
}

// By position what does not fit is read again: Redis keeps nothing of it.
func TestByPositionWhatDoesNotFitIsReadAgain(t *testing.T) {
	b := New(Config{Capacity: 100, MaxBytes: 1000, Committed: "0-0", ByPosition: true})
	b.Push(entries(1, 3, 600))
	if n, behind := b.Room(100, 10, monotime.Now()); b.Last() != "1-0" || behind {
		t.Errorf("position %s, room %d, behind %v, want 1-0 and false", b.Last(), n, behind)
	}
}

func TestOnlyWhatWasDoneIsPendingBelow(t *testing.T) {
	b := testBuffer(100, 1<<20)
	b.Push(entries(1, 9, 50))
	b.Done(mustTake(t, b, 3, 0))
	b.TakeAcks(10, "")
	b.AcksConfirmed()
	mustTake(t, b, 2, 0)
	tests := []struct {
		lowest, upTo string
		ok           bool
	}{
		{"", "", false},
		{"2-0", "(4-0", true}, // done long ago
		{"4-0", "(4-0", false},
		{"9-0", "(4-0", false},
		{"10-0", "", false}, // on its way to us
	}
	for _, tt := range tests {
		if upTo, ok := b.PendingBelow(tt.lowest); ok != tt.ok || ok && upTo != tt.upTo {
			t.Errorf("PendingBelow(%q) = %q, %v, want %q, %v", tt.lowest, upTo, ok, tt.upTo, tt.ok)
		}
	}
	b.Close()
	if _, ok := b.PendingBelow("2-0"); ok {
		t.Error("a closed buffer, which has forgotten what it held, named some")
	}
}

func TestADeletedEntryIsReportedAndAckedInItsTurn(t *testing.T) {
	b := testBuffer(100, 1<<20)
	var lost []string
	b.cfg.Lost = func(id string) { lost = append(lost, id) }
	es := entries(1, 3, 50)
	es[1].Values = nil
	b.Push(es)
	got := mustTake(t, b, 3, 0)
	if !slices.Equal(got, []string{"1-0"}) || lost != nil {
		t.Fatalf("took %v, lost %v, want 1-0 and none yet", got, lost)
	}
	b.Done(got)
	if got := mustTake(t, b, 1, 0); !slices.Equal(got, []string{"3-0"}) || !slices.Equal(lost, []string{"2-0"}) {
		t.Fatalf("took %v, lost %v, want 3-0 and 2-0", got, lost)
	}
	if got, removed := b.TakeAcks(10, ""); !slices.Equal(got, []string{"1-0", "2-0"}) || !slices.Equal(removed, []string{"2-0"}) {
		t.Errorf("acks %v, removed %v, want 1-0 2-0 and 2-0", got, removed)
	}
}

func TestClosingEndsATake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBuffer(4, 1<<20)
		go func() {
			time.Sleep(time.Minute)
			b.Close()
		}()
		if _, err := b.Await(1, 0, -1); !errors.Is(err, io.EOF) {
			t.Errorf("err = %v, want EOF", err)
		}
	})
}

func TestAnEndedLeaseEndsATake(t *testing.T) {
	b := testBuffer(4, 1<<20)
	b.cfg.Live = func(int64) bool { return false }
	b.Push(entries(1, 1, 50))
	if es, err := b.Await(1, 0, -1); !errors.Is(err, io.EOF) {
		t.Errorf("took %v without a lease", idsOf(es))
	}
}

// Whatever the sizes, batch lengths and acks: every entry is taken once and in order, the bounds
// hold, and the committed position never passes an entry that is not done.
func TestBufferKeepsOrderAndBounds(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		capacity, maxBytes := 1+rng.IntN(20), int64(100+rng.IntN(2000))
		b := testBuffer(capacity, maxBytes)
		const total = 200
		var all []redisconn.Entry
		for i := 1; i <= total; i++ {
			all = append(all, entries(i, i, 20+rng.IntN(400))...)
		}
		server, done := 0, 0 // delivered by the server, done by the loop
		var flight int
		for done < total {
			switch rng.IntN(4) {
			case 0: // read
				n, behind := b.Room(int64(20+rng.IntN(400)), 1+rng.IntN(30), monotime.Now())
				from := server
				if behind { // from our own history
					from = 0
					for from < total && entryid.Compare(all[from].ID, b.Last()) <= 0 {
						from++
					}
				}
				to := min(from+n, total)
				if n > 0 {
					b.SetBehind(behind && to < server)
					b.Push(all[from:to])
					server = max(server, to)
				}
			case 1: // iterate
				if b.queue.len() == 0 || b.acks.outstanding() >= b.room.capacity {
					continue
				}
				got := mustTake(t, b, 1+rng.IntN(3), 0)
				for _, id := range got {
					if done++; id != fmt.Sprintf("%d-0", done) {
						t.Fatalf("seed %d: took %s, want %d-0", seed, id, done)
					}
				}
				b.Done(got)
			case 2: // ack
				ids, _ := b.TakeAcks(1+rng.IntN(5), "")
				flight = len(ids)
			case 3:
				if rng.IntN(3) == 0 {
					b.AcksFailed()
				} else if flight > 0 {
					b.AcksConfirmed()
				}
				flight = 0
			}
			if held := b.queue.len(); held > b.room.capacity || b.queue.bytes > maxBytes && held > 1 {
				t.Fatalf("seed %d: holds %d entries of %d bytes, bounds %d and %d", seed, held, b.queue.bytes, b.room.capacity, maxBytes)
			}
			if committed, _ := b.Checkpoint(); entryid.Compare(committed, fmt.Sprintf("%d-0", done)) > 0 {
				t.Fatalf("seed %d: committed %s, done %d", seed, committed, done)
			}
		}
	}
}
