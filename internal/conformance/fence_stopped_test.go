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
	stoppedName = "stopped"
	stopAt      = 100 // the event in whose iteration the worker stops itself
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
	jobs := runnel.NewStream(app, streamName, func(j job) string { return j.Key }, &runnel.StreamOptions{Partitions: 1, Size: 1 << 40})
	jobs.Process(processorName, func(_ context.Context, events *runnel.Events[job]) error {
		for e, j := range events.All() {
			r.hook(nil)
			if j.Seq == stopAt {
				r.hook(func(context.Context, *runnel.Event) error {
					if err := log.Fault(stoppedName, history.Stop); err != nil {
						return err
					}
					return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				})
			}
			if err := r.iterate(events.Context(), log, e, j); err != nil {
				return err
			}
		}
		return nil
	}, &runnel.ProcessorOptions{LockExpiry: time.Second})
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

// A worker stands still in the middle of an iteration until another one has its
// partition, and goes on then, with events at hand: it ends that iteration and
// begins no other one. It has one thread to run on, so that nothing comes in
// between.
func TestStoppedOwnerBeginsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, time.Second)
	dir := t.TempDir()
	ownPath, childPath := filepath.Join(dir, "own.ndjson"), filepath.Join(dir, "child.ndjson")
	r.logTo(ownPath, childPath)
	ids := r.add(0, 1000)
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
	r.await(0, ids[len(ids)-1])
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
	if report := r.finish(); report.Epochs != 2 && report.Epochs != 3 {
		t.Errorf("%v", report)
	}
}
