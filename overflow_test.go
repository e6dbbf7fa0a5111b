// A full stream blocks its senders or drops the oldest, as it was declared; nothing is trimmed
// otherwise before every processor has acked it.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
)

// onBoth runs a test on a redis-server and on the embedded server.
func onBoth(t *testing.T, test func(t *testing.T, url string, rdb *redis.Client)) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { rdb.Close() })
		test(t, "redis://"+addr, rdb)
	})
}

// numbered are items that were seen, by partition, in order.
type numbered struct {
	mu sync.Mutex
	by map[int][]int
}

func (n *numbered) see(e *runnel.Event, i item) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = map[int][]int{}
	}
	n.by[e.Partition] = append(n.by[e.Partition], i.N)
}

func (n *numbered) of(partition int) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]int(nil), n.by[partition]...)
}

func (n *numbered) total() (total int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, all := range n.by {
		total += len(all)
	}
	return total
}

const fullParts, fullSize = 4, 60

// full is an app with a processor p over a stream of fullParts partitions; the
// item 403 goes to partition 3.
func full(t *testing.T, url string, overflow runnel.Overflow, fn func(context.Context, *runnel.Stream[item], *runnel.Event, item) error) (*runnel.App, *runnel.Stream[item]) {
	app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { app.Close() })
	s := runnel.NewStream(app, "items", func(i item) string { return strconv.Itoa(i.N % fullParts) }, &runnel.StreamOptions{
		Partitions: fullParts, MaxLen: fullSize, Overflow: overflow,
		Partitioner: &runnel.Partitioner{Name: "digit", Func: func(key string, _ int) int { return int(key[0] - '0') }},
	})
	if fn != nil {
		s.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error { return fn(ctx, s, e, i) }), nil)
	}
	return app, s
}

// running runs an app until stop is called, or the test ends.
func running(t *testing.T, app *runnel.App) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	redistest.Eventually(t, "the worker is ready", func() bool { return app.Ready() == nil })
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// ranOnce lets a worker register its processor and stop.
func ranOnce(t *testing.T, url string, overflow runnel.Overflow) {
	t.Helper()
	app, _ := full(t, url, overflow, func(context.Context, *runnel.Stream[item], *runnel.Event, item) error { return nil })
	running(t, app)()
}

// While no worker runs, exactly MaxLen records per partition are accepted; the rest
// is refused. All that were accepted are processed, and then there is room again.
func TestAStreamWithoutWorkersAcceptsItsMaxLen(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		ranOnce(t, url, runnel.Reject)
		_, s := full(t, url, runnel.Reject, nil)
		accepted := map[int][]int{}
		for n := 0; n < 10*fullSize*fullParts; n += 20 {
			var out []runnel.Outgoing[item]
			for i := n; i < n+20; i++ {
				out = append(out, runnel.Outgoing[item]{Record: item{i}})
			}
			sent, err := s.SendEvents(t.Context(), out...)
			for i, at := range sent {
				if at.ID != "" {
					accepted[at.Partition] = append(accepted[at.Partition], n+i)
				}
			}
			var se *runnel.SendError
			if !errors.As(err, &se) {
				continue
			}
			for _, f := range se.Failed {
				if !errors.Is(f.Err, runnel.ErrStreamFull) || f.Unknown || sent[f.Index].ID != "" {
					t.Fatalf("record %d: %+v", n+f.Index, f)
				}
			}
			for _, part := range []string{"stream items", fmt.Sprint("partition ", se.Failed[0].Partition), "60 of 60", "processor p is 60 behind"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		}
		for p := range fullParts {
			if n := rdb.XLen(t.Context(), fmt.Sprint("__strm:contract.items.", p)).Val(); n != fullSize || len(accepted[p]) != fullSize {
				t.Errorf("partition %d has %d entries, and %d were accepted", p, n, len(accepted[p]))
			}
		}
		var seen numbered
		app, _ := full(t, url, runnel.Reject, func(_ context.Context, _ *runnel.Stream[item], e *runnel.Event, i item) error {
			seen.see(e, i)
			return nil
		})
		running(t, app)
		redistest.Eventually(t, "all are processed", func() bool { return seen.total() >= fullParts*fullSize })
		for p, want := range accepted {
			if got := seen.of(p); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("partition %d: processed %v, accepted %v", p, got, want)
			}
		}
		redistest.Eventually(t, "there is room again", func() bool { return s.Send(t.Context(), items(0, 1, 2, 3)...) == nil })
	})
}

