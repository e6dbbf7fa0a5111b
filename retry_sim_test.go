// Attempts, parked events and quarantines survive kills and moves of their workers.

package runnel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	rediskeys "github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/runneltest"
)

// operator returns what the commands of an operator work with.
func operator(t *testing.T, c *runneltest.Cluster) *store.Client {
	t.Helper()
	client, err := store.Open(redisconn.Options{Redis: c.Redis(), Keys: rediskeys.Keys{App: "contract", Layout: rediskeys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// resume ends the quarantine of a partition of cluster.
func resume(t *testing.T, c *runneltest.Cluster, partition int, skip bool) {
	t.Helper()
	o := operator(t, c)
	defer o.Close()
	if _, ok, err := o.ReleaseQuarantine(c.Context(), o.Partition("items", "p", partition), skip); !ok || err != nil {
		t.Errorf("resume: %v, %v", ok, err)
	}
}

// deadLetters are those of a partition of cluster: "<N>#<attempts> <reason>".
func deadLetters(t *testing.T, c *runneltest.Cluster, partition int) []string {
	t.Helper()
	o := operator(t, c)
	defer o.Close()
	letters, err := o.DeadLetters(c.Context(), o.Partition("items", "p", partition), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range letters {
		out = append(out, fmt.Sprintf("%s#%d %s", d.Key, d.Attempts, d.Reason))
	}
	return out
}

// parkedIn counts what is parked in a partition of cluster.
func parkedIn(t *testing.T, c *runneltest.Cluster, partition int) int {
	t.Helper()
	o := operator(t, c)
	defer o.Close()
	states, _, err := o.Retries(c.Context(), o.Partition("items", "p", partition))
	if err != nil {
		t.Fatal(err)
	}
	return len(states)
}

// attempt is "<worker> <N>#<attempt>".
func attempt(ctx context.Context, e *runnel.Event, i item) string {
	return fmt.Sprintf("%s %d#%d", runneltest.WorkerOf(ctx).Name(), i.N, e.Attempt)
}

func wantNotes(t *testing.T, n *notes, want ...string) {
	t.Helper()
	if got := n.all(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAttemptsComeAtTheConfiguredGaps(t *testing.T) {
	var n notes
	var mu sync.Mutex
	var at []time.Duration
	var began time.Time
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		n.add(attempt(ctx, e, i))
		mu.Lock()
		at = append(at, time.Since(began))
		mu.Unlock()
		if i.N == 1 && e.Attempt < 3 {
			return errBad
		}
		return nil
	})
	cluster(t, 1, fn, retrying(5, runnel.OrderPartition), func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		mu.Lock()
		began = time.Now()
		mu.Unlock()
		send(1, 2)
		c.Sleep(time.Minute)
		wantNotes(t, &n, "a 1#1", "a 1#2", "a 1#3", "a 2#1")
		mu.Lock()
		defer mu.Unlock()
		for i, want := range []time.Duration{0, time.Second, 4 * time.Second, 4 * time.Second} {
			if !near(at[i], want) {
				t.Errorf("call %d came after %v, want %v", i, at[i], want)
			}
		}
		if p := c.Redis().XInfoGroups(c.Context(), "__strm:contract.items.0").Val(); p[0].Pending != 0 || parkedIn(t, c, 0) != 0 {
			t.Errorf("left: %+v, %d parked", p, parkedIn(t, c, 0))
		}
	})
}

// A parked event goes on where it stood, with its attempts, when its worker is
// killed and when the partition moves.
func TestParkedEventsSurviveKillsAndMoves(t *testing.T) {
	t.Parallel()
	var n notes
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		n.add(attempt(ctx, e, i))
		if i.N == 1 && e.Attempt < 4 {
			return runnel.RetryAfter(errBad, time.Minute)
		}
		return nil
	})
	o := retrying(9, runnel.OrderKey)
	o.Lease = time.Second
	cluster(t, 1, fn, o, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1, 2)
		c.Sleep(10 * time.Second)
		send(1)
		c.Sleep(time.Second)
		a.Kill()
		b := c.Start("b")
		c.Sleep(time.Minute)
		if err := b.Stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		ready(c, "c")
		c.Sleep(3 * time.Minute)
		wantNotes(t, &n, "a 1#1", "a 2#1", "b 1#2", "c 1#3", "c 1#4", "c 1#1", "c 1#2")
	})
}

