// Slow reads what go test -json printed of the quick tier, and fails if one of its tests is
// slow. What took more than 5 s there runs anew, alone. A test is judged by its subtests.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const most = 5 * time.Second

// isSlow reports whether a test waits for more than 5 s, or computes for more than 5 s on a
// machine twice as fast. Of a busy machine it has a quarter of a core at least.
func isSlow(wall, cpu time.Duration) bool { return cpu > 2*most || wall-4*cpu > most }

// suspects returns the tests that took long, each with its package, "package test".
func suspects(results io.Reader) (long []string, err error) {
	took := map[string]float64{}
	for in := json.NewDecoder(results); err == nil; {
		var e struct {
			Action, Package, Test string
			Elapsed               float64 // in seconds
		}
		if err = in.Decode(&e); e.Test != "" && e.Action == "pass" {
			took[e.Package+" "+e.Test] = e.Elapsed
		}
	}
	if err == io.EOF && len(took) > 0 {
		err = nil
	}
	for test := range took { // a parent ends after its subtests
		if i := strings.LastIndexByte(test, '/'); i > strings.IndexByte(test, ' ') {
			took[test[:i]] = 0
		}
	}
	for test, seconds := range took {
		if seconds > most.Seconds() {
			long = append(long, test)
		}
	}
	return long, err
}

// alone runs one test in a process of its own.
func alone(test, tmp string) (wall, cpu time.Duration, err error) {
	pkg, name, _ := strings.Cut(test, " ")
	binary := filepath.Join(tmp, "test")
	failed := exec.Command("go", "test", "-vet", "off", "-c", "-o", binary, pkg).Run()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	cmd := exec.Command(binary, "-test.run", "^"+strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^")+"$")
	cmd.Dir = strings.TrimSpace(string(dir))
	began := time.Now()
	if err := errors.Join(failed, err, cmd.Run()); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", test, err)
	}
	return time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func main() {
	tmp, err := os.MkdirTemp("", "runnel-slow-")
	tests, failed := suspects(os.Stdin)
	for _, test := range tests {
		wall, cpu, e := alone(test, tmp)
		if e == nil && isSlow(wall, cpu) {
			e = fmt.Errorf("%s took %v, of CPU %v: internal/test/tier has a tier for it", test, wall, cpu)
		}
		failed = errors.Join(failed, e)
	}
	if failed = errors.Join(err, failed, os.RemoveAll(tmp)); failed != nil {
		fmt.Fprintln(os.Stderr, failed)
		os.Exit(1)
	}
}
