package conformance_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A watcher records and checks the delayed parcels that processors see.
type watcher struct {
	t  testing.TB
	mu sync.Mutex

	seen    map[string]map[int64]int     // how often, by processor and seq
	lastDue map[string]map[int]time.Time // by processor and partition
	lastSeq map[string]map[int]int64     // of that time
	total   int
}

func newWatcher(t testing.TB) *watcher {
	return &watcher{t: t, seen: map[string]map[int64]int{}, lastDue: map[string]map[int]time.Time{}, lastSeq: map[string]map[int]int64{}}
}

// process registers a processor that reports to the watcher, after work if that is not nil.
func (w *watcher) process(a *parcelApp, name string, o *runnel.ProcessorOptions, work func(context.Context, parcel) error) {
	a.parcels.Process(name, runnel.Each(func(ctx context.Context, e *runnel.Event, p parcel) error {
		if work != nil {
			if err := work(ctx, p); err != nil {
				return err
			}
		}
		w.see(name, e, p)
		return nil
	}), o)
}

// see checks that an event is not early, and comes in the order of due times, then of sends.
// Redelivered events are skipped.
func (w *watcher) see(name string, e *runnel.Event, p parcel) {
	now := time.Now() // the server's clock is this machine's
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[name] == nil {
		w.seen[name], w.lastDue[name], w.lastSeq[name] = map[int64]int{}, map[int]time.Time{}, map[int]int64{}
	}
	w.total++
	if w.seen[name][p.Seq]++; w.seen[name][p.Seq] > 1 && e.Redelivered {
		return
	}
	due, last := e.Due(), w.lastDue[name][e.Partition]
	if !due.IsZero() && e.Enqueued().After(due) {
		return // the machine is slow: it was sent too late for its place
	}
	switch {
	case due.IsZero() || now.Before(due) || e.Appended().Before(due):
		w.t.Errorf("%s: parcel %d was sent %v, due %v, appended %v, seen %v", name, p.Seq, e.Enqueued(), due, e.Appended(), now)
	case due.Before(last), due.Equal(last) && p.Seq <= w.lastSeq[name][e.Partition]:
		w.t.Errorf("%s: parcel %d, due %v, came after parcel %d, due %v", name, p.Seq, due, w.lastSeq[name][e.Partition], last)
	}
	w.lastDue[name][e.Partition], w.lastSeq[name][e.Partition] = due, p.Seq
}

func (w *watcher) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen[name])
}

// once checks that a processor saw exactly these parcels, each once.
func (w *watcher) once(name string, seqs ...int64) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seq := range seqs {
		if n := w.seen[name][seq]; n != 1 {
			w.t.Errorf("%s: parcel %d was seen %d times", name, seq, n)
		}
	}
	if len(w.seen[name]) != len(seqs) {
		w.t.Errorf("%s: %d parcels were seen, want %d", name, len(w.seen[name]), len(seqs))
	}
}

func seqs(n int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i + 1)
	}
	return out
}

// sendAt delays parcels of one key with these seqs.
func (a *parcelApp) sendAt(at time.Time, key string, seqs ...int64) []runnel.Sent {
	a.t.Helper()
	out := make([]parcel, len(seqs))
	for i, seq := range seqs {
		out[i] = parcel{Key: key, Seq: seq}
	}
	sent, err := a.parcels.SendAt(a.t.Context(), at, out...)
	if err != nil {
		a.t.Fatal(err)
	}
	return sent
}

// waiting returns the number of delayed parcels in a partition.
func waiting(t testing.TB, srv *redistest.Server, partition int) int64 {
	t.Helper()
	n, err := srv.Client(t).ZCard(t.Context(), fmt.Sprint("__due:post.parcels.", partition)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// patience is how long to wait for expected events; tests of mutants, which may wait for ever, set
// less.
func patience(t testing.TB) time.Duration {
	t.Helper()
	set := os.Getenv("RUNNEL_CONFORMANCE_PATIENCE")
	if set == "" {
		return 60 * time.Second
	}
	d, err := time.ParseDuration(set)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
