package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// What happens when, from the start of the first worker.
const (
	secondStarts = 2 * time.Second
	killed       = 6 * time.Second
	sendingEnds  = 11 * time.Second
	ends         = 12 * time.Second
	between      = 700 * time.Millisecond // two orders of a customer
)

// customers have a partition each.
var customers = []string{"ada", "bob", "cyd", "eve"}

// A line is a line of a worker's output, with its time.
type line struct {
	at   time.Duration
	text string
}

// A pane is the output of one worker.
type pane struct {
	worker string
	pid    int
	lines  []line
}

type run struct {
	panes  [2]pane
	killed line // the command
	ended  line // what became of the worker
	sent   int  // of each customer
}

// A recorder notes lines as they come.
type recorder struct {
	began time.Time
	run   run
}

// A step is what is done at a time of the recording.
type step struct {
	at time.Duration
	do func() error
}

// record starts a server and two workers, kills the first one, and ends what it started.
func record(ctx context.Context) (run, error) {
	server, stop, err := redistest.Launch()
	if err != nil {
		return run{}, err
	}
	defer stop()
	url := server.URL()
	app, orders := newApp(&runnel.Options{RedisURL: url})
	defer app.Close()

	r := &recorder{began: time.Now()}
	ctx, kill := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer kill()
	a, err := r.start(ctx, &reading, url, 0, "a")
	if err != nil {
		return run{}, err
	}
	var b *exec.Cmd
	steps := []step{
		{secondStarts, func() (err error) { b, err = r.start(ctx, &reading, url, 1, "b"); return err }},
		{killed, func() error { return r.kill(ctx, a) }},
		{ends, func() error { return errors.Join(b.Process.Signal(os.Interrupt), b.Wait()) }},
	}
	for at := time.Second; at < sendingEnds; at += between {
		steps = append(steps, step{at, func() error { return r.send(ctx, orders) }})
	}
	slices.SortStableFunc(steps, func(x, y step) int { return cmp.Compare(x.at, y.at) })
	for _, s := range steps {
		if err := r.until(ctx, s.at); err != nil {
			return run{}, err
		}
		if err := s.do(); err != nil {
			return run{}, err
		}
	}
	reading.Wait()
	last := &r.run.panes[1]
	last.lines = slices.DeleteFunc(last.lines, func(l line) bool { return l.at >= ends }) // how it is ended
	return r.run, nil
}

// until waits for a time of the recording.
func (r *recorder) until(ctx context.Context, at time.Duration) error {
	select {
	case <-time.After(time.Until(r.began.Add(at))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *recorder) send(ctx context.Context, orders *runnel.Stream[order]) error {
	r.run.sent++
	for _, customer := range customers {
		if err := orders.Send(ctx, order{customer, r.run.sent}); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) start(ctx context.Context, reading *sync.WaitGroup, url string, i int, name string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "worker", "--redis-url", url, "--log-level", "error")
	cmd.Env = append(os.Environ(), "RUNNEL_WORKER_NAME="+name)
	cmd.Stderr = os.Stderr
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	err = errors.Join(cmd.Start(), w.Close())
	if err != nil {
		return nil, err
	}
	p := &r.run.panes[i]
	p.worker, p.pid = name, cmd.Process.Pid
	reading.Go(func() {
		defer out.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines = append(p.lines, line{time.Since(r.began), lines.Text()})
		}
	})
	return cmd, nil
}

// kill ends a worker as an operator would, at a terminal.
func (r *recorder) kill(ctx context.Context, worker *exec.Cmd) error {
	cmd := exec.CommandContext(ctx, "kill", "-9", strconv.Itoa(worker.Process.Pid))
	r.run.killed = line{time.Since(r.began), "kill -9 " + cmd.Args[2]}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	err := worker.Wait()
	if err == nil {
		return errors.New("the worker ended by itself")
	}
	r.run.ended = line{time.Since(r.began), err.Error()}
	return nil
}
