package conformance_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// While no server is reachable, only the app's own logger writes: the client library would report
// every dial on stderr.
func TestOutageWritesNothingToStderr(t *testing.T) {
	if url := os.Getenv(childURL); url != "" {
		a := newParcelApp(t, url, "w1", nil)
		newTracker(history.Memory()).process(a, "check", nil, nil)
		names(t, a.app.Run(t.Context()), "app post", "connection refused")
		return
	}
	t.Parallel()
	srv := redistest.Start(t)
	url := srv.URL()
	srv.Kill()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childURL+"="+url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("the worker did not run:\n%s", out)
	}
	if strings.Contains(string(out), "redis: ") {
		t.Errorf("the client library wrote:\n%s", out)
	}
}
