package runneltest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/test/tier"

	"github.com/runnel-go/runnel/internal/test/history"
)

// Fake time alone does not make a storm the same each time it is played: which of
// several goroutines runs first, which case of a select is taken, in which order a
// map is ranged over, what global random numbers and executor IDs are, and whether a
// mutex is starved is up to the runtime, partly by real time. buildExactly builds the
// tests with a runtime that takes all of this from one fixed seed, and plays them on
// one thread of Go code without collecting garbage. What the history holds then, down
// to the nanosecond, follows from the seed and the program.

// historyVariable names a file for the history of the storm that is played. A storm
// is played exactly if it is set.
const historyVariable = "RUNNEL_SIM_HISTORY"

// exactSeeds is how many storms TestSimExactly plays, by SEEDS of make sim-exact.
var exactSeeds = flag.Int("exact", 1, "how many seeds TestSimExactly plays, from -seed on")

// anEdit replaces a text that stands exactly once in a file.
type anEdit struct{ file, old, new string }

// runtimeEdits are of Go's sources, moduleEdits of ours.
var (
	runtimeEdits = []anEdit{
		{"runtime/rand.go", "	globalRand.state.Init(*seed)\n", "	*seed = [32]byte{1}\n	globalRand.state.Init(*seed)\n"},
		// One state, whichever thread runs; those that come later have none of it.
		{"runtime/rand.go", "	mp := getg().m\n	c := &mp.chacha8\n", "	mp := &m0\n	c := &mp.chacha8\n"},
		{"runtime/rand.go", "	mp := getg().m\n	// Implement wyrand", "	mp := &m0\n	// Implement wyrand"},
		{"runtime/rand.go", "	mp.cheaprand = rand()\n", "	if mp == &m0 {\n		mp.cheaprand = rand()\n	}\n"},
		// Who looks at real time and takes a goroutine its turn, or starts a thread.
		{"runtime/proc.go", "const haveSysmon = GOARCH != \"wasm\"", "const haveSysmon = false"},
		// Threads that meet, because the machine is busy, take nothing of that state.
		{"runtime/lock_spinbit.go", "	antiStarve := cheaprandn(mutexTailWakePeriod) == 0\n", "	antiStarve := true\n"},
		{"runtime/mprof.go", "	if cheaprandn(gTrackingPeriod) == 0 {\n", "	if false {\n"},
		{"runtime/proc.go", "stealOrder.start(cheaprand()); !enum.done()", "stealOrder.start(0); !enum.done()"},
		{"internal/sync/mutex.go", "	starvationThresholdNs = 1e6\n", "	starvationThresholdNs = 1 << 60\n"},
	}
	moduleEdits = []anEdit{
		{"internal/store/partition.go", `"crypto/rand"`, `"math/rand/v2"`},
		{"internal/store/partition.go", "	rand.Read(b[:]) // never fails\n", "	for i := range b {\n		b[i] = byte(rand.Uint32())\n	}\n"},
	}
)

// TestSimExactly plays storms twice: both plays have the same history, record by
// record and nanosecond by nanosecond. Left to chance, plays differ from the second
// record on.
func TestSimExactly(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	binary := buildExactly(t)
	for n := max(*seed, 1); n < max(*seed, 1)+uint64(*exactSeeds); n++ {
		one, other := playExactly(t, binary, n), playExactly(t, binary, n)
		if !bytes.Equal(one, other) {
			t.Errorf("seed %d: two plays differ from line %d on", n, differ(one, other))
		}
		if lines := bytes.Count(one, []byte("\n")); lines < 1000 {
			t.Errorf("seed %d: a history of %d records", n, lines)
		}
		t.Logf("seed %d: %d bytes", n, len(one))
		if n > 1 && bytes.Equal(one, playExactly(t, binary, n-1)) {
			t.Errorf("seed %d has the history of the one before", n)
		}
	}
}

func differ(a, b []byte) (line int) {
	one, other := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for line < min(len(one), len(other)) && bytes.Equal(one[line], other[line]) {
		line++
	}
	return line + 1
}

// buildExactly builds the tests of this package.
func buildExactly(t *testing.T) (binary string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("go env GOROOT: %v", err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sources := map[string]string{}
	mutate := func(base string, edits []anEdit) {
		for _, e := range edits {
			path := filepath.Join(base, filepath.FromSlash(e.file))
			if sources[path] == "" {
				source, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				sources[path] = string(source)
			}
			if n := strings.Count(sources[path], e.old); n != 1 {
				t.Fatalf("%s has the text %d times, want once; is it another version of Go?\n%s", path, n, e.old)
			}
			sources[path] = strings.Replace(sources[path], e.old, e.new, 1)
		}
	}
	mutate(filepath.Join(strings.TrimSpace(string(out)), "src"), runtimeEdits)
	mutate(root, moduleEdits)
	replace := map[string]string{}
	for path, source := range sources {
		replace[path] = filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, string(filepath.Separator)), string(filepath.Separator), "-"))
		writeFile(t, replace[path], []byte(source))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "overlay.json"), overlay)
	binary = filepath.Join(dir, "sim.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay="+filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // C makes threads of its own
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the storms with a runtime without chance: %v\n%s", err, out)
	}
	return binary
}

// playExactly plays one storm in a process of its own, and returns its history.
func playExactly(t *testing.T, binary string, n uint64) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history")
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^TestSimSeeds$", "-seed", fmt.Sprint(n))
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1", historyVariable + "=" + path}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("seed %d: %v\n%s", n, err, out)
	}
	history, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// stir lets the seed of a storm that is played exactly choose what chance does there.
func stir(n uint64) {
	if os.Getenv(historyVariable) == "" {
		return
	}
	ready := make(chan struct{})
	close(ready)
	for range n % 100_000 {
		rand.Uint64()
		select { // of two that are ready the runtime takes one by chance
		case <-ready:
		case <-ready:
		}
	}
}

// keepHistory writes the history of a storm down that is played exactly.
func keepHistory(t *testing.T, records []history.Record) {
	path := os.Getenv(historyVariable)
	if path == "" {
		return
	}
	var lines bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	writeFile(t, path, lines.Bytes())
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
