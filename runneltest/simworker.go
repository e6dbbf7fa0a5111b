package runneltest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
)

// ErrKilled is what Gate returns in a worker that was killed.
var ErrKilled = errors.New("runneltest: the worker was killed")

// A Worker is one process of a Cluster. Its methods may be called concurrently.
//
// What can be done to it is done to its network, for goroutines in a bubble
// cannot be stopped from outside: its own timers go on. User code that should
// stand still, and must do nothing any more after Kill, calls Gate before each of
// its effects.
type Worker struct {
	c      *Cluster
	name   string
	app    *runnel.App
	net    *network
	cancel context.CancelFunc
	done   chan struct{} // Run returned
	err    error         // of Run; read after done

	dead chan struct{} // killed

	mu     sync.Mutex
	killed bool
	told   bool          // err has been returned to the test
	frozen int           // how many freezes are under way
	thawed chan struct{} // when they are over
}

type workerKey struct{}

// WorkerOf returns the worker in which a function runs, by its ctx, and nil
// outside of Sim.
func WorkerOf(ctx context.Context) *Worker {
	w, _ := ctx.Value(workerKey{}).(*Worker)
	return w
}

// Gate is Worker.Gate of the worker in which a function runs. If ctx ended while
// the worker was frozen it returns the cause: a process that stands still is
// given no events, so a function that calls Gate first did not begin. Outside of
// Sim it returns nil.
func Gate(ctx context.Context) error {
	w := WorkerOf(ctx)
	if w == nil {
		return nil
	}
	before := ctx.Err()
	if err := w.Gate(); err != nil {
		return err
	}
	if before == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Name returns the worker's name.
func (w *Worker) Name() string { return w.name }

// App returns the worker's app.
func (w *Worker) App() *runnel.App { return w.app }

// Gate stands for the process running: it blocks while the worker is frozen and
// returns ErrKilled once it is killed.
func (w *Worker) Gate() error {
	for {
		w.mu.Lock()
		killed, frozen, thawed := w.killed, w.frozen > 0, w.thawed
		w.mu.Unlock()
		switch {
		case killed:
			return ErrKilled
		case !frozen:
			return nil
		}
		select {
		case <-thawed:
		case <-w.dead:
		}
	}
}

// Stop drains the worker, as SIGTERM does, and returns what Run returned.
func (w *Worker) Stop() error {
	defer w.tell()
	return w.stop()
}

func (w *Worker) stop() error {
	w.cancel()
	<-w.done
	return w.err
}

// Done is closed when Run has returned.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Err returns what Run returned, nil while it runs.
func (w *Worker) Err() error {
	defer w.tell()
	select {
	case <-w.done:
		return w.err
	default:
		return nil
	}
}

// Kill ends the worker as kill -9 does: its connections are reset and it gets no
// others, so that nothing that it still does can reach Redis. What is left of it
// in the bubble ends by itself within some seconds of fake time; Gate keeps user
// code from having effects meanwhile. It does not block.
func (w *Worker) Kill() {
	w.net.cut(true) // first: what Gate ends may be stored as a failure
	w.mu.Lock()
	if !w.killed {
		close(w.dead)
	}
	w.killed, w.told = true, true
	w.mu.Unlock()
	w.cancel()
}

// Freeze lets nothing from or to the worker through for d, as Redis sees a
// process that is stopped for d: what it sent arrives afterwards, what was sent
// to it too. Gate blocks as long. It does not block.
func (w *Worker) Freeze(d time.Duration) {
	w.mu.Lock()
	if w.frozen++; w.frozen == 1 {
		w.thawed = make(chan struct{})
	}
	w.mu.Unlock()
	w.net.freeze()
	time.AfterFunc(d, func() {
		w.net.thaw()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.frozen--; w.frozen == 0 {
			close(w.thawed)
		}
	})
}

// Isolate lets nothing from or to the worker through for d, while its process
// runs on: Gate lets user code pass. It does not block.
func (w *Worker) Isolate(d time.Duration) {
	w.net.freeze()
	time.AfterFunc(d, w.net.thaw)
}

// Cut resets the worker's connections once; it may connect again.
func (w *Worker) Cut() { w.net.cut(false) }

func (w *Worker) run(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	w.err = errors.Join(w.app.Run(ctx), w.app.Close())
}

// tell notes that the error is the caller's business now.
func (w *Worker) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = true
}

func (w *Worker) asked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told
}
