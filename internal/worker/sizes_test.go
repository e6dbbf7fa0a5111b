package worker

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestSizesOfLately(t *testing.T) {
	const s = int64(time.Second)
	var of sizes
	for _, step := range []struct{ at, seen, want int64 }{
		{0, 0, unknownSize},
		{1, 100, 100},
		{2, 5000, 5000},
		{3, 200, 5000},
		{29, 0, 5000},
		{31, 300, 5000}, // the period before this one
		{59, 0, 5000},
		{61, 0, 2500}, // half of it is left
		{62, 10, 2500},
		{92, 10, 1250},
		{123, 10, 625},
		{154, 10, 312},
		{190, 0, 156},
		{230, 0, unknownSize}, // none was seen for so long
		{300, 7, 19},
		{900, 0, unknownSize},
		{1000, 9 << 20, 9 << 20},
		{1065, 0, 9 << 19},
	} {
		of.seen(step.seen, step.at*s)
		if got := of.largest(step.at * s); got != step.want {
			t.Errorf("after %d s: %d, want %d", step.at, got, step.want)
		}
	}
}

func TestReadsAreBoundedInBytes(t *testing.T) {
	of := sizes{prefetch: 8 << 20}
	for _, tt := range []struct {
		size              int64
		asked, n          int
		count, partitions int
	}{
		{100, 256, 1, 256, 1},
		{100, 256, 2, 256, 2},
		{100, 256, 16, 32, 16}, // 512 in all, for the next ones may have 256 KiB
		{100, 256, 1024, 10, 1024},
		{100, 1, 1024, 1, 1024},
		{10 << 10, 256, 16, 6, 16},
		{200 << 10, 40, 16, 1, 5},
		{200 << 10, 40, 1, 5, 1},
		{200 << 10, 256, 1, 5, 1},
		{1 << 20, 8, 16, 1, 1},
		{5 << 20, 1, 16, 1, 1},
		{1 << 30, 1, 16, 1, 1},
		{1, 256, 0, 256, 1},
	} {
		count, partitions := of.perRead(tt.size, tt.asked, tt.n)
		if count != tt.count || partitions != tt.partitions {
			t.Errorf("%d of %d partitions, %d bytes each: %d of %d, want %d of %d", tt.asked, tt.n, tt.size, count, partitions, tt.count, tt.partitions)
		}
	}
}

// reads runs a worker over partitions of a server until it holds so many entries. It returns the
// COUNT and the number of partitions of each read; COUNT is negative for pending entries.
func reads(t *testing.T, partitions, want int, prefetch int64, before func(*redis.Client, *faultproxy.Proxy), then func(raw *redis.Client, fetched func(n int))) (asked [][2]int, bytes int64) {
	t.Helper()
	server := redistest.Start(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "100000")
	raw := server.Client(t)
	proxy := faultproxy.Start(t, server.Addr())
	client, err := store.Open(redisconn.Options{URL: "redis://" + proxy.Addr(), Keys: keys.Keys{App: "app", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	before(raw, proxy)
	p := &Processor{
		Stream: "s", Name: "p", Partitions: partitions, Lease: 10 * time.Second, Grace: time.Second,
		Prefetch: 4096, PrefetchBytes: prefetch, ReadConns: 1,
	}
	p.Consume = func(_ context.Context, own Input) error {
		<-own.Ending // what is read stays in memory
		return nil
	}
	w := New(&Config{
		App: "app", Worker: "w", Client: client, Logger: quiet, TimeZone: time.UTC, LeaderPoll: time.Second,
		Ensure: func(context.Context, Step) error { return nil }, Processors: []*Processor{p},
	})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	fetched := func(n int) {
		t.Helper()
		got := 0
		redistest.Eventually(t, fmt.Sprintf("the worker holds %d entries", n), func() bool {
			got, _ = held(w)
			return got >= n
		}, func() string { return fmt.Sprint("it holds ", got) })
	}
	then(raw, fetched)
	fetched(want)
	_, bytes = held(w)
	cancel()
	if err := <-result; err != nil {
		t.Errorf("Run: %v", err)
	}
	return readsIn(redistest.SlowLog(t, raw)), bytes
}

func readsIn(log []redis.SlowLog) (asked [][2]int) {
	for _, entry := range log {
		args := entry.Args // none where it was blocked
		word := func(name string) int {
			return slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, name) })
		}
		if word("XREADGROUP") != 0 {
			continue
		}
		count, _ := strconv.Atoi(args[word("COUNT")+1])
		if args[len(args)-1] != ">" {
			count = -count
		}
		asked = append(asked, [2]int{count, (len(args) - 1 - word("STREAMS")) / 2})
	}
	return asked
}

func held(w *Worker) (n int, bytes int64) {
	m := w.executors[0].member()
	if m == nil {
		return 0, 0
	}
	for _, p := range m.ownerships.owned() {
		waiting, size, _ := p.buffer.Held()
		n, bytes = n+waiting, bytes+size
	}
	return n, bytes
}

