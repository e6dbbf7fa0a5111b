package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const (
	deadlyPartition = 5
	deadlySeq       = 40
	deadlyAttempts  = 3
	deadlyExit      = 77
)

// inDeadlyChild makes this process the worker if it was started as one. An event
// ends it.
func inDeadlyChild(t *testing.T) bool {
	name := os.Getenv(childVariable)
	if name == "" {
		return false
	}
	h, err := history.Open(os.Getenv(childHistory), name)
	if err != nil {
		t.Fatal(err)
	}
	a := newParcelApp(t, os.Getenv(childURL), name, nil)
	newTracker(h).process(a, "check", &runnel.ProcessorOptions{
		Lease: shortExpiry,
		Retry: &runnel.Retry{Max: deadlyAttempts, Order: runnel.OrderKey, MinBackoff: 100 * time.Millisecond},
	}, func(_ context.Context, e *runnel.Event, p parcel) error {
		if e.Partition == deadlyPartition && p.Seq == deadlySeq {
			os.Exit(deadlyExit)
		}
		<-time.After(time.Millisecond) // so that all partitions are busy when it happens
		return nil
	})
	// It is killed when the test is over.
	if err := a.app.Run(t.Context()); err != nil {
		t.Error(err)
	}
	return true
}

// A deadly is the run of one worker process after another, which an event ends.
type deadly struct {
	t       *testing.T
	srv     *redistest.Server
	client  *store.Client
	driver  *history.Log
	dir     string
	paths   []string
	worker  *childWorker
	started int
}

func newDeadly(t *testing.T) *deadly {
	d := &deadly{t: t, srv: redistest.Start(t), dir: t.TempDir()}
	d.paths = []string{filepath.Join(d.dir, "driver")}
	var err error
	if d.driver, err = history.Open(d.paths[0], "driver"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.driver.Close() })
	d.client, err = store.Open(redisconn.Options{URL: d.srv.URL(), Keys: keys.Keys{App: "post", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.client.Close() })
	return d
}

func (d *deadly) start() {
	d.started++
	d.worker = startChild(d.t, d.srv, d.dir, fmt.Sprint("worker", d.started))
	d.paths = append(d.paths, d.worker.path)
}

// restart starts another worker if the last one has died.
func (d *deadly) restart() {
	select {
	case <-d.worker.exited:
	default:
		return
	}
	if code := d.worker.cmd.ProcessState.ExitCode(); code != deadlyExit {
		d.t.Fatalf("worker %s ended with %d", d.worker.name, code)
	}
	if err := d.driver.Fault(d.worker.name, history.Kill); err != nil {
		d.t.Fatal(err)
	}
	d.start()
}

func (d *deadly) letters() (all []store.DeadLetter) {
	for p := range childPartitions {
		some, err := d.client.DeadLetters(d.t.Context(), d.client.Partition("parcels", "check", p), "", 100)
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

func (d *deadly) parked() bool {
	for p := range childPartitions {
		states, _, err := d.client.Retries(d.t.Context(), d.client.Partition("parcels", "check", p))
		if err != nil || len(states) > 0 {
			return true
		}
	}
	return false
}

// An event that ends its process each time, in one of 16 busy partitions, is a
// dead letter after its last attempt, and it alone; the processes are real.
func TestPoisonThatEndsItsProcess(t *testing.T) {
	if inDeadlyChild(t) {
		return
	}
	d := newDeadly(t)
	flow := startFlow(t, newProducer(t, d.srv.URL(), childPartitions), d.driver, childPartitions, 5*time.Millisecond)
	d.start()
	await(t, "the dead letter", 3*time.Minute, func() bool {
		d.restart()
		return len(d.letters()) > 0
	})
	flow.stop()
	awaitRest(t, d.srv, childPartitions, 1)
	await(t, "the parked events", time.Minute, func() bool { return !d.parked() })
	died := d.started - 1
	t.Logf("%d processes died", died)
	// The first attempt leaves no record where the acks before it were under way.
	if died < deadlyAttempts || died > deadlyAttempts+1 {
		t.Errorf("%d processes died, want %d", died, deadlyAttempts)
	}
	for _, l := range d.letters() {
		p, err := decodeParcel(l.Entry)
		if err != nil || l.Partition != deadlyPartition || p.Seq != deadlySeq || l.Reason != "crash" || l.Attempts != deadlyAttempts {
			t.Errorf("dead letter of partition %d: %+v, %v; %+v", l.Partition, p, err, l)
		}
		if err := d.driver.Write(history.Record{Kind: history.Dead, Stream: "parcels", Processor: "check", Partition: l.Partition,
			IDs: []string{l.Entry.ID}, Keys: []string{p.Key}, Seqs: []int64{p.Seq}}); err != nil {
			t.Fatal(err)
		}
	}
	records, err := history.Read(d.paths...)
	if err != nil {
		t.Fatal(err)
	}
	report := history.Check(records, history.Options{Processors: []string{"check"}, Lanes: history.LaneKey})
	t.Log(report)
	if !report.OK || report.Dead != 1 {
		t.Error("the history breaks a promise")
	}
}