func TestQuarantineEndsByAnOperator(t *testing.T) {
	for _, skip := range []bool{false, true} {
		var n notes
		var mended atomic.Bool
		fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
			n.add(attempt(ctx, e, i))
			if i.N == 2 && !mended.Load() {
				return errBad
			}
			return nil
		})
		cluster(t, 1, fn, &runnel.ProcessorOptions{OnError: runnel.Quarantine}, func(c *runneltest.Cluster, send func(...int)) {
			ready(c, "a")
			send(1, 2, 3)
			c.Sleep(time.Minute)
			wantNotes(t, &n, "a 1#1", "a 2#1")
			mended.Store(true)
			resume(t, c, 0, skip)
			c.Sleep(100 * time.Millisecond)
			if skip {
				wantNotes(t, &n, "a 1#1", "a 2#1", "a 3#1")
			} else {
				wantNotes(t, &n, "a 1#1", "a 2#1", "a 2#1", "a 3#1")
			}
			c.Sleep(10 * time.Second)
			if p := c.Redis().XInfoGroups(c.Context(), "__strm:contract.items.0").Val(); len(p) != 1 || p[0].Pending != 0 {
				t.Errorf("groups %+v", p)
			}
		})
	}
}

// A poison event ends the process that runs it, each time, in one of 16 busy
// partitions: only it becomes a dead letter, after its last attempt.
func TestPoisonThatKillsItsWorkerEndsAsADeadLetter(t *testing.T) {
	const poison, most = 777, 3
	for _, order := range []runnel.RetryOrder{runnel.OrderPartition, runnel.OrderKey, runnel.OrderNone} {
		t.Run(order.String(), func(t *testing.T) {
			t.Parallel()
			var n notes
			fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
				if err := runneltest.Gate(ctx); err != nil {
					return err
				}
				time.Sleep(20 * time.Millisecond)
				if i.N == poison {
					n.add(attempt(ctx, e, i))
					runneltest.WorkerOf(ctx).Kill()
				}
				return runneltest.Gate(ctx)
			})
			o := retrying(most, order)
			o.Lease = time.Second
			cluster(t, 16, fn, o, func(c *runneltest.Cluster, send func(...int)) {
				keepOneRunning(c, 400, func(i int) { send(2*i, 2*i+1) }, func() bool { return unsettled(t, c, 16) == 0 })
				var dead []string
				for p := range 16 {
					dead = append(dead, deadLetters(t, c, p)...)
				}
				if want := fmt.Sprintf("%d#%d crash", poison, most); len(dead) != 1 || dead[0] != want {
					t.Errorf("dead letters %q, want %q", dead, want)
				}
				// The first attempt leaves no record where the acks before it were under way.
				if runs := len(n.all()); runs < most || runs > most+1 {
					t.Errorf("it ran %d times: %q", runs, n.all())
				}
				if left := unsettled(t, c, 16); left != 0 {
					t.Errorf("%d events are not done", left)
				}
			})
		})
	}
}

// keepOneRunning runs one worker, a new one for each that dies: while it does
// something so many times, and until all is done or ten minutes have passed.
func keepOneRunning(c *runneltest.Cluster, times int, do func(n int), done func() bool) {
	started := 0
	w := c.Start("w0")
	again := func() bool {
		select {
		case <-w.Done():
			started++
			w = c.Start(fmt.Sprint("w", started))
			return true
		default:
			return false
		}
	}
	for n := range times {
		do(n)
		c.Sleep(20 * time.Millisecond)
		again()
	}
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); c.Sleep(time.Second) {
		if !again() && w.App().Ready() == nil && done() {
			return
		}
	}
}

// unsettled counts what is parked or pending in the partitions of cluster.
func unsettled(t *testing.T, c *runneltest.Cluster, partitions int) (left int) {
	t.Helper()
	for p := range partitions {
		for _, g := range c.Redis().XInfoGroups(c.Context(), fmt.Sprint("__strm:contract.items.", p)).Val() {
			left += int(g.Pending)
		}
		left += parkedIn(t, c, p) // after that: what fails leaves the one for the other
	}
	return left
}