func fill(t *testing.T, raw *redis.Client, partition, n, size int) {
	t.Helper()
	err := raw.Eval(t.Context(), `for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'data', string.rep('x', ARGV[2])) end return 1`,
		[]string{fmt.Sprint("__strm:app.s.", partition)}, n, size).Err()
	if err != nil {
		t.Fatal(err)
	}
}

// A read asks for few large entries, of few partitions, from the first read on. A partition holds
// PrefetchBytes or one entry.
func TestWhatAWorkerHoldsAndAsksForIsBounded(t *testing.T) {
	const partitions, prefetch = 8, 1 << 20
	for _, size := range []int{300 << 10, 1 << 20, 3 << 20} {
		t.Run(fmt.Sprint(size>>10, " KiB"), func(t *testing.T) {
			t.Parallel()
			asked, bytes := reads(t, partitions, partitions, prefetch, func(raw *redis.Client, _ *faultproxy.Proxy) {
				for i := range partitions {
					fill(t, raw, i, 8, size)
				}
			}, func(*redis.Client, func(int)) {})
			for _, read := range asked {
				n := max(read[0], -read[0]) * read[1]
				if expected := min(size, unknownSize); n*expected > max(prefetchesPerRead*prefetch, expected) {
					t.Errorf("a read asked for %d entries of %d partitions", read[0], read[1])
				}
			}
			if most := int64(partitions * max(prefetch, size+100)); bytes > most {
				t.Errorf("%d bytes are held, want %d at most", bytes, most)
			}
		})
	}
}

func TestEntriesThatAreSuddenlyLargeAreReadInBoundedReplies(t *testing.T) {
	const partitions, prefetch, large = 8, 8 << 20, 200 << 10
	// Some are read sooner than others, and no more are read once the next ones may be large.
	asked, bytes := reads(t, partitions, partitions*1500, prefetch, func(raw *redis.Client, _ *faultproxy.Proxy) {
		for i := range partitions {
			fill(t, raw, i, 3000, 10)
			fill(t, raw, i, 60, large)
		}
	}, func(*redis.Client, func(int)) {})
	most := 0
	for _, read := range asked {
		most = max(most, max(read[0], -read[0])*read[1])
	}
	if most*large > suddenPrefetches*prefetch || most < 256 {
		t.Errorf("a read asked for %d entries, want at most %d, and not much less", most, suddenPrefetches*prefetch/large)
	}
	if most := int64(partitions * prefetch); bytes > most {
		t.Errorf("%d bytes are held, want %d at most", bytes, most)
	}
}

// A backlog of many partitions is read some partitions at a time and more of each, since each is
// acked by its own command. Partitions without a backlog are read meanwhile.
func TestABacklogOfManyPartitionsIsReadInLargePieces(t *testing.T) {
	const partitions, backlogs = 128, 96
	asked, _ := reads(t, partitions, backlogs*1000, 8<<20, func(raw *redis.Client, _ *faultproxy.Proxy) {
		for i := range backlogs {
			fill(t, raw, i, 2000, 10)
		}
	}, func(*redis.Client, func(int)) {})
	large, inARow := 0, -100 // until all partitions are there
	for _, read := range asked {
		count, n := max(read[0], -read[0]), read[1]
		if inARow++; n > 10 { // the log does not tell how many more
			inARow = 0 // also of those without a backlog
		} else if count*n > suddenPrefetches*(8<<20)/suddenSize {
			t.Errorf("a read asked for %d entries of %d partitions", count, n)
		}
		if inARow > readsOfMore {
			t.Fatalf("%d reads in a row left out those without a backlog: %v", inARow, asked)
		}
		if count >= leastOfMore {
			large += count * n
		}
	}
	if large < backlogs*700 {
		t.Errorf("%d entries were asked for in large pieces, want most of %d: %v", large, backlogs*1000, asked)
	}
}

// A lost reply may have been too large, so its entries are read again one by one.
func TestAReadThatIsTooLargeIsNotRepeated(t *testing.T) {
	var lost *faultproxy.Rule
	asked, _ := reads(t, 1, 600, 8<<20, func(raw *redis.Client, proxy *faultproxy.Proxy) {
		fill(t, raw, 0, 100, 10)
		lost = proxy.On("XREADGROUP", 1).Containing("256").Do(faultproxy.CloseAfter)
	}, func(raw *redis.Client, fetched func(int)) {
		fetched(100)
		fill(t, raw, 0, 500, 10)
	})
	lost.Wait(t)
	at := slices.IndexFunc(asked, func(read [2]int) bool { return read[0] < 0 })
	if at < 0 || asked[at][0] != -1 {
		t.Errorf("after the reply was lost: %v", asked)
	}
}
