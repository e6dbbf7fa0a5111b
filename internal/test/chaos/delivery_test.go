//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
)

const (
	attempts   = 4
	poisonExit = 66
)

// delivery adds failing and delayed events, and pauses.
type delivery struct {
	*scene
	producers sync.WaitGroup
}

// A fortune is the outcome of the attempts of an event.
type fortune int

const (
	fine   fortune = iota
	shaky          // fails once or twice
	bad            // fails always
	poison         // ends its process
)

func fortuneOf(j job) fortune {
	h := fnv.New32a()
	fmt.Fprint(h, j.Key, "/", j.Seq)
	switch n := h.Sum32() % 40_000; {
	case n == 0:
		return poison
	case n < badOnes():
		return bad
	case n < 2000:
		return shaky
	}
	return fine
}

// badOnes is how many of 40 000 events always fail.
var badOnes = sync.OnceValue(func() uint32 {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_CHAOS_BAD"))
	if err != nil {
		return 100
	}
	return uint32(n)
})

var errChaos = errors.New("as it should")

func deliver(log *history.Log, jobs *runnel.Stream[job]) {
	jobs.Process("check", noticing(log, runnel.Each(func(ctx context.Context, e *runnel.Event, j job) error {
		r := recordOf(e, j)
		r.Attempts = []int{e.Attempt}
		it, err := log.Begin(r)
		if err != nil {
			return err
		}
		dawdle(ctx)
		switch fortune := fortuneOf(j); {
		case fortune == poison:
			log.Fault(os.Getenv("RUNNEL_CHAOS_WORKER"), history.Kill)
			os.Exit(poisonExit)
		case fortune == bad, fortune == shaky && e.Attempt <= 1+int(j.Seq%2):
			return errors.Join(errChaos, it.Fail())
		}
		return it.Complete()
	})), &runnel.ProcessorOptions{
		Lease: lockExpiry, Grace: grace,
		Retry: &runnel.Retry{Max: attempts, Order: runnel.OrderKey, MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond},
	})
}

// poisoned reports whether an event ended a process.
func (s *scene) poisoned(p *process) bool {
	return s.delivery != nil && p.cmd.ProcessState.ExitCode() == poisonExit
}

// delay sends delayed events until ctx ends, and cancels some. The history gets the server's time
// before the send, so that no local clock counts.
func (d *delivery) delay(ctx context.Context, log *history.Log, jobs *runnel.Stream[job], n int) {
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("late%d-%d-%d", d.round, n, i)
		sent := d.sendLater(log, jobs, key)
		<-time.After(rand.N(500 * time.Millisecond))
		if i%5 == 0 {
			d.recall(log, jobs, key, sent.ID)
		}
		<-time.After(rand.N(20 * time.Millisecond))
	}
}

// sendLater sends a delayed event. Its time counts from before the first try, whose reply may be
// lost. No wipe comes between a reply and its record.
func (d *delivery) sendLater(log *history.Log, jobs *runnel.Stream[job], key string) runnel.Sent {
	after := rand.N(2 * time.Second)
	out := runnel.Outgoing[job]{Record: job{key, 1}, DedupID: key, After: after}
	var now time.Time
	awaitNil(d.t, "time of the server", func(ctx context.Context) (err error) {
		now, err = d.topo.client().Time(ctx).Result()
		return err
	})
	for {
		d.still.RLock()
		sent, err := jobs.SendEvents(d.t.Context(), out) // under its ID it is sent once
		if err == nil {
			d.write(log, history.Record{
				Kind: history.Delayed, Stream: "jobs", Partition: sent[0].Partition, Keys: []string{key}, Seqs: []int64{1}, Due: now.UnixMilli() + after.Milliseconds(),
			})
		}
		d.still.RUnlock()
		if err == nil {
			return sent[0]
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (d *delivery) recall(log *history.Log, jobs *runnel.Stream[job], key, id string) {
	was, err := jobs.Cancel(d.t.Context(), id)
	if was || err != nil {
		d.write(log, history.Record{Kind: history.Recalled, Stream: "jobs", Keys: []string{key}, Seqs: []int64{1}, Failed: err != nil})
	}
}

// operate pauses the processor, or one of its partitions, again and again.
func (d *delivery) operate() (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	var wg sync.WaitGroup
	log := d.open("operator")
	own := d.topo.link()
	app, _, end := declare(own.way, "operator")
	wg.Go(func() {
		defer own.each((*faultproxy.Proxy).Close)
		defer end()
		defer d.clear(admin.New(app))
		for ctx.Err() == nil {
			d.clear(admin.New(app))
			d.holdBack(ctx, admin.New(app), log)
			select {
			case <-ctx.Done():
			case <-time.After(rand.N(time.Second)):
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// clear removes the remaining rules: a failover may have undone a removal.
func (d *delivery) clear(rules *admin.Client) {
	awaitNil(d.t, "removal of rules", func(ctx context.Context) error {
		list, err := rules.Rules(ctx)
		for _, r := range list {
			remove := rules.Resume
			if r.Kind == admin.RuleBlock {
				remove = rules.Unblock
			}
			err = errors.Join(err, remove(ctx, r.Scope))
		}
		return err
	})
}

func (d *delivery) holdBack(ctx context.Context, rules *admin.Client, log *history.Log) {
	scope, r := admin.ProcessorScope("jobs", "check"), history.Record{Stream: "jobs", Processor: "check", Partition: -1}
	if rand.IntN(4) > 0 {
		r.Partition = rand.IntN(partitions)
		scope = admin.PartitionScope("jobs", "check", r.Partition)
	}
	d.still.RLock() // a wipe would take the rule, too
	defer d.still.RUnlock()
	forever := context.WithoutCancel(ctx)
	set, remove := rules.Pause, rules.Resume
	if rand.IntN(2) == 0 {
		set, remove = rules.Block, rules.Unblock
	}
	if err := set(forever, scope, nil); err != nil {
		return // the server is hurt; what was set, if it was, is removed with the next
	}
	// Always removed: the rule would hold everything up for ever.
	defer awaitNil(d.t, fmt.Sprint("removal of a rule of ", scope), func(ctx context.Context) error { return remove(ctx, scope) })
	limit, cancel := context.WithTimeout(forever, d.plan.patience)
	defer cancel()
	if err := rules.Wait(limit, scope); err != nil {
		if limit.Err() != nil {
			d.t.Errorf("hold back %v: %v", scope, err)
		}
		return
	}
	r.Kind = history.Held
	d.write(log, r)
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(600 * time.Millisecond)):
	}
	r.Kind = history.Freed
	d.write(log, r)
}

// waiting describes the events that are delayed or parked.
func (d *delivery) waiting(rdb redis.UniversalClient) (out string) {
	for p := range partitions {
		due, err1 := rdb.ZCard(d.t.Context(), d.keys.Delayed("jobs", p).Due).Result()
		parked, err2 := rdb.HLen(d.t.Context(), d.keys.Parked("jobs", "check", p)).Result()
		if err := errors.Join(err1, err2); err != nil || due+parked > 0 {
			out += fmt.Sprintln("partition", p, "delayed:", due, "parked:", parked, err)
		}
	}
	return out
}