// Another processor of the stream sees each event once, whatever the first one
// does with it.
func TestARetryConcernsOneProcessor(t *testing.T) {
	var n notes
	fn := func(name string) runnel.ProcessFunc[item] {
		return runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			n.add(fmt.Sprintf("%s %d#%d", name, i.N, e.Attempt))
			if name == "p" && i.N == 1 {
				return errBad
			}
			return nil
		})
	}
	both := simulation{key: keyOfItem, others: map[string]runnel.ProcessFunc[item]{"other": fn("other")}}
	both.run(t, fn("p"), retrying(3, runnel.OrderPartition), func(c *simulated) {
		ready(c.Cluster, "a")
		c.send(1, 2)
		c.Sleep(time.Minute)
		counts := map[string]int{}
		for _, line := range n.all() {
			counts[line]++
		}
		for line, want := range map[string]int{"p 1#1": 1, "p 1#2": 1, "p 1#3": 1, "p 2#1": 1, "other 1#1": 1, "other 2#1": 1} {
			if counts[line] != want {
				t.Errorf("%s: %d times", line, counts[line])
			}
			delete(counts, line)
		}
		if len(counts) > 0 {
			t.Errorf("besides: %v", counts)
		}
		if got := deadLetters(t, c.Cluster, 0); !slices.Equal(got, []string{"k#3 failed"}) {
			t.Errorf("dead letters %q", got)
		}
	})
}

func TestAFullParkBlocksThePartition(t *testing.T) {
	t.Parallel()
	var n notes
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		n.add(fmt.Sprint(i.N, "#", e.Attempt))
		if e.Attempt == 1 && i.N <= 10 {
			return runnel.RetryAfter(errBad, time.Duration(i.N)*time.Minute)
		}
		return nil
	})
	stream := &runnel.StreamOptions{Partitions: 1, MaxLen: 5}
	simulate(t, nil, stream, fn, retrying(3, runnel.OrderNone), func(c *simulated) {
		ready(c.Cluster, "a")
		c.append(1, 12)
		c.Sleep(30 * time.Second)
		wantNotes(t, &n, "1#1", "2#1", "3#1", "4#1", "5#1")
		if got := parkedIn(t, c.Cluster, 0); got != 5 {
			t.Errorf("%d are parked", got)
		}
		c.Sleep(time.Minute)
		wantNotes(t, &n, "1#1", "2#1", "3#1", "4#1", "5#1", "1#2", "6#1")
		c.Sleep(20 * time.Minute)
		if left := parkedIn(t, c.Cluster, 0); len(n.all()) != 22 || left != 0 {
			t.Errorf("in the end %q, %d parked", n.all(), left)
		}
	})
}

// An operator lets parked events run at once, or drops them, while the worker
// runs; the next of the lane follows.
func TestOperatorsChangeWhatIsParked(t *testing.T) {
	t.Parallel()
	var n notes
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		n.add(attempt(ctx, e, i))
		if e.Attempt == 1 {
			return runnel.RetryAfter(errBad, 10*time.Minute)
		}
		return nil
	})
	cluster(t, 1, fn, retrying(9, runnel.OrderPartition), func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		o := operator(t, c)
		defer o.Close()
		place := o.Partition("items", "p", 0)
		parked := func() []string {
			states, _, err := o.Retries(c.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, s := range states {
				ids = append(ids, s.ID)
			}
			return ids
		}
		send(1)
		c.Sleep(time.Second)
		send(2)
		c.Sleep(time.Second)
		wantNotes(t, &n, "a 1#1")
		if due, err := o.RetryNow(c.Context(), place, parked()); err != nil || len(due) != 1 {
			t.Errorf("retry now: %v, %v", due, err)
		}
		c.Sleep(100 * time.Millisecond)
		wantNotes(t, &n, "a 1#1", "a 1#2", "a 2#1")
		send(3)
		if gone, err := o.DropParked(c.Context(), place, parked()); err != nil || len(gone) != 1 {
			t.Errorf("retry drop: %v, %v", gone, err)
		}
		c.Sleep(100 * time.Millisecond)
		wantNotes(t, &n, "a 1#1", "a 1#2", "a 2#1", "a 3#1")
		c.Sleep(15 * time.Minute)
		wantNotes(t, &n, "a 1#1", "a 1#2", "a 2#1", "a 3#1", "a 3#2")
	})
}
