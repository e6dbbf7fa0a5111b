package binary

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// TestAppWithCommandsIsSmall bounds the binary of an app with all commands. It has 18.4 MB, of which tables are 0.5: package cli
// imports neither a client of Prometheus nor protobuf (2 MB) nor net/http/pprof (0.2 MB more than
// runtime/pprof). slices.SortFunc over a type of struct is 10 to 25 kB, sort.Slice is none.
func TestAppWithCommandsIsSmall(t *testing.T) {
	tier.Slow(t)
	name := filepath.Join(t.TempDir(), "basic")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", name, "github.com/runnel-go/runnel/examples/basic")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(binary))
	const most = 18_500_000
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" && len(binary) > most {
		t.Errorf("the binary has %d bytes, more than %d", len(binary), most)
	}
	// A command of Redis that nothing here sends. Where methods may be called by a name that
	// is not a constant, as text/template does, the linker keeps it with all others.
	if bytes.Contains(binary, []byte("cmdable.FTHybridWithArgs")) {
		t.Error("the linker keeps every exported method: go build -ldflags=-dumpdep shows which function has <ReflectMethod>")
	}
}
