//go:build unix

package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "runnel-cli-test-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	for name, pkg := range map[string]string{"shop": "./testdata/shop", "runnel": "./runnel"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			return dir, errors.New(string(out))
		}
	}
	return dir, nil
})

// A process is one run of a real binary.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr redistest.Log
	ended          chan struct{}
}

func startProcess(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(filepath.Join(dir, name), args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the code is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // so that it ends a child of its own
		select {
		case <-p.ended:
		case <-time.After(5 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	})
	return p
}

// await waits for a line on stderr and returns its groups.
func (p *process) await(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	eventually(p.t, pattern, func() bool {
		select {
		case <-p.ended:
			if !re.MatchString(p.stderr.String()) {
				p.t.Fatalf("ended without %q:\n%s", pattern, p.stderr.String())
			}
		default:
		}
		return re.MatchString(p.stderr.String())
	})
	return re.FindStringSubmatch(p.stderr.String())
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// want waits for the end, and checks the code and the last line of stderr.
func (p *process) want(code int, last string) {
	p.t.Helper()
	receive(p.t, p.ended, "end of the process")
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	if got := p.cmd.ProcessState.ExitCode(); got != code || !regexp.MustCompile(last).MatchString(lines[len(lines)-1]) {
		p.t.Errorf("code %d, want %d; the last line should match %q:\n%s", got, code, last, p.stderr.String())
	}
}

// devWorker starts a worker with --dev, and returns its server's URL, too.
func devWorker(t *testing.T, name string, args ...string) (*process, string) {
	t.Helper()
	return devWorkerWith(t, "100ms", name, args...)
}

func devWorkerWith(t *testing.T, grace, name string, args ...string) (*process, string) {
	t.Helper()
	p := startProcess(t, []string{"RUNNEL_GRACE=" + grace}, name, append(append([]string{"worker"}, args...), "--dev")...)
	url := p.await(`RUNNEL_REDIS_URL=(\S+) \S+ send orders '\{"customer":"","do":""\}'`)[1]
	p.await(`partitions gained`)
	return p, url
}

func sendTo(t *testing.T, url, record string) {
	t.Helper()
	p := startProcess(t, []string{"RUNNEL_REDIS_URL=" + url}, "shop", "send", "orders", record)
	p.want(0, "^$")
	if !strings.HasPrefix(p.stdout.String(), "orders ") {
		t.Errorf("stdout %q", p.stdout.String())
	}
}

func TestSignalDrains(t *testing.T) {
	tier.Slow(t)
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the signal is ignored, as under nohup")
			}
			p, url := devWorker(t, "shop")
			sendTo(t, url, `{"customer":"ada"}`)
			// The user's own line, through slog's default.
			p.await(`INFO  order customer=ada do="" worker=\S+ stream=orders processor=printer partition=\d+ event=\d+/\d+-\d+\n`)
			p.signal(sig)
			p.want(0, "worker stopped")
		})
	}
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	p, url := devWorkerWith(t, "1m", "shop")
	sendTo(t, url, `{"customer":"ada","do":"hang"}`)
	p.await(`do=hang`)
	p.signal(os.Interrupt)
	p.await(`INFO  waiting for functions .*partitions=\d+ after=\S+ grace=1m0s`)
	p.await(`shop: ending; Ctrl-C again ends it at once`)
	p.signal(os.Interrupt)
	p.want(130, "second signal: exiting at once")
}

func TestExitCodesOfAWorker(t *testing.T) {
	tests := []struct{ do, last string }{
		{"panic", `^shop: app shop: stream orders partition \d+ processor printer: event \d+/\d+-\d+: panic: boom; mend what fails .* processor reset orders/printer --to \d+/\d+-\d+; see docs/troubleshooting.md#worker-halts$`},
		{"fail", `^shop: app shop: stream orders partition \d+ processor printer: event \d+/\d+-\d+: no paper; no ink; mend what fails .* processor reset orders/printer --to \d+/\d+-\d+; see docs/troubleshooting.md#worker-halts$`},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			p, url := devWorker(t, "shop")
			sendTo(t, url, `{"customer":"ada","do":"`+tt.do+`"}`)
			p.want(1, tt.last)
		})
	}
	t.Run("hang", func(t *testing.T) {
		p, url := devWorker(t, "shop")
		sendTo(t, url, `{"customer":"ada","do":"hang"}`)
		p.await(`do=hang`)
		p.signal(syscall.SIGTERM)
		p.want(1, `^shop: app shop: stream orders: processor printer: partitions \d+: the function did not return`)
	})
	t.Run("no server", func(t *testing.T) {
		tier.Slow(t) // a worker tries for 5 s; TestNoServer does this without a process
		p := startProcess(t, nil, "shop", "worker", "--redis-url", "redis://:secret@127.0.0.1:1")
		p.want(1, `^shop: no Redis at 127\.0\.0\.1:1 \(connect: connection refused\): start redis-server, or`)
		if n := strings.Count(p.stderr.String(), "\n"); n != 1 {
			t.Errorf("%d lines:\n%s", n, p.stderr.String())
		}
	})
}

func TestInterruptedSend(t *testing.T) {
	server := newShop(t, nil)
	server.send(1)
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd := exec.Command(filepath.Join(dir, "runnel"), "--app", "shop", "sendmany", "orders", "-")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := w.WriteString(jsonLines(3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three entries", func() bool { return server.count() == 4 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code is in ProcessState
	if code := cmd.ProcessState.ExitCode(); code != 1 || out.String() != "sent 3, failed 0\n" || !strings.Contains(errs.String(), "interrupted: nothing after line 3 was sent") {
		t.Errorf("code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}

func TestWorkerOfAPackage(t *testing.T) {
	tier.Sequential(t)
	tier.Slow(t)
	t.Run("drains", func(t *testing.T) {
		p, url := devWorker(t, "runnel", "./testdata/shop", "--processors", "printer")
		sendTo(t, url, `{"customer":"ada"}`)
		p.await(`order customer=ada`)
		p.signal(syscall.SIGTERM)
		p.want(0, "worker stopped")
	})
	t.Run("fails", func(t *testing.T) {
		p, url := devWorker(t, "runnel", "./testdata/shop")
		sendTo(t, url, `{"customer":"ada","do":"fail"}`)
		p.want(1, `^shop: app shop: .*no paper; no ink; mend what fails .* processor reset orders/printer --to \d+/\d+-\d+; see docs/troubleshooting.md#worker-halts$`)
	})
	t.Run("second signal", func(t *testing.T) {
		p, url := devWorker(t, "runnel", "./testdata/shop")
		sendTo(t, url, `{"customer":"ada","do":"hang"}`)
		p.await(`do=hang`)
		p.signal(os.Interrupt)
		p.await(`partitions released`)
		p.signal(os.Interrupt)
		p.want(130, "second signal: exiting at once")
	})
}

func TestWorkerOfAPackageThatCannotBeBuilt(t *testing.T) {
	tests := []struct {
		name, pkg string
		env       []string
		last      string
	}{
		{"broken", "./testdata/broken", nil, `^runnel: go build \./testdata/broken: exit status 1$`},
		{"no program", "./testdata/library", nil, `^runnel: \./testdata/library is not a main package$`},
		{"no package", "./testdata/nothing", nil, `^runnel: go build \./testdata/nothing: `},
		{"no Go", "./testdata/shop", []string{"PATH=/nowhere"}, `^runnel: the Go toolchain is not installed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			startProcess(t, tt.env, "runnel", "worker", tt.pkg).want(1, tt.last)
		})
	}
}
