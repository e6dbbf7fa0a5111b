//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/history"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/internal/worker"
)

const (
	attempts   = 4
	poisonExit = 66
)

// delivery is what else goes on where events fail, wait for their time, and are
// held back.
type delivery struct {
	*scene
	producers sync.WaitGroup

	mu    sync.Mutex
	late  map[string]fate // by key, of which each delayed event has its own
	moved map[string]int  // how often it was found in its partition
}

// fate is what must become of a delayed event.
type fate int

const (
	comes fate = iota
	cancelled
	unclear // cancelled, perhaps
)

// TestFaultsInDelivery is TestFaults where some events fail, some end their
// process, some are sent for later, everything is sent under an ID, and an operator
// holds partitions back.
func TestFaultsInDelivery(t *testing.T) {
	s := newScene(t)
	s.delivery = &delivery{scene: s, late: map[string]fate{}, moved: map[string]int{}}
	for range 4 {
		s.start()
	}
	stop := s.produce()
	release := s.delivery.operate()
	s.hurt()
	stop()
	release()
	s.settle()
	// One attempt more is for an event that was thought to have ended its process.
	s.judge(history.Options{Lanes: history.LaneKey, Attempts: attempts + 1})
}

// A fortune is what becomes of the attempts of an event.
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
	case n < 100:
		return bad
	case n < 2000:
		return shaky
	}
	return fine
}

var errChaos = errors.New("as it should")

// deliver registers the processor of a worker.
func deliver(log *history.Log, jobs *runnel.Stream[job]) {
	jobs.Process("check", runnel.Each(func(ctx context.Context, e *runnel.Event, j job) error {
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
	}), &runnel.ProcessorOptions{
		LockExpiry: lockExpiry, Grace: 2 * time.Second,
		Retry: &runnel.Retry{Max: attempts, Order: runnel.RetryKey, Backoff: runnel.Backoff{First: 20 * time.Millisecond, Cap: 200 * time.Millisecond}},
	})
}

// poisoned says whether a process was ended by an event.
func (s *scene) poisoned(p *process) bool {
	return s.delivery != nil && p.cmd.ProcessState.ExitCode() == poisonExit
}

// delay sends events for later until ctx ends, and cancels some.
func (d *delivery) delay(ctx context.Context, jobs *runnel.Stream[job], n int) {
	forever := context.WithoutCancel(ctx)
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("late%d-%d", n, i)
		out := runnel.Outgoing[job]{Record: job{key, 1}, ID: key, After: rand.N(2 * time.Second)}
		sent, err := jobs.SendEvents(forever, out)
		for err != nil { // under its ID it is sent once
			<-time.After(10 * time.Millisecond)
			sent, err = jobs.SendEvents(forever, out)
		}
		what := comes
		if i%5 == 0 {
			<-time.After(rand.N(500 * time.Millisecond))
			switch was, err := jobs.Cancel(forever, sent[0].ID); {
			case err != nil:
				what = unclear
			case was:
				what = cancelled
			}
		}
		d.mu.Lock()
		d.late[key] = what
		d.mu.Unlock()
		<-time.After(rand.N(20 * time.Millisecond))
	}
}

// operate holds the processor back, or one of its partitions, again and again.
func (d *delivery) operate() (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	var wg sync.WaitGroup
	log := d.open("operator")
	app, _ := declare(d.redis.URL(), "operator")
	wg.Go(func() {
		defer app.Close()
		for ctx.Err() == nil {
			d.holdBack(ctx, app.Rules(), log)
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

func (d *delivery) holdBack(ctx context.Context, rules *runnel.Rules, log *history.Log) {
	scope, r := runnel.ProcessorScope("jobs", "check"), history.Record{Stream: "jobs", Processor: "check", Partition: -1}
	if rand.IntN(4) > 0 {
		r.Partition = rand.IntN(partitions)
		scope = runnel.PartitionScope("jobs", "check", r.Partition)
	}
	forever := context.WithoutCancel(ctx)
	set, remove := rules.Pause, rules.Unpause
	if rand.IntN(2) == 0 {
		set, remove = rules.Block, rules.Unblock
	}
	if err := set(forever, scope, nil); err != nil {
		d.t.Errorf("hold back %v: %v", scope, err)
		return
	}
	limit, cancel := context.WithTimeout(forever, 30*time.Second)
	defer cancel()
	err := rules.Wait(limit, scope)
	if err == nil {
		r.Kind = history.Held
		err = log.Write(r)
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(600 * time.Millisecond)):
		}
		r.Kind = history.Freed
		err = errors.Join(err, log.Write(r))
	}
	if err := errors.Join(err, remove(forever, scope)); err != nil {
		d.t.Errorf("hold back %v: %v", scope, err)
	}
}

// waiting tells what waits for its time or for another attempt.
func (d *delivery) waiting(rdb *redis.Client) (out string) {
	for p := range partitions {
		due, err1 := rdb.ZCard(d.t.Context(), fmt.Sprint("__due:chaos.jobs.", p)).Result()
		parked, err2 := rdb.HLen(d.t.Context(), fmt.Sprint("__parked:chaos.jobs.check.", p)).Result()
		if err := errors.Join(err1, err2); err != nil || due+parked > 0 {
			out += fmt.Sprintln("partition", p, "delayed:", due, "parked:", parked, err)
		}
	}
	return out
}

// found notes an entry of a partition.
func (d *delivery) found(j job, due int64) {
	if due > 0 {
		d.moved[j.Key]++
	}
}

// judge looks at delayed events and dead letters; these it writes down.
func (d *delivery) judge(log *history.Log) {
	counts := map[fate]int{}
	for key, what := range d.late {
		counts[what]++
		n := d.moved[key]
		if what == comes && n != 1 || what == cancelled && n != 0 || n > 1 {
			d.t.Errorf("the delayed event %s was appended %d times (fate %d)", key, n, what)
		}
	}
	d.t.Logf("delayed: %d, and %d cancelled; %d unclear", counts[comes], counts[cancelled], counts[unclear])
	client, err := rstream.Open(rstream.Options{Redis: d.redis.Client(d.t), Keys: keys.Keys{App: "chaos", Layout: keys.Standalone}})
	if err != nil {
		d.t.Fatal(err)
	}
	poisons := 0
	for p := range partitions {
		letters, err := client.DeadLetters(d.t.Context(), client.Place("jobs", "check", p), "", 100_000)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, l := range letters {
			var j job
			if err := runnel.MsgPack.Decode([]byte(l.Entry.Values["data"].(string)), &j); err != nil {
				d.t.Fatal(err)
			}
			fortune := fortuneOf(j)
			if fortune == poison {
				poisons++
			}
			// Whose worker died, or lost the partition, each time that it would have
			// succeeded has used its attempts, too.
			unlucky := fortune == shaky && l.Reason == worker.ReasonCrash
			if fortune < bad && !unlucky || l.Attempts < attempts || l.Attempts > attempts+1 {
				d.t.Errorf("%s of partition %d (fortune %d) is a dead letter after %d attempts: %s", l.Entry.ID, p, fortune, l.Attempts, l.Reason)
			}
			err := log.Write(history.Record{Kind: history.Dead, Stream: "jobs", Processor: "check", Partition: p, IDs: []string{l.Entry.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq}})
			if err != nil {
				d.t.Error(err)
			}
		}
	}
	d.t.Logf("%d events ended their process until they were dead letters", poisons)
}
