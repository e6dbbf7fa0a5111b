//go:build unix

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/exact"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const (
	fewest, most = 3, 6 // workers alive, stopped ones too
	producers    = 4
	keysEach     = 1250 // 5 000 in all
	batchSize    = 20
)

// A scene is one round: workers and producers that come and go on a topology that stays.
type scene struct {
	t     *testing.T
	plan  *plan
	topo  topology
	keys  keys.Keys
	rng   *rand.Rand
	round int
	dir   string

	faults *history.Log
	logs   []string
	named  int
	live   []*process
	sends  *link          // of the producers
	watch  *watch         // what the server says
	still  sync.RWMutex   // held for writing while nothing may be held back or sent for later
	wg     sync.WaitGroup // what goes on beside the main course

	delivery *delivery // nil: events neither fail nor wait
	tender   *tender   // of the set
	beats    *beats    // of the scheduler
	marker   *marker   // of what is counted once
	exact    []exact.Stage
}

// durationVariable sets how long each test hurts.
const durationVariable = "RUNNEL_CHAOS_DURATION"

// readsVariable sets how workers read.
const readsVariable = "RUNNEL_CHAOS_READS"

// A plan is shared by all rounds of a test.
type plan struct {
	duration time.Duration
	round    time.Duration // a long run is judged in parts, so that its history need not fit in memory
	patience time.Duration // how long something may take that ought to happen soon
	seed     uint64
	rng      *rand.Rand
	only     []string // the faults to choose from, nil for all
	reads    string   // how workers read: group, position, or mixed
	rests    []history.Record
	letters  [partitions]string // the last dead letter that was judged
}

// newPlan reads the duration and the seed from the environment.
func newPlan(t *testing.T) *plan {
	t.Helper()
	p := &plan{
		duration: span(t, durationVariable, 20*time.Second), round: span(t, "RUNNEL_CHAOS_ROUND", 2*time.Minute),
		patience: span(t, "RUNNEL_CHAOS_PATIENCE", 90*time.Second), seed: uint64(time.Now().UnixNano()),
	}
	if s := os.Getenv("RUNNEL_CHAOS_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p.seed = n
	}
	if s := os.Getenv("RUNNEL_CHAOS_FAULTS"); s != "" {
		p.only = strings.Split(s, ",")
	}
	p.rng = rand.New(rand.NewPCG(p.seed, 0))
	t.Setenv(sinceVariable, fmt.Sprint(time.Now().Unix()))
	p.reads = cmp.Or(os.Getenv(readsVariable), os.Getenv("RUNNEL_READS"), "mixed")
	t.Logf("RUNNEL_CHAOS_SEED=%d RUNNEL_CHAOS_DURATION=%v RUNNEL_CHAOS_FAULTS=%s %s=%s", p.seed, p.duration, strings.Join(p.only, ","), readsVariable, p.reads)
	return p
}

func (p *plan) has(fault string) bool { return p.only == nil || slices.Contains(p.only, fault) }

// play hurts in rounds, and checks each of them.
func play(t *testing.T, start func(t *testing.T) topology, delivers bool) {
	p, topo := newPlan(t), start(t)
	if p.has("clock") {
		stepper(t) // now, not while something is hurt
	}
	result := &figures{name: t.Name(), seed: p.seed}
	defer result.add()
	for left, n := p.duration, 1; left > 0 && !t.Failed(); n++ {
		lasts := min(left, p.round)
		left -= lasts
		s := newScene(t, p, topo, n)
		if delivers {
			s.delivery = &delivery{scene: s}
		}
		s.play(lasts)
		report, records := s.judge()
		result.take(lasts, report, records)
		s.forget()
	}
	t.Log(result)
}

func newScene(t *testing.T, p *plan, topo topology, round int) *scene {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{
		t: t, plan: p, topo: topo, round: round, dir: dir, keys: keys.Keys{App: "chaos", Layout: topo.layout()},
		rng: rand.New(rand.NewPCG(p.rng.Uint64(), 0)),
	}
	s.faults = s.open("driver")
	for _, r := range p.rests {
		s.write(s.faults, r)
	}
	return s
}

func (s *scene) play(lasts time.Duration) {
	for n := range 4 {
		s.start(n == 0 && s.plan.has("clock"))
	}
	s.sends = s.topo.link()
	s.watch = s.observe()
	stop := s.produce()
	tender, untend, end := s.tend()
	defer end()
	s.tender = tender
	beats, endBeats := s.beat()
	defer endBeats()
	s.beats = beats
	marker, unmark, endMarks := s.mark()
	defer endMarks()
	s.marker = marker
	release := func() {}
	if s.delivery != nil {
		release = s.delivery.operate()
	}
	s.hurt(lasts)
	beats.until = time.Now()
	stop()
	untend()
	unmark()
	release()
	s.settle()
	s.exact = marker.rest()
}

