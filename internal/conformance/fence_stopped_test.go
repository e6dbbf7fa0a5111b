//go:build unix

package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/faultproxy"
	"github.com/runnel-go/runnel/internal/history"
)

const (
	stoppedName       = "stopped"
	stopAt            = 100 // the event of partition 0 in whose iteration the worker stops itself
	stoppedPartitions = 8
)

func init() { children["stop-yourself"] = stopYourself }

// stopYourself is a worker that ends up in SIGSTOP in the middle of an
// iteration. Its arguments are the server's URL and the file of its history.
func stopYourself(args []string) int {
	log, err := history.Open(args[1], stoppedName)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	r := &rig{stream: streamName, processor: processorName, events: map[string]chan struct{}{}}
	app := runnel.New("fence", &runnel.Options{RedisURL: args[0], Worker: stoppedName})
	jobs := runnel.NewStream(app, streamName, func(j job) string { return j.Key }, &runnel.StreamOptions{Partitions: stoppedPartitions, Size: 1 << 40})
	begun := 0 // of partition 0, whose iterations follow one another
	r.hook(func(_ context.Context, e *runnel.Event) error {
		if e.Partition != 0 {
			return nil
		}
		if begun++; begun != stopAt {
			return nil
		}
		if err := log.Fault(stoppedName, history.Stop); err != nil {
			return err
		}
		return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	})
	jobs.Process(processorName, runnel.Each(func(ctx context.Context, e *runnel.Event, j job) error {
		return r.iterate(ctx, log, e, j)
	}), &runnel.ProcessorOptions{LockExpiry: time.Second})
	if err := app.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// logTo makes the log a file, which another process adds to with its own.
func (r *rig) logTo(own, other string) {
	r.t.Helper()
	log, err := history.Open(own, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { log.Close() })
	r.log = log
	r.records = func() []history.Record {
		records, err := history.Read(own, other)
		if err != nil {
			r.t.Error(err)
		}
		return records
	}
}

// A worker stands still in the middle of its iterations until another one has its
// partitions, and goes on then, with events at hand: it ends those iterations and
// begins no other ones. It has one thread to run on, and more consumers that want
// it than timers can go before.
func TestStoppedOwnerBeginsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, stoppedPartitions, time.Second)
	dir := t.TempDir()
	ownPath, childPath := filepath.Join(dir, "own.ndjson"), filepath.Join(dir, "child.ndjson")
	r.logTo(ownPath, childPath)
	last := make([]string, stoppedPartitions)
	for p := range last {
		ids := r.add(p, 1000)
		last[p] = ids[len(ids)-1]
	}
	child := exec.Command(os.Args[0], "stop-yourself", r.srv.URL(), childPath)
	child.Env = append(os.Environ(), "GOMAXPROCS=1")
	out := &output{}
	child.Stdout, child.Stderr = out, out
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	t.Cleanup(func() {
		child.Process.Kill()
		if t.Failed() {
			t.Logf("output of the stopped worker:\n%s", tail(out.String()))
		}
	})
	r.eventually("the worker stops itself", func() bool {
		if _, err := os.Stat(childPath); err != nil {
			return false
		}
		for _, rec := range r.records() {
			if rec.Kind == history.Fault {
				return true
			}
		}
		return false
	})
	m := r.startVia("w2", faultproxy.Start(t, r.srv.Addr()))
	for p, id := range last {
		r.await(p, id)
	}
	r.fault(stoppedName, history.Cont)
	child.Process.Signal(syscall.SIGCONT)
	r.eventually("the stopped worker joins again", func() bool {
		return r.executor(&member{name: stoppedName}) != "" && len(r.group().Executors) == 2
	})
	child.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the stopped worker ended with %v", err)
		}
	case <-time.After(patience):
		t.Errorf("the stopped worker does not end")
	}
	r.ready(m)
	if report := r.finish(); report.Epochs < 2*stoppedPartitions || report.Epochs > 3*stoppedPartitions {
		t.Errorf("%v", report)
	}
}
