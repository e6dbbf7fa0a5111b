package conformance_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const (
	childVariable   = "RUNNEL_CONFORMANCE_WORKER" // name of the worker that this process is
	childURL        = "RUNNEL_CONFORMANCE_URL"
	childHistory    = "RUNNEL_CONFORMANCE_HISTORY"
	defaultExpiry   = 10 * time.Second
	takeoverSlack   = time.Second
	handoverLimit   = 200 * time.Millisecond
	childPartitions = 16
)

// A childWorker is a worker in a process of its own: this test, run again.
type childWorker struct {
	name   string
	cmd    *exec.Cmd
	path   string // of its history
	exited chan struct{}
	err    error
}

// inChild runs the worker if this process was started as one.
func inChild(t *testing.T) bool {
	name := os.Getenv(childVariable)
	if name == "" {
		return false
	}
	h, err := history.Open(os.Getenv(childHistory), name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a := newParcelApp(t, os.Getenv(childURL), name, nil)
	newTracker(h).process(a, "check", nil, nil)
	if err := a.app.Run(ctx); err != nil {
		t.Error(err)
	}
	return true
}

func startChild(t *testing.T, srv *redistest.Server, dir, name string) *childWorker {
	c := &childWorker{name: name, path: filepath.Join(dir, name), exited: make(chan struct{})}
	c.cmd = exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.cmd.Env = append(os.Environ(), childVariable+"="+name, childURL+"="+srv.URL(), childHistory+"="+c.path)
	out, err := os.Create(c.path + ".log")
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.err = c.cmd.Wait()
		out.Close()
		close(c.exited)
	}()
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		<-c.exited
		if t.Failed() {
			b, _ := os.ReadFile(c.path + ".log")
			t.Logf("worker %s:\n%s", name, b)
		}
	})
	return c
}

// A duel is two worker processes under a flow, one of which is ended.
type duel struct {
	t               *testing.T
	srv             *redistest.Server
	rdb             *redis.Client
	driver          *history.Log
	victim, witness *childWorker
	flow            *flow
	paths           []string
}

func startDuel(t *testing.T) *duel {
	dir := t.TempDir()
	d := &duel{t: t, srv: redistest.Start(t), paths: []string{filepath.Join(dir, "driver")}}
	d.rdb = d.srv.Client(t)
	var err error
	if d.driver, err = history.Open(d.paths[0], "driver"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.driver.Close() })
	d.victim, d.witness = startChild(t, d.srv, dir, "victim"), startChild(t, d.srv, dir, "witness")
	d.paths = append(d.paths, d.victim.path, d.witness.path)
	d.flow = startFlow(t, newProducer(t, d.srv.URL(), childPartitions), d.driver, childPartitions, 10*time.Millisecond)
	await(t, "both to own half", 60*time.Second, func() bool { return spread(t, d.rdb, childPartitions, 2) })
	mark := d.flow.round.Load() + 100
	await(t, "the flow", 60*time.Second, func() bool { return d.flow.round.Load() > mark })
	return d
}

func (d *duel) records() []history.Record {
	records, err := history.Read(d.paths...)
	if err != nil {
		d.t.Fatal(err)
	}
	slices.SortStableFunc(records, func(a, b history.Record) int { return int(a.At - b.At) })
	return records
}

// shares returns how many locks each executor holds.
func shares(t testing.TB, rdb *redis.Client, partitions int) map[string]int {
	keys := make([]string, partitions)
	for p := range keys {
		keys[p] = fmt.Sprint("__lock:post.parcels.check.", p)
	}
	out := map[string]int{}
	for _, v := range rdb.MGet(t.Context(), keys...).Val() {
		if lock, ok := v.(string); ok {
			executor, _, _ := strings.Cut(lock, ":")
			out[executor]++
		}
	}
	return out
}

// spread reports whether so many executors hold equal shares of the partitions.
func spread(t testing.TB, rdb *redis.Client, partitions, executors int) bool {
	held := shares(t, rdb, partitions)
	for _, n := range held {
		if n != partitions/executors {
			return false
		}
	}
	return len(held) == executors
}

// end hurts the victim, waits until the witness owns everything, and checks the history. Then the
// witness drains.
func (d *duel) end(fault string, s syscall.Signal) (*history.Report, []history.Record) {
	d.t.Helper()
	if err := d.driver.Fault("victim", fault); err != nil {
		d.t.Fatal(err)
	}
	if err := d.victim.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
	await(d.t, "the witness to own everything", 10*(defaultExpiry+takeoverSlack), func() bool { return spread(d.t, d.rdb, childPartitions, 1) })
	mark := d.flow.round.Load()
	await(d.t, "something for it to do", 10*time.Second, func() bool { return d.flow.round.Load() > mark+1 })
	d.flow.stop()
	awaitRest(d.t, d.srv, childPartitions, 1)
	d.witness.cmd.Process.Signal(syscall.SIGTERM)
	receive(d.t, "the witness to drain", d.witness.exited)
	if d.witness.err != nil {
		d.t.Errorf("the witness ended with %v", d.witness.err)
	}
	records := d.records()
	report := history.Check(records, history.Options{Processors: []string{"check"}})
	d.t.Log(report)
	if !report.OK {
		d.t.Error("the history breaks a promise")
	}
	return report, records
}

// standstills returns how long each partition of the victim paused: from the fault, or with last
// from the victim's last iteration anywhere.
func standstills(records []history.Record, last bool) []time.Duration {
	from, at := int64(0), map[int]int64{}
	owner := map[int]string{}
	for _, r := range records {
		switch {
		case r.Kind == history.Fault:
			from = r.At
			clear(at) // what moved before is the beginning
		case last && from > 0 && r.Kind == history.End && r.Worker == "victim":
			from = r.At
		case r.Kind == history.Begin:
			if owner[r.Partition] == "victim" && r.Worker == "witness" {
				at[r.Partition] = r.At
			}
			owner[r.Partition] = r.Worker
		}
	}
	var out []time.Duration
	for _, t := range at {
		out = append(out, time.Duration(t-from))
	}
	slices.Sort(out)
	return out
}

func TestKilledOwnerIsReplacedWithinItsExpiry(t *testing.T) {
	if inChild(t) {
		return
	}
	t.Parallel()
	d := startDuel(t)
	_, records := d.end(history.Kill, syscall.SIGKILL)
	took := standstills(records, false)
	if len(took) != childPartitions/2 {
		t.Fatalf("%d partitions changed hands, want %d", len(took), childPartitions/2)
	}
	t.Logf("from kill -9 to the next iteration: %v to %v (promised: %v)", took[0], took[len(took)-1], defaultExpiry+takeoverSlack)
	if took[len(took)-1] > 10*(defaultExpiry+takeoverSlack) {
		t.Error("out of all proportion")
	}
}

func TestTerminatedOwnerHandsOver(t *testing.T) {
	if inChild(t) {
		return
	}
	d := startDuel(t)
	report, records := d.end(history.Term, syscall.SIGTERM)
	receive(t, "the victim to drain", d.victim.exited)
	if d.victim.err != nil {
		t.Errorf("the victim ended with %v", d.victim.err)
	}
	took := standstills(records, true)
	if len(took) != childPartitions/2 {
		t.Fatalf("%d partitions changed hands, want %d", len(took), childPartitions/2)
	}
	t.Logf("from the end of the drain to the next iteration: %v to %v (promised: %v)", took[0], took[len(took)-1], handoverLimit)
	if took[len(took)-1] > 10*handoverLimit {
		t.Error("out of all proportion")
	}
	if report.Repeats > 0 {
		t.Errorf("%d events were processed twice", report.Repeats)
	}
}
