package schedule

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel"
)

// ExecOptions allow a worker to run tasks that are commands. Who may store jobs may then run any command as the worker's user.
type ExecOptions struct {
	Dir string   // where commands run; default the worker's
	Env []string // "NAME=value", added to the worker's
}

const (
	// killAfter is how long a command has from SIGTERM on, which its process group gets when the context of its run ends, until SIGKILL.
	killAfter = 10 * time.Second
	// killAtStop is the same when the worker stops: its grace period is over then.
	killAtStop = 500 * time.Millisecond

	exitRetry = 75 // EX_TEMPFAIL of sysexits.h
	exitSkip  = 99
	// retryAfter is when the next attempt follows behind exitRetry.
	retryAfter = 10 * time.Second
)

// command returns the function of a task that is a command.
func (s *Scheduler) command(task *taskOf) Func {
	return func(ctx context.Context, r *Run) error {
		fill, env := factsOf(r)
		args := slices.Clone(task.Exec)
		for i := range args {
			args[i] = fill.Replace(args[i])
		}
		if task.Shell != "" {
			args = []string{"/bin/sh", "-c", task.Shell}
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = s.opts.Exec.Dir, append(append(os.Environ(), s.opts.Exec.Env...), env...)
		cmd.Stdout, cmd.Stderr = lineWriter{r.log, "stdout"}, lineWriter{r.log, "stderr"}
		ownGroup(cmd)
		// What a command has started may keep its output open.
		cmd.WaitDelay = killAfter
		if err := cmd.Start(); err != nil {
			return runnel.DeadLetter(err)
		}
		return result(wait(ctx, cmd))
	}
}

// wait waits for a command. When ctx ends, its process group is ended.
func wait(ctx context.Context, cmd *exec.Cmd) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = cmd.Wait()
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
	}
	patience := killAfter
	if errors.Is(context.Cause(ctx), ErrInterrupted) {
		patience = killAtStop
	}
	signalGroup(cmd, false)
	select {
	case <-done:
	case <-time.After(patience):
	}
	signalGroup(cmd, true) // also what ignored the first one, behind the command
	<-done
	return context.Cause(ctx)
}

// result is what the end of a command says.
func result(err error) error {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return err
	}
	switch exit.ExitCode() {
	case exitRetry:
		return runnel.RetryAfter(err, retryAfter)
	case exitSkip:
		return Skip("exit status " + strconv.Itoa(exitSkip))
	}
	return err
}

// factsOf returns what fills {job} and other placeholders, and the same as RUNNEL_JOB and so on.
func factsOf(r *Run) (fill *strings.Replacer, env []string) {
	pairs := []string{
		"{job}", r.Job, "{task}", r.Task, "{time}", r.Time.Format(time.RFC3339), "{date}", r.Time.Format(time.DateOnly),
		"{unix}", strconv.FormatInt(r.Time.Unix(), 10), "{generation}", strconv.Itoa(r.Generation), "{attempt}", strconv.Itoa(r.Attempt),
	}
	for p := range slices.Chunk(pairs, 2) {
		env = append(env, "RUNNEL_"+strings.ToUpper(strings.Trim(p[0], "{}"))+"="+p[1])
	}
	return strings.NewReplacer(pairs...), env
}
