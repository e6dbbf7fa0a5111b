package runneltest_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

var (
	seeds = flag.Int("seeds", seedsByEnv(), "how many seeds TestSimSeeds plays (RUNNEL_SIM_SEEDS)")
	seed  = flag.Uint64("seed", 0, "the only seed that TestSimSeeds plays, if not 0")
)

func seedsByEnv() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SIM_SEEDS")); err == nil {
		return n
	}
	return 8 // make sim-short plays 40
}

const (
	stormParts     = 8
	stormKeys      = 40
	stormProducers = 4
	stormLatency   = 10 * time.Millisecond
	stormExpiry    = time.Second
	stormGrace     = 5 * time.Second // longer than a pause: a function that stands still is not stuck
	stormPause     = time.Second
	stormPatience  = 2 * time.Second // of a sender that waits for room
)

// stormLasts is longer in make sim and make sim-short, where a storm may compute for 10 s, and more with the race detector.
var stormLasts = 20 * time.Second

func init() {
	if tier.Full() && !tier.Race {
		stormLasts = time.Minute
	}
}

// TestSimSeeds lets workers come, go, die, freeze and lose their connections
// while producers send, and judges what they did.
func TestSimSeeds(t *testing.T) {
	eachSeed(t, *seeds, func(s *storm, _ uint64) {
		runneltest.Sim(s.t, s.build, s.run)
		s.judge()
	})
}

// eachSeed plays the storms of the first seeds in parallel, or only the one of -seed.
func eachSeed(t *testing.T, most int, play func(s *storm, seed uint64)) {
	first, last := uint64(1), uint64(most)
	if *seed != 0 {
		first, last = *seed, *seed
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	for n := first; n <= last; n++ {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			t.Parallel()
			play(newStorm(t, n), n)
			if t.Failed() {
				t.Logf("again: go test ./runneltest -run %s -seed=%d", test, n)
			}
		})
	}
}

type parcel struct {
	Key string
	Seq int64
}

// storm is one simulation.
type storm struct {
	t       *testing.T
	rand    *rand.Rand // of the faults
	batches bool
	reads   runnel.Reads // of all workers; 0: each of them by chance
	next    runnel.Reads // of the worker that is being started
	log     *history.Log
	c       *runneltest.Cluster

	live    []*runneltest.Worker
	started int
	paused  map[*runneltest.Worker]time.Time // until when
	began   map[*runneltest.Worker]time.Time
	others  sync.WaitGroup // producers, stops
	more    func() string  // what else is not settled
	pace    time.Duration  // the longest between two sends of a producer
	stream  *runnel.StreamOptions
}

func newStorm(t *testing.T, seed uint64) *storm {
	stir(seed)
	return &storm{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), batches: seed%3 == 0, reads: readsOf(seed), log: history.Memory(),
		paused: map[*runneltest.Worker]time.Time{}, began: map[*runneltest.Worker]time.Time{},
		pace: stormPause, stream: &runnel.StreamOptions{Partitions: stormParts},
	}
}

// readsOf chooses how workers read. By most seeds partitions move between such that read by group and by position.
func readsOf(seed uint64) runnel.Reads {
	chosen := map[string]runnel.Reads{"group": runnel.ByGroup, "position": runnel.ByPosition}[os.Getenv("RUNNEL_READS")]
	return cmp.Or(chosen, [5]runnel.Reads{0: runnel.ByGroup, 1: runnel.ByPosition}[seed%5])
}

func (s *storm) declare(o *runnel.Options) (*runnel.App, *runnel.Stream[parcel]) {
	app := runnel.New("sim", o)
	return app, runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, s.stream)
}

func (s *storm) build(o *runnel.Options) *runnel.App {
	o.Processor.Reads = s.next
	app, parcels := s.declare(o)
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, p parcel) error {
		return s.handle(ctx, []*runnel.Event{e}, []parcel{p})
	})
	if s.batches {
		fn = runnel.EachBatch(5, 30*time.Millisecond, s.handle)
	}
	parcels.Process("check", fn, &runnel.ProcessorOptions{Lease: stormExpiry, Grace: stormGrace})
	return app
}

