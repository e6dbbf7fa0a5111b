//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// fullPipe returns the write end of a full pipe without a reader.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if err := w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2]
		}
	}
	return w
}

// With a full pipe as stderr, a worker joins, owns its partitions, and ends at a signal, and a
// failing command ends with its code.
func TestAStderrThatIsNotRead(t *testing.T) {
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	cmd := exec.Command(filepath.Join(dir, "shop"), "worker", "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "RUNNEL_REDIS_URL="+srv.URL())
	cmd.Stderr = fullPipe(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	locked := func() int { return len(rdb.Keys(t.Context(), "__lock:*").Val()) }
	eventually(t, "the worker to own partitions", func() bool { return locked() > 0 })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := receive(t, ended, "end of the process"); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if n := locked(); n > 0 {
		t.Errorf("%d locks are left", n)
	}

	told := exec.Command(filepath.Join(dir, "shop"), "status", "--nonsense")
	told.Stderr = fullPipe(t)
	if err := told.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- told.Wait() }()
	t.Cleanup(func() { _ = told.Process.Kill() })
	receive(t, ended, "end of a command with a message")
	if code := told.ProcessState.ExitCode(); code != 2 {
		t.Errorf("code %d, want 2", code)
	}
}
