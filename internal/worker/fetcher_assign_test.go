package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/prefetch"
)

func TestPartitionsAreSpreadWhileMuchComes(t *testing.T) {
	tests := []struct {
		name string
		come func(*width)
		want bool
	}{
		{"nothing", func(*width) {}, false},
		{"little", func(w *width) {
			for range 10 {
				w.brought(wideRate/40, false)
				time.Sleep(100 * time.Millisecond)
			}
		}, false},
		{"much at once after a long time", func(w *width) { w.brought(10*wideRate, false) }, false},
		{"much for a while", func(w *width) {
			for range 3 {
				w.brought(wideRate/10, false)
				time.Sleep(rateOver)
			}
		}, true},
		{"all that was asked for", func(w *width) { w.brought(1, true) }, true},
		{"that, long ago", func(w *width) {
			w.brought(1, true)
			time.Sleep(wideFor)
		}, false},
		{"that, and a read has failed", func(w *width) {
			w.brought(1, true)
			w.failed()
		}, false},
		{"that, soon after a read has failed", func(w *width) {
			w.failed()
			time.Sleep(wideFor - time.Second)
			w.brought(1, true)
		}, false},
		{"that, long after a read has failed", func(w *width) {
			w.failed()
			time.Sleep(wideFor)
			w.brought(1, true)
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w width
				w.brought(0, false)
				time.Sleep(time.Hour)
				w.brought(0, false)
				tt.come(&w)
				want(t, "wide", w.wide(), tt.want)
			})
		})
	}
}

// wideRig runs a worker of 32 partitions over 4 readers, of which two are homes, and passes it to fn once it owns them.
func wideRig(t *testing.T, byPosition bool, fn func(r *wideRun)) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		r := &wideRun{t: t, got: map[int][]string{}}
		rdb, client := open(t, srv)
		r.rdb = rdb
		p := &Processor{
			Stream: "s", Name: "p", Partitions: 32, Lease: 10 * time.Second, Grace: time.Second,
			Prefetch: 256, PrefetchBytes: 1 << 20, ReadConns: 4, ByPosition: byPosition,
		}
		p.Consume = r.consume
		r.w = New(&Config{
			App: "app", Worker: "w", Client: client, Logger: quiet, TimeZone: time.UTC, LeaderPoll: time.Second,
			Ensure: func(context.Context, Step) error { return nil }, Processors: []*Processor{p},
		})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- r.w.Run(ctx) }()
		time.Sleep(3 * time.Second)
		fn(r)
		cancel()
		if err := <-result; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

type wideRun struct {
	t   *testing.T
	w   *Worker
	rdb *redis.Client

	mu  sync.Mutex
	got map[int][]string // by partition
}

func (r *wideRun) consume(_ context.Context, src Input) error {
	for {
		es, err := src.Take(1, 0)
		if err != nil {
			return nil
		}
		r.mu.Lock()
		r.got[src.Partition] = append(r.got[src.Partition], fmt.Sprint(es[0].Values["n"]))
		r.mu.Unlock()
		src.Ack([]string{es[0].ID})
	}
}

// add appends entries to each partition, one after another.
func (r *wideRun) add(from, to int, pause time.Duration) {
	r.t.Helper()
	for n := from; n <= to; n++ {
		for i := range 32 {
			if err := r.rdb.XAdd(r.t.Context(), &redis.XAddArgs{Stream: fmt.Sprint("__strm:app.s.", i), Values: []any{"n", n}}).Err(); err != nil {
				r.t.Fatal(err)
			}
		}
		time.Sleep(pause)
	}
}

// soon has 32 partitions get more than wideRate.
const soon = 20 * time.Millisecond

// wants checks that each partition had all entries up to one, in order, and by how many readers they are read.
func (r *wideRun) wants(what string, upTo, readers int) {
	r.t.Helper()
	var all []string
	for n := range upTo {
		all = append(all, fmt.Sprint(n+1))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range 32 {
		if got := r.got[i]; !slices.Equal(got, all) {
			r.t.Errorf("%s: partition %d has processed %q, want 1 to %d", what, i, strings.Join(got, " "), upTo)
		}
	}
	in := 0
	for _, one := range r.w.executors[0].member().fetch.readers {
		one.mu.Lock()
		if len(one.partitions) > 0 {
			in++
		}
		one.mu.Unlock()
	}
	want(r.t, what+": readers", in, readers)
}

func TestReadersTakePartitionsOver(t *testing.T) {
	for _, byPosition := range []bool{false, true} {
		t.Run(fmt.Sprint("by position: ", byPosition), func(t *testing.T) {
			wideRig(t, byPosition, func(r *wideRun) {
				r.wants("at first", 0, 2)
				r.add(1, 20, soon)
				time.Sleep(time.Second)
				r.wants("with much", 20, 4)
				r.add(21, 40, time.Second)
				r.wants("with little", 40, 2)
				r.add(41, 60, soon)
				time.Sleep(time.Second)
				r.wants("with much again", 60, 4)
			})
		})
	}
}

// The next reader of a partition has to look whether its server has what was read.
func TestWhatIsHandedOverIsLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		_, client := open(t, srv)
		m := &member{executor: &executor{w: &Worker{client: client}, p: &Processor{Partitions: 32, ReadConns: 4, PrefetchBytes: 1 << 20}, log: quiet, count: &Counters{}}}
		f := newFetcher(m) // its readers do not run
		p := &partition{buffer: prefetch.New(prefetch.Config{Capacity: 8, MaxBytes: 1 << 20}), connections: 1}
		p.keys.Number, p.keys.Log = 1, "log"
		f.add(p)
		home := p.reader.Load()
		home.more[p] = true
		home.rearrange()
		want(t, "its reader at first", home, f.readers[0])
		want(t, "its connections at first", p.connections, 1)
		f.width.brought(0, true)
		home.rearrange()
		want(t, "its reader", p.reader.Load(), f.readers[1])
		want(t, "the next one knows it", f.readers[1].byLog["log"], p)
		want(t, "its connections", p.connections, anotherReader)
		want(t, "what the reader before knows", len(home.partitions)+len(home.byLog)+len(home.more), 0)
		want(t, "nothing reads it", f.remove(p), true)
		want(t, "what the next one knows then", len(f.readers[1].partitions)+len(f.readers[1].byLog), 0)
	})
}
