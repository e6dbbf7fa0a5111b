package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/runneltest"
)

// A retryStorm is a storm in which events fail, some a few times and some each
// time.
type retryStorm struct {
	*storm
	order runnel.RetryOrder
}

const stormAttempts = 4

var errStorm = errors.New("bad weather")

// TestSimRetrySeeds is TestSimSeeds for events that are attempted again, in each
// of the orders, with an eighth as many seeds.
func TestSimRetrySeeds(t *testing.T) {
	eachSeed(t, max(*seeds/8, 3), func(storm *storm, n uint64) {
		s := &retryStorm{storm: storm, order: runnel.RetryOrder(1 + n%3)}
		s.batches = n%4 == 0
		s.more = s.unparked
		runneltest.Sim(s.t, s.build, func(c *runneltest.Cluster) {
			s.run(c)
			s.burials()
		})
		s.judge()
	})
}

func (s *retryStorm) build(o *runnel.Options) *runnel.App {
	o.Processor.Reads = s.next
	app, parcels := s.declare(o)
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, p parcel) error {
		return s.attempt(ctx, []*runnel.Event{e}, []parcel{p})
	})
	if s.batches {
		fn = runnel.EachBatch(5, 30*time.Millisecond, s.attempt)
	}
	parcels.Process("check", fn, &runnel.ProcessorOptions{
		Lease: stormExpiry, Grace: stormGrace,
		Retry: &runnel.Retry{Max: stormAttempts, Order: s.order, MinBackoff: 50 * time.Millisecond, MaxBackoff: time.Second},
	})
	return app
}

// fails reports whether this attempt of an event fails: about one event in ten fails once
// or twice, and a few fail each time.
func fails(p parcel, attempt int) bool {
	h := fnv.New32()
	fmt.Fprint(h, p.Key, "/", p.Seq)
	switch n := h.Sum32() % 50; {
	case n == 0:
		return true
	case n < 6:
		return attempt <= 1+int(n%2)
	}
	return false
}

// attempt writes down what happens to events, and takes its time.
func (s *retryStorm) attempt(ctx context.Context, events []*runnel.Event, parcels []parcel) error {
	if err := runneltest.Gate(ctx); err != nil {
		return err
	}
	w := runneltest.WorkerOf(ctx)
	it, err := s.log.As(w.Name()).Begin(s.record(w, events, parcels))
	if err != nil {
		return err
	}
	select {
	case <-time.After(rand.N(40 * time.Millisecond)):
	case <-ctx.Done():
	}
	if err := w.Gate(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return it.Fail()
	}
	var failed []*runnel.Event
	var done []string
	behind := map[string]bool{} // of a batch, what stands behind a failed event of its lane was not processed
	for i, e := range events {
		if e.Attempt > stormAttempts+1 { // one more is for a suspect that did not run alone
			s.t.Errorf("attempt %d of event %s", e.Attempt, e.ID)
		}
		lane := map[runnel.RetryOrder]string{runnel.OrderKey: parcels[i].Key, runnel.OrderNone: e.ID}[s.order]
		if behind[lane] || fails(parcels[i], e.Attempt) {
			behind[lane] = true
			failed = append(failed, e)
		} else {
			done = append(done, e.ID)
		}
	}
	if len(done) == 0 {
		err = it.Fail()
	} else {
		err = it.Complete(done...)
	}
	if len(failed) == 0 || err != nil {
		return err
	}
	return runnel.FailedEvents(errStorm, failed...)
}

// operator returns a client outside of all faults.
func (s *retryStorm) operator() *store.Client {
	client, err := store.Open(redisconn.Options{Redis: s.c.Redis(), Keys: keys.Keys{App: "sim", Layout: keys.Standalone}})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// unparked describes what is still parked, "" for nothing.
func (s *retryStorm) unparked() string {
	client := s.operator()
	defer client.Close()
	for p := range stormParts {
		states, _, err := client.Retries(s.c.Context(), client.Partition("parcels", "check", p))
		if err != nil || len(states) > 0 {
			return fmt.Sprintf("partition %d has parked %+v, %v", p, states, err)
		}
	}
	return ""
}

// burials writes down what became dead letters.
func (s *retryStorm) burials() {
	client := s.operator()
	defer client.Close()
	seqs := map[string]history.Record{}
	for _, r := range s.log.Records() {
		if r.Kind == history.Sent {
			seqs[fmt.Sprint(r.Partition, " ", r.IDs[0])] = r
		}
	}
	for p := range stormParts {
		letters, err := client.DeadLetters(s.c.Context(), client.Partition("parcels", "check", p), "", 100_000)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, d := range letters {
			sent := seqs[fmt.Sprint(p, " ", d.Entry.ID)]
			err := s.log.Write(history.Record{
				Kind: history.Dead, Stream: "parcels", Processor: "check", Partition: p,
				IDs: []string{d.Entry.ID}, Keys: sent.Keys, Seqs: sent.Seqs,
			})
			if err != nil {
				s.t.Error(err)
			}
			if d.Attempts < stormAttempts || d.Attempts > stormAttempts+1 {
				s.t.Errorf("event %s is a dead letter after %d attempts: %s", d.Entry.ID, d.Attempts, d.Reason)
			}
		}
	}
}

func (s *retryStorm) judge() {
	lanes := map[runnel.RetryOrder]history.Lanes{
		runnel.OrderPartition: history.LanePartition, runnel.OrderKey: history.LaneKey, runnel.OrderNone: history.LaneEvent,
	}
	report := history.Check(s.log.Records(), history.Options{Processors: []string{"check"}, Lanes: lanes[s.order]})
	if !report.OK {
		s.t.Error(s.way(), report)
		return
	}
	if report.Dead == 0 {
		s.t.Error("no event became a dead letter")
	}
	s.t.Log(s.order, s.way(), report)
}
