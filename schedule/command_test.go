//go:build unix

// Tasks that are commands.

package schedule_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// jobFile is a job whose times are all there at once.
const jobFile = `job: nightly
triggers:
  - {name: tick, every: 1m, start: 2026-11-20T00:00:00Z, end: 2026-11-20T00:00:30Z}
tasks:
  - {name: args, after: [trigger/tick], exec: [echo, "{job} {task} {time} {date} {unix} {generation} {attempt}"]}
  - {name: slow, after: [trigger/tick], shell: "echo begins; trap '' TERM; sleep 301 & sleep 301", timeout: 1s}
  - {name: heeds, after: [trigger/tick], shell: "sleep 302 & sleep 302", timeout: 1s}
  - {name: skips, after: [trigger/tick], shell: "echo $RUNNEL_JOB/$RUNNEL_TASK >&2; exit 99"}
  - {name: again, after: [trigger/tick], shell: "test $RUNNEL_ATTEMPT = 2 || exit 3", retry: {max: 2, min_backoff: 100ms}}
  - {name: missing, after: [trigger/tick], exec: [/no/such/command], retry: {max: 5}}
  - {name: report, after: [task/args, task/again], shell: "for i in 1 2 3; do echo line $i; done; printf end"}
  - {name: alarm, on_failure: [task/heeds], exec: [echo, alarm]}
`

// A program is the plain binary with a server of its own.
type program struct {
	*testing.T
	path, url string
}

// try runs a command of the app, and returns its exit code and what it prints.
func (p *program) try(args ...string) (code int, out string) {
	cmd := exec.Command(p.path, append([]string{"--app", "ops"}, args...)...)
	cmd.Env = append(os.Environ(), "RUNNEL_REDIS_URL="+p.url)
	text, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(text)
}

// run is try with a code that is wanted.
func (p *program) run(code int, args ...string) string {
	p.Helper()
	got, out := p.try(args...)
	if got != code {
		p.Errorf("%v: exit code %d, want %d: %s", args, got, code, out)
	}
	return out
}

// worker starts a worker, and stops it at the end of the test or by the returned function.
func (p *program) worker(args ...string) (stop func()) {
	p.Helper()
	cmd, log := exec.Command(p.path, append([]string{"--app", "ops", "schedule", "worker"}, args...)...), &bytes.Buffer{}
	cmd.Env, cmd.Stderr = append(os.Environ(), "RUNNEL_REDIS_URL="+p.url), log
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			p.Errorf("worker: %v: %s", err, log)
		}
	}
	p.Cleanup(stop)
	return stop
}

// until waits until a command succeeds and prints all of some texts.
func (p *program) until(texts []string, args ...string) {
	p.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		code, out := p.try(args...)
		missing := ""
		if code != 0 {
			missing = "success"
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("%v has no %q:\n%s", args, missing, out)
		}
	}
}

func build(t *testing.T) *program {
	t.Helper()
	tier.Server(t)
	p := &program{t, filepath.Join(t.TempDir(), "runnel"), redistest.Start(t).URL()}
	if out, err := exec.Command("go", "build", "-o", p.path, "../cli/runnel").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	return p
}

// With nothing but the plain binary and a server, commands run at their times.
func TestCommandsRunWithoutAnyCode(t *testing.T) {
	tier.Sequential(t)
	p := build(t)
	file := filepath.Join(t.TempDir(), "nightly.yaml")
	if err := os.WriteFile(file, []byte(jobFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := p.run(1, "schedule", "apply", file); !strings.Contains(out, "start a worker") {
		t.Errorf("apply without a scheduler: %s", out)
	}
	stop := p.worker()
	p.until([]string{"nightly"}, "schedule", "apply", file, "--id", "first")
	p.until([]string{" retry"}, "schedule", "ls") // this worker runs no commands
	stop()
	p.worker("--allow-exec", "--concurrency", "20")
	p.until([]string{"4 success", "2 timeout", "1 skipped", "1 failed"}, "schedule", "ls")
	for task, want := range map[string]string{
		"args":   "stdout: nightly args 2026-11-20T00:00:00Z 2026-11-20 1795132800 1 ",
		"skips":  "stderr: nightly/skips",
		"report": "stdout: end",
		"slow":   "stdout: begins",
		"alarm":  "stdout: alarm",
	} {
		if out := p.run(0, "schedule", "logs", "nightly/"+task, "last", "--follow"); !strings.Contains(out, want) {
			t.Errorf("logs of %s: %q, want %q", task, out, want)
		}
	}
	if out := p.run(0, "schedule", "runs", "nightly/missing", "last"); !strings.Contains(out, "no such file") || !strings.Contains(out, "failed") {
		t.Errorf("a command that is not there: %s", out)
	}
	// The whole process group ends at a timeout, also what ignores SIGTERM.
	for _, sleep := range []string{"sleep 301", "sleep 302"} {
		out, _ := exec.CommandContext(context.Background(), "pgrep", "-f", "^"+sleep).CombinedOutput()
		if len(out) > 0 {
			t.Errorf("%s runs on: %s", sleep, out)
		}
	}
}
