package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/history"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/internal/testredis"
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
		LockExpiry: shortExpiry,
		Retry:      &runnel.Retry{Max: deadlyAttempts, Order: runnel.RetryKey, Backoff: runnel.Backoff{First: 100 * time.Millisecond}},
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

// An event that ends its process each time, in one of 16 busy partitions, is a
// dead letter after its last attempt, and it alone; the processes are real.
func TestPoisonThatEndsItsProcess(t *testing.T) {
	if inDeadlyChild(t) {
		return
	}
	srv, dir := testredis.Start(t), t.TempDir()
	paths := []string{filepath.Join(dir, "driver")}
	driver, err := history.Open(paths[0], "driver")
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	client, err := rstream.Open(rstream.Options{URL: srv.URL(), Keys: keys.Keys{App: "post", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	flow := startFlow(t, newProducer(t, srv.URL(), childPartitions), driver, childPartitions, 5*time.Millisecond)

	died := 0
	var w *childWorker
	again := func() {
		w = startChild(t, srv, dir, fmt.Sprint("worker", died))
		paths = append(paths, w.path)
	}
	again()
	letters := func() (all []rstream.DeadLetter) {
		for p := range childPartitions {
			some, err := client.DeadLetters(t.Context(), client.Place("parcels", "check", p), "", 100)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, some...)
		}
		return all
	}
	await(t, "the dead letter", 3*time.Minute, func() bool {
		select {
		case <-w.exited:
			if code := w.cmd.ProcessState.ExitCode(); code != deadlyExit {
				t.Fatalf("worker %s ended with %d", w.name, code)
			}
			if err := driver.Fault(w.name, history.Kill); err != nil {
				t.Fatal(err)
			}
			died++
			again()
		default:
		}
		return len(letters()) > 0
	})
	flow.stop()
	awaitRest(t, srv, childPartitions, 1)
	await(t, "the parked events", time.Minute, func() bool {
		for p := range childPartitions {
			if states, _, err := client.Retries(t.Context(), client.Place("parcels", "check", p)); err != nil || len(states) > 0 {
				return false
			}
		}
		return true
	})
	t.Logf("%d processes died", died)
	// The first attempt leaves no record where the acks before it were under way.
	if died < deadlyAttempts || died > deadlyAttempts+1 {
		t.Errorf("%d processes died, want %d", died, deadlyAttempts)
	}
	for _, d := range letters() {
		p, err := decodeParcel(d.Entry)
		if err != nil || d.Partition != deadlyPartition || p.Seq != deadlySeq || d.Reason != "crash" || d.Attempts != deadlyAttempts {
			t.Errorf("dead letter of partition %d: %+v, %v; %+v", d.Partition, p, err, d)
		}
		if err := driver.Write(history.Record{Kind: history.Dead, Stream: "parcels", Processor: "check", Partition: d.Partition,
			IDs: []string{d.Entry.ID}, Keys: []string{p.Key}, Seqs: []int64{p.Seq}}); err != nil {
			t.Fatal(err)
		}
	}
	records, err := history.Read(paths...)
	if err != nil {
		t.Fatal(err)
	}
	report := history.Check(records, history.Options{Processors: []string{"check"}, Lanes: history.LaneKey})
	t.Log(report)
	if !report.OK || report.Dead != 1 {
		t.Error("the history breaks a promise")
	}
}
