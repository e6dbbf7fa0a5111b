package conformance_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const (
	resumeLimit   = 50 * time.Second // ten times what is promised
	linesOfOutage = 60               // that one worker may log about it
)

// A serverFault is done to a server under load.
type serverFault struct {
	name  string
	fault string // for the history
	hurt  func(t *testing.T, srv *redistest.Server, rdb *redis.Client)
}

func command(args ...any) func(*testing.T, *redistest.Server, *redis.Client) {
	return func(t *testing.T, _ *redistest.Server, rdb *redis.Client) {
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// outage stops the server for a second; dials are refused.
func outage(_ *testing.T, srv *redistest.Server, _ *redis.Client) {
	srv.Kill()
	<-time.After(time.Second)
	srv.Restart()
}

var serverFaults = []serverFault{
	{"FLUSHALL", history.Flush, command("FLUSHALL")},
	{"kill -9 and restart", history.Cut, outage},
}

// Two workers lose their data, or their server, under load. Neither floods the log or the server,
// and every partition continues within seconds.
func TestServerFaultsUnderLoad(t *testing.T) {
	for _, f := range serverFaults {
		t.Run(f.name, func(t *testing.T) { f.run(t) })
	}
}

func (f *serverFault) run(t *testing.T) {
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no")
	rdb := srv.Client(t)
	tr := newTracker(history.Memory())
	var workers []*parcelApp
	for _, name := range []string{"w1", "w2"} {
		a := newParcelApp(t, srv.URL(), name, nil)
		tr.process(a, "check", nil, nil)
		workers = append(workers, a.run())
	}
	ready(t, resumeLimit, workers...)
	flow := startFlow(t, newProducer(t, srv.URL(), 16), tr.history, 16, 10*time.Millisecond)
	await(t, "the flow", resumeLimit, func() bool { return tr.passed("check", 16, 50) })

	usual := rates(workers, time.Second)
	if err := tr.history.Fault("", f.fault); err != nil {
		t.Fatal(err)
	}
	lines := linesOf(workers)
	meter := newMeter(workers)
	f.hurt(t, srv, rdb)
	mark := flow.round.Load() + 2
	took := await(t, "all partitions to go on", resumeLimit, func() bool { return tr.passed("check", 16, mark) })
	await(t, "a second to pass", resumeLimit, func() bool { return time.Since(meter.began) > time.Second })
	during := meter.rates()
	t.Logf("%s: all partitions process again after %v; requests and dials per second and worker: %.0f before, %.0f from the fault until then, over a second at least",
		f.name, took.Round(time.Millisecond), usual, during)
	for i, rate := range during {
		if rate > 3*usual[i]+300 {
			t.Errorf("worker %s: %.0f requests per second in the outage, %.0f before", workers[i].name, rate, usual[i])
		}
	}
	after := tr.completed()
	await(t, "more events", resumeLimit, func() bool { return tr.completed() > after+16*50 })
	for i, n := range linesOf(workers) {
		t.Logf("worker %s logged %d lines about it", workers[i].name, n-lines[i])
		if n-lines[i] > linesOfOutage {
			t.Errorf("worker %s: a flood of log lines\n%s", workers[i].name, workers[i].log.String())
		}
	}
	flow.stop()
	awaitRest(t, srv, 16, 1)
	for _, w := range workers {
		w.stop()
	}
	tr.judge(t, srv, 16, history.Options{Processors: []string{"check"}})
}

// A meter measures requests and dials per second of each worker.
type meter struct {
	workers []*parcelApp
	before  []int64
	began   time.Time
}

func newMeter(workers []*parcelApp) *meter {
	m := &meter{workers: workers, began: time.Now()}
	for _, w := range workers {
		m.before = append(m.before, w.requests.Total()+w.dials.Load())
	}
	return m
}

func (m *meter) rates() []float64 {
	out := make([]float64, len(m.workers))
	for i, w := range m.workers {
		n := w.requests.Total() + w.dials.Load() - m.before[i]
		out[i] = float64(n) / time.Since(m.began).Seconds()
	}
	return out
}

func rates(workers []*parcelApp, d time.Duration) []float64 {
	m := newMeter(workers)
	<-time.After(d)
	return m.rates()
}

func linesOf(workers []*parcelApp) []int {
	out := make([]int, len(workers))
	for i, w := range workers {
		out[i] = w.log.count()
	}
	return out
}