func (s *scene) forget() {
	s.sends.each((*faultproxy.Proxy).Close)
	s.faults.Close()
	if !s.t.Failed() {
		os.RemoveAll(s.dir)
	}
}

func (s *scene) open(name string) *history.Log {
	path := filepath.Join(s.dir, name+".ndjson")
	log, err := history.Open(path, name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.logs = append(s.logs, path)
	return log
}

func (s *scene) write(log *history.Log, r history.Record) {
	if err := log.Write(r); err != nil {
		s.t.Errorf("write history: %v", err)
	}
}

// rest pauses between faults, and while they last.
func (s *scene) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
}

// settle waits until everything is processed, and ends the workers.
func (s *scene) settle() {
	for len(s.live) < fewest {
		s.start(false)
	}
	deadline := time.Now().Add(s.plan.patience)
	for s.positions() != "" {
		s.reap()
		for len(s.live) < fewest { // some end by an event that ends its process
			s.start(false)
		}
		if time.Now().After(deadline) {
			s.t.Errorf("not everything is processed:\n%s", s.positions())
			break
		}
		s.rest(50 * time.Millisecond)
	}
	s.reap()
	for _, p := range append([]*process(nil), s.live...) {
		s.terminate(p)
	}
	s.wg.Wait()
	if left := s.positions(); left != "" {
		s.t.Errorf("at rest:\n%s", left)
	}
	if twice := s.beats.twice(); len(twice) > 0 {
		s.t.Errorf("these attempts were begun twice:\n%s", strings.Join(twice, ""))
	}
	s.watch.end()
}

// positions describes partitions that are not at rest. At rest there is one group, which has read
// everything and has nothing pending. Redis' own lag is not used: it is not in the append-only
// file, and so is wrong after a restart.
func (s *scene) positions() (out string) {
	ctx, rdb := s.t.Context(), s.topo.client()
	for p := range partitions {
		key := s.keys.Partition("jobs", p)
		info, err := rdb.XInfoStream(ctx, key).Result()
		if err != nil {
			out += fmt.Sprintln(key, err)
			continue
		}
		groups, err := rdb.XInfoGroups(ctx, key).Result()
		if err != nil || len(groups) != 1 || groups[0].Pending != 0 || groups[0].LastDeliveredID != info.LastGeneratedID {
			out += fmt.Sprintln(key, info.LastGeneratedID, groups, err)
		}
	}
	if s.delivery != nil {
		out += s.delivery.waiting(rdb)
	}
	return out + s.tender.left() + s.beats.left() + s.marker.left()
}

func (s *scene) judge() (*history.Report, []history.Record) {
	s.plan.rests, s.plan.letters = s.watch.rests(), s.watch.letters
	// A process killed at once has written nothing.
	written := slices.DeleteFunc(slices.Clone(s.logs), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
	records, err := history.Read(written...)
	if err != nil {
		s.t.Fatal(err)
	}
	opts := history.Options{Processors: []string{"check"}, Some: s.topo.some(), Rest: s.exact}
	if s.delivery != nil {
		// One more attempt for an event that was thought to have ended its process.
		opts.Lanes, opts.Attempts = history.LaneKey, attempts+1
	}
	report := history.Check(records, opts)
	s.t.Logf("round %d: %v", s.round, report)
	if n := s.marker.sent.Load(); len(s.exact) > 0 && (n == 0 || report.Once == 0) {
		s.t.Errorf("of %d marks %d have counted once", n, report.Once)
	}
	if report.Looks == 0 {
		s.t.Error("the server never reported an owner")
	}
	if !report.OK {
		s.t.Error("the history breaks a promise")
	}
	if s.t.Failed() || os.Getenv("RUNNEL_CHAOS_KEEP") != "" {
		keep := filepath.Join(os.TempDir(), "runnel-chaos", fmt.Sprint(strings.ReplaceAll(s.t.Name(), "/", "-"), "-", s.plan.seed))
		os.RemoveAll(keep)
		if err := os.CopyFS(keep, os.DirFS(s.dir)); err == nil {
			s.t.Log("logs kept in", keep)
		}
	}
	return report, records
}

func span(t *testing.T, variable string, otherwise time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}

// awaitNil calls try until it succeeds.
func awaitNil(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	var err error
	if !redistest.Within(redistest.Patience, func() bool { err = try(t.Context()); return err == nil }) {
		t.Errorf("no %s within %v: %v", what, redistest.Patience, err)
	}
}
