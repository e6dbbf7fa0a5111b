package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
)

const (
	tellEvery = 20 * time.Millisecond
	// pollEvery is how often workers are polled.
	pollEvery = 10 * time.Millisecond
)

// A Told is a line that a worker process prints: every so often how far it is, and
// with Each also every event that it has handled.
type Told struct {
	At    int64 // when, in ns of the machine's clock
	Owned int   // partitions whose function runs; with Event the number of its partition
	Count int64 // events handled so far
	Slept int64 // how long handlers have slept so far, in ns

	Event bool  // it is an event
	Sent  int64 // when it was sent, in ns
}

// runnelWorker is a worker that reports its progress until its standard input ends. Then it drains,
// as at SIGTERM.
func runnelWorker(ctx context.Context, t Task) (Result, error) {
	var owned atomic.Int64
	m := newMeter(math.MaxInt)
	app := newApp(t)
	defer app.Close()
	opts := &runnel.ProcessorOptions{}
	if t.Each {
		opts.Start = runnel.StartEnd
	}
	t.stream(app).Process(t.Run, func(_ context.Context, events *runnel.Events[Order]) error {
		owned.Add(1)
		defer owned.Add(-1)
		for e := range events.Raw() {
			m.sleep(t.Work)
			m.add(1)
			if t.Each {
				at, err := stamped(e.Data())
				if err != nil {
					return err
				}
				tell(Told{Owned: e.Partition, Event: true, Sent: at.UnixNano()})
			}
		}
		return nil
	}, opts)
	err := runUntil(ctx, app, func(ctx context.Context) error {
		ended := make(chan struct{})
		go func() {
			io.Copy(io.Discard, os.Stdin)
			close(ended)
		}()
		for {
			select {
			case <-ended:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(tellEvery):
				tell(Told{Owned: int(owned.Load()), Count: m.n.Load(), Slept: m.slept.Load()})
			}
		}
	})
	return Result{"count": float64(m.n.Load())}, err
}

// tell prints a line. It may be called concurrently.
func tell(line Told) {
	line.At = time.Now().UnixNano()
	json.NewEncoder(os.Stdout).Encode(line) // in one write. The reader may be gone: then this process ends soon
}

// A workerProcess is a runnelWorker and its reports so far.
type workerProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when it has ended

	mu     sync.Mutex
	told   []Told // how far it was
	events []Told
}

// startWorker starts a worker. One of stop and kill must be called.
func startWorker(ctx context.Context, t Task) (*workerProcess, error) {
	t.Role = "runnel-worker"
	cmd, err := childCommand(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	stdin, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	w := &workerProcess{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		w.listen(out)
		cmd.Wait() // how one ends that was killed says nothing
		close(w.done)
	}()
	return w, nil
}

func (w *workerProcess) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var t Told
		if json.Unmarshal(lines.Bytes(), &t) != nil || t.At == 0 {
			continue // half a line of one that was killed, or the result
		}
		w.mu.Lock()
		if t.Event {
			w.events = append(w.events, t)
		} else {
			w.told = append(w.told, t)
		}
		w.mu.Unlock()
	}
}

func (w *workerProcess) handled() []Told {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func (w *workerProcess) stop() {
	w.stdin.Close()
	<-w.done
}

func (w *workerProcess) kill() {
	w.cmd.Process.Kill() // an error says that it has ended
	<-w.done
}

// awaitShares waits until the workers own all partitions, each as many as the others or one more.
func awaitShares(ctx context.Context, ws []*workerProcess, partitions int) error {
	for {
		sum, most, least := 0, 0, partitions
		for _, w := range ws {
			_, last := w.between(0, math.MaxInt64)
			sum, most, least = sum+last.Owned, max(most, last.Owned), min(least, last.Owned)
		}
		if sum == partitions && most-least <= 1 {
			return nil
		}
		for _, w := range ws {
			select {
			case <-w.done:
				return fmt.Errorf("a worker has ended: %v", w.cmd.ProcessState)
			default:
			}
		}
		if err := rest(ctx, pollEvery); err != nil {
			return fmt.Errorf("wait for %d workers to share %d partitions: %w", len(ws), partitions, err)
		}
	}
}