// handle writes down what happens to events, and takes its time.
func (s *storm) handle(ctx context.Context, events []*runnel.Event, parcels []parcel) error {
	if err := runneltest.Gate(ctx); err != nil {
		return err
	}
	w := runneltest.WorkerOf(ctx)
	it, err := s.log.As(w.Name()).Begin(s.record(w, events, parcels))
	if err != nil {
		return err
	}
	// Most functions look at their context, some do not.
	pause, ignore := rand.N(40*time.Millisecond), rand.IntN(4) == 0
	select {
	case <-time.After(pause):
	case <-after(ctx, ignore):
	}
	if err := w.Gate(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return it.Fail()
	}
	return it.Complete()
}

func (s *storm) record(w *runneltest.Worker, events []*runnel.Event, parcels []parcel) history.Record {
	r := history.Record{
		Executor: w.Name(), Stream: "parcels", Processor: "check", Partition: events[0].Partition, Epoch: events[0].Epoch,
	}
	for i, e := range events {
		r.IDs, r.Keys, r.Seqs = append(r.IDs, e.ID), append(r.Keys, parcels[i].Key), append(r.Seqs, parcels[i].Seq)
	}
	return r
}

func after(ctx context.Context, never bool) <-chan struct{} {
	if never {
		return nil
	}
	return ctx.Done()
}

func (s *storm) run(c *runneltest.Cluster) {
	if s.c == nil {
		s.c = c
	}
	c.Latency(stormLatency)
	app, parcels := s.declare(c.Options("producer"))
	defer app.Close()
	sending, stop := context.WithCancel(c.Context())
	for n := range stormProducers {
		s.others.Go(func() { s.produce(sending, parcels, n) })
	}
	s.start()
	for end := time.Now().Add(stormLasts); time.Now().Before(end); {
		c.Sleep(200*time.Millisecond + rand.N(2*time.Second))
		s.fault()
	}
	stop()
	if len(s.live) == 0 {
		s.start()
	}
	s.others.Wait()
	s.settle()
}

// produce sends parcels of its own keys until ctx ends.
func (s *storm) produce(ctx context.Context, to *runnel.Stream[parcel], n int) {
	log := s.log.As(fmt.Sprint("producer", n))
	seqs := map[string]int64{}
	for ctx.Err() == nil {
		time.Sleep(rand.N(s.pace))
		var out []runnel.Outgoing[parcel]
		for range 1 + rand.IntN(5) {
			key := fmt.Sprintf("%d-%d", n, rand.IntN(stormKeys/stormProducers))
			seqs[key]++
			out = append(out, runnel.Outgoing[parcel]{Record: parcel{key, seqs[key]}})
		}
		s.send(log, to, out)
	}
}

// send sends parcels. Some may be refused where the stream is full.
func (s *storm) send(log *history.Log, to *runnel.Stream[parcel], out []runnel.Outgoing[parcel]) {
	ctx, cancel := context.WithTimeout(s.c.Context(), stormPatience)
	defer cancel()
	sent, err := to.SendEvents(ctx, out...)
	refused := map[int]bool{}
	var se *runnel.SendError
	if errors.As(err, &se) && errors.Is(err, runnel.ErrStreamFull) {
		for _, f := range se.Failed {
			refused[f.Index] = !f.Unknown && (errors.Is(f.Err, runnel.ErrStreamFull) || errors.Is(f.Err, runnel.ErrNotTried))
		}
	}
	if err != nil && (se == nil || len(se.Failed) != len(refused)) {
		s.t.Errorf("send: %v", err)
		return
	}
	for i, o := range out {
		if refused[i] {
			err = log.Refused("parcels", o.Record.Key, o.Record.Seq)
		} else {
			err = log.Sent("parcels", sent[i].Partition, sent[i].ID, o.Record.Key, o.Record.Seq)
		}
		if err != nil {
			s.t.Error(err)
		}
	}
}

func (s *storm) start() {
	s.started++
	name := s.name(fmt.Sprint("w", s.started))
	s.log.Fault(name, history.Join)
	w := s.c.Start(name)
	s.live, s.began[w] = append(s.live, w), time.Now()
}