// What DropOldest removed unprocessed is what the processor counts as lost.
func TestDropOldestLosesWhatItCounts(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		ranOnce(t, url, runnel.DropOldest)
		_, s := full(t, url, runnel.DropOldest, nil)
		const total = 10 * fullSize * fullParts
		for n := 0; n < total; n += 20 {
			batch := make([]item, 20)
			for i := range batch {
				batch[i] = item{n + i}
			}
			if err := s.Send(t.Context(), batch...); err != nil {
				t.Fatal(err)
			}
		}
		var seen numbered
		app, _ := full(t, url, runnel.DropOldest, func(_ context.Context, _ *runnel.Stream[item], e *runnel.Event, i item) error {
			seen.see(e, i)
			return nil
		})
		running(t, app)
		redistest.Eventually(t, "the rest is processed", func() bool { return seen.total() >= fullParts*fullSize })
		for p := range fullParts {
			got := seen.of(p)
			if len(got) != fullSize || got[0] != total-fullSize*fullParts+p {
				t.Errorf("partition %d: processed %v", p, got)
			}
			lost, err := rdb.HGet(t.Context(), fmt.Sprint("__own:contract.items.p.", p), "lost").Int()
			if err != nil || lost+len(got) != total/fullParts {
				t.Errorf("partition %d: %d lost and %d processed of %d, %v", p, lost, len(got), total/fullParts, err)
			}
		}
	})
}

// A sender under Block waits for the processor; the processor itself does not.
func TestBlockWaitsForTheProcessorAndNotForItself(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, _ *redis.Client) {
		ranOnce(t, url, runnel.Block)
		_, s := full(t, url, runnel.Block, nil)
		first := make([]item, fullSize)
		for i := range first {
			first[i] = item{i * fullParts}
		}
		if err := s.Send(t.Context(), first...); err != nil {
			t.Fatal(err)
		}
		self, goOn := make(chan error, 1), make(chan struct{})
		var seen numbered
		app, _ := full(t, url, runnel.Block, func(ctx context.Context, s *runnel.Stream[item], e *runnel.Event, i item) error {
			if i.N == 0 {
				self <- s.Send(ctx, item{fullParts * 1000})
				<-goOn
			}
			seen.see(e, i)
			return nil
		})
		running(t, app)
		if err := <-self; !errors.Is(err, runnel.ErrSelfBlock) || !errors.Is(err, runnel.ErrStreamFull) {
			t.Errorf("the processor sends: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Send(t.Context(), item{fullSize * fullParts}) }()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Send(ended, item{0}); err == nil {
			t.Error("sent under a context that had ended")
		}
		select {
		case err := <-done:
			t.Errorf("did not wait: %v", err)
		default:
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
		redistest.Eventually(t, "all are processed", func() bool { return seen.total() == fullSize+1 })
	})
}

// A sender under Block goes on when there is room, however long that took.
func TestBlockWaitsAsLongAsItTakes(t *testing.T) {
	block := &runnel.StreamOptions{Partitions: 1, MaxLen: 4, Overflow: runnel.Block}
	simulate(t, nil, block, ignoreAll, nil, func(c *simulated) {
		ready(c.Cluster, "a")
		rules := admin.New(c.app)
		c.must(rules.Pause(c.Context(), admin.AppScope(), nil))
		c.must(rules.Wait(c.Context(), admin.AppScope()))
		c.send(1, 2, 3, 4)
		ctx, cancel := context.WithTimeout(c.Context(), 10*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- c.stream.Send(ctx, item{5}) }()
		c.Sleep(time.Minute)
		c.must(rules.Resume(c.Context(), admin.AppScope()))
		began := time.Now()
		if err := <-done; err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after there was room: %v", time.Since(began), err)
		}
	})
}

// What DropOldest removes while the processor has it is processed, and not lost; what it has not read is lost, also
// while it never comes to the end. (The embedded server does not tell how many were ever appended.)
func TestDropOldestLosesNothingThatIsProcessed(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	ranOnce(t, srv.URL(), runnel.DropOldest)
	var seen numbered
	open := make(chan struct{})
	app, s := full(t, srv.URL(), runnel.DropOldest, func(_ context.Context, _ *runnel.Stream[item], e *runnel.Event, i item) error {
		<-open
		seen.see(e, i)
		return nil
	})
	running(t, app)
	const total = 20 * fullSize // of one partition
	for n := 0; n < total; n += 20 {
		batch := make([]item, 20)
		for i := range batch {
			batch[i] = item{(n + i) * fullParts}
		}
		if err := s.Send(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	lost := func() int {
		n, _ := rdb.HGet(t.Context(), "__own:contract.items.p.0", "lost").Int()
		return n
	}
	redistest.Eventually(t, "what was dropped unread is counted", func() bool { return lost() >= total-4*fullSize })
	close(open)
	redistest.Eventually(t, "all that is not lost is processed", func() bool { return lost()+seen.total() == total })
	groups, err := rdb.XInfoGroups(t.Context(), "__strm:contract.items.0").Result()
	if err != nil || len(groups) != 1 || groups[0].Lag != 0 {
		t.Errorf("groups %+v, %v, want one without a lag", groups, err)
	}
}
