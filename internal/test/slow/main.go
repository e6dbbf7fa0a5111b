// Slow reads what go test -json prints of the quick tier, shows what go test would print, and
// fails if a test failed. With -check it also fails if a test is slow: a test that took more than
// 5 s runs anew, alone. A test is judged by its subtests.
package main

import (
	"encoding/json"
	"errors"
	"flag"
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

type results struct {
	took   map[string]float64 // in seconds, by "package test"
	failed bool
}

// read reads the events of go test -json. It shows the last line of each package that passed, and
// all output of what failed.
func read(events io.Reader, show io.Writer) (*results, error) {
	r, output := &results{took: map[string]float64{}}, map[string][]string{}
	for in := json.NewDecoder(events); ; {
		var e struct {
			Action, Package, Test, ImportPath, Output string
			Elapsed                                   float64 // in seconds
		}
		if err := in.Decode(&e); err == io.EOF && len(r.took) > 0 {
			return r, nil
		} else if err != nil {
			return r, err
		}
		of := strings.TrimSpace(e.Package + " " + e.Test)
		switch e.Action {
		case "output":
			output[of] = append(output[of], e.Output)
		case "build-output":
			fmt.Fprint(show, e.Output)
		case "fail", "build-fail":
			r.failed = true
			fmt.Fprint(show, strings.Join(output[of], ""))
			delete(output, of)
		case "pass", "skip":
			if lines := output[of]; e.Test == "" && len(lines) > 0 {
				fmt.Fprint(show, lines[len(lines)-1])
			} else if e.Test != "" && e.Action == "pass" {
				r.took[of] = e.Elapsed
			}
			delete(output, of)
		}
	}
}

// suspects returns the tests that took long, each with its package, "package test".
func (r *results) suspects() (long []string) {
	for test := range r.took { // a parent ends after its subtests
		if i := strings.LastIndexByte(test, '/'); i > strings.IndexByte(test, ' ') {
			r.took[test[:i]] = 0
		}
	}
	for test, seconds := range r.took {
		if seconds > most.Seconds() {
			long = append(long, test)
		}
	}
	return long
}

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

// check runs the suspects anew, each alone, and returns an error that names those that are slow.
func check(suspects []string) (slow error) {
	tmp, err := os.MkdirTemp("", "runnel-slow-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, test := range suspects {
		wall, cpu, err := alone(test, tmp)
		if err == nil && isSlow(wall, cpu) {
			err = fmt.Errorf("%s took %v, of CPU %v: internal/test/tier has a tier for it", test, wall, cpu)
		}
		slow = errors.Join(slow, err)
	}
	return slow
}

func main() {
	judge := flag.Bool("check", false, "fail if a test is slow")
	flag.Parse()
	r, err := read(os.Stdin, os.Stdout)
	if err == nil && *judge {
		err = check(r.suspects())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || r.failed {
		os.Exit(1)
	}
}