// name names the next worker after the way in which it reads.
func (s *storm) name(of string) string {
	if s.next = s.reads; s.next == 0 {
		s.next = runnel.ByGroup + runnel.Reads(s.rand.IntN(2))
	}
	return fmt.Sprint(of, "-", s.next)
}

// way tells how the workers read.
func (s *storm) way() string {
	if s.reads == 0 {
		return "reads by group and by position"
	}
	return fmt.Sprint("reads by ", s.reads)
}

// fault does something to some worker.
func (s *storm) fault() {
	s.live = slices.DeleteFunc(s.live, func(w *runneltest.Worker) bool {
		select {
		case <-w.Done():
			s.t.Errorf("worker %s ended by itself: %v", w.Name(), w.Err())
			return true
		default:
			return false
		}
	})
	if len(s.live) == 0 || len(s.live) < 5 && s.rand.IntN(3) == 0 {
		s.start()
		return
	}
	w := s.live[s.rand.IntN(len(s.live))]
	if time.Now().Before(s.paused[w]) {
		return // one thing at a time
	}
	switch s.rand.IntN(6) {
	case 0:
		s.log.Fault(w.Name(), history.Kill)
		w.Kill()
		s.gone(w)
	case 1:
		s.log.Fault(w.Name(), history.Term)
		s.others.Go(func() {
			if err := w.Stop(); err != nil {
				s.t.Errorf("worker %s stopped with %v", w.Name(), err)
			}
		})
		s.gone(w)
	case 2:
		s.log.Fault(w.Name(), history.Cut)
		w.Cut()
	case 3:
		s.pause(w, w.Isolate)
	default:
		s.pause(w, w.Freeze)
	}
}

func (s *storm) gone(w *runneltest.Worker) {
	s.live = slices.DeleteFunc(s.live, func(o *runneltest.Worker) bool { return o == w })
}

// pause stops the worker, or its network, often for longer than its locks live.
func (s *storm) pause(w *runneltest.Worker, by func(time.Duration)) {
	if time.Since(s.began[w]) < stormExpiry {
		return // a worker that cannot reach its server when it starts ends, after some seconds
	}
	d := time.Duration(s.rand.Int64N(int64(4 * stormExpiry)))
	s.paused[w] = time.Now().Add(d)
	s.log.Fault(w.Name(), history.Stop)
	by(d)
	s.others.Go(func() {
		time.Sleep(d)
		s.log.Fault(w.Name(), history.Cont)
	})
}

// settle waits until everything is processed and nothing is pending.
func (s *storm) settle() {
	var state string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if state = s.unsettled(); state == "" && s.more != nil {
			state = s.more()
		}
		if state == "" {
			return
		}
	}
	s.t.Errorf("not settled 30 s after the storm: %s", state)
}

func partitionKey(partition int) string { return fmt.Sprintf("__strm:sim.parcels.%d", partition) }

func (s *storm) unsettled() string {
	ctx, rdb := s.c.Context(), s.c.Redis()
	for p := range stormParts {
		key := partitionKey(p)
		groups, err := rdb.XInfoGroups(ctx, key).Result()
		if err != nil || len(groups) != 1 {
			return fmt.Sprintf("%s has groups %+v, %v", key, groups, err)
		}
		last, err := rdb.XRevRangeN(ctx, key, "+", "-", 1).Result()
		if err != nil || len(last) != 1 {
			return fmt.Sprintf("%s ends with %v, %v", key, last, err)
		}
		if g := groups[0]; g.Pending != 0 || g.LastDeliveredID != last[0].ID {
			return fmt.Sprintf("%s ends at %s, group %+v", key, last[0].ID, g)
		}
	}
	return ""
}

func (s *storm) judge() *history.Report {
	keepHistory(s.t, s.log.Records())
	report := history.Check(s.log.Records(), history.Options{Processors: []string{"check"}})
	if report.OK {
		s.t.Log(s.way(), report)
	} else {
		s.t.Error(s.way(), report)
	}
	return report
}
