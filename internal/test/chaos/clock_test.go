//go:build unix

package chaos

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/history"
)

// stepVariable, a seed, makes the wall clock of a process built by stepper jump.
const stepVariable = "RUNNEL_CHAOS_CLOCK"

// nowOf matches the place where the time package reads both clocks.
var nowOf = regexp.MustCompile(`func Now\(\) Time \{\n\tsec, nsec, mono := (now|runtimeNow)\(\)\n`)

// stepSource is added to the time package: the offset of the wall clock in seconds, by the
// monotonic one. It changes every second, up to a day.
const stepSource = `package time

import "syscall"

var stepSeed = func() (seed uint64) {
	text, _ := syscall.Getenv("` + stepVariable + `")
	for _, digit := range text {
		seed = seed*10 + uint64(digit-'0')
	}
	return seed
}()

func stepped(mono int64) (seconds int64) {
	if stepSeed == 0 {
		return 0
	}
	h := (stepSeed + uint64(mono/int64(Second))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return int64((h^h>>32)%172800) - 86400
}
`

var building sync.Mutex

// stepper builds this package's tests with a time package whose wall clock jumps. So no code of the
// process escapes it, and no clock need be set from outside. The monotonic clock, which Go's timers
// and our leases follow, stays as it is; SIGSTOP tests that time passes unseen.
func stepper(t *testing.T) (binary string) {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	binary = filepath.Join(builds(), "stepper")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("go env GOROOT: %v", err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(nowOf.FindAll(source, -1)); n != 1 {
		t.Fatalf("%s has %d times what the clock is read by: adapt %v to this version of Go", file, n, nowOf)
	}
	dir := builds()
	replace := map[string]string{file: filepath.Join(dir, "time.go"), filepath.Join(filepath.Dir(file), "step.go"): filepath.Join(dir, "step.go")}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"time.go": nowOf.ReplaceAll(source, []byte("$0\tsec += stepped(mono)\n")), "step.go": []byte(stepSource), "overlay.json": overlay,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay="+filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a worker whose clock jumps: %v\n%s", err, out)
	}
	return binary
}

// builds is a directory for built programs, which TestMain removes.
var builds = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "runnel-chaos-")
	if err != nil {
		panic(err)
	}
	return dir
})

// watchClock records each jump of the wall clock.
func watchClock(log *history.Log, done <-chan struct{}) {
	began := time.Now()
	off := time.Duration(0)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		now := time.Now()
		is := now.Round(0).Sub(began.Round(0)) - now.Sub(began)
		if d := is - off; d.Abs() > time.Second {
			off = is
			_ = log.Write(history.Record{Kind: history.Fault, Fault: history.Clock, Worker: os.Getenv("RUNNEL_CHAOS_WORKER"), Text: "clock " + strings.TrimSpace(d.Round(time.Second).String())})
		}
	}
}
