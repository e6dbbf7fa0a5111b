package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// A Clock is the wall clock of one server.
type Clock struct {
	t    testing.TB
	file string
}

// StartWithClock is Start for a server whose wall clock can be set. It needs gcc.
func StartWithClock(t testing.TB, args ...string) (*Server, *Clock) {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatalf("start redis-server with a clock: %v", err)
	}
	if out, err := exec.Command("gcc", "-O1", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("start redis-server with a clock: gcc, which scripts/setup-test.sh installs: %v\n%s", err, out)
	}
	c := &Clock{t: t, file: filepath.Join(dir, "offset")}
	c.Set(0)
	s := &Server{args: args, password: argument(args, "--requirepass"), env: []string{"LD_PRELOAD=" + library, "RUNNEL_TEST_CLOCK=" + c.file}}
	return launchNew(t, s), c
}

// Set sets the clock to so much after the machine's, in one step; negative: before it.
func (c *Clock) Set(offset time.Duration) {
	c.t.Helper()
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600) // in place: the server has mapped it
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(offset)), 0)
		f.Close()
	}
	if err != nil {
		c.t.Fatalf("set the clock of redis-server: %v", err)
	}
}
