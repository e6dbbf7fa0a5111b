package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A mutant is the program without one rule: a text, which stands exactly once
// in a file, replaced by another.
type mutant struct {
	rule     string
	file     string // from the module's root
	old, new string
	test     string // that has to fail
}

// The tests take from the environment how long they wait for what ought to
// happen soon. A mutant, which may wait for ever, is given less.
const (
	patienceVariable = "RUNNEL_CONFORMANCE_PATIENCE"
	mutantPatience   = 4 * time.Second
)

// mutantLimit is how long a build and a run of a test may take.
const mutantLimit = 2 * time.Minute

// Every rule of the protocol is there for a reason: without it a test fails.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	// With the same patience, and nothing replaced, all these tests pass.
	if out := runMutant(t, root, "", allTests()); !strings.HasPrefix(out, "ok ") {
		t.Fatalf("without a mutation:\n%s", tail(out))
	}
	slots := make(chan struct{}, 3) // most of the time they wait
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			overlay := overlay(t, root, []edit{{m.file, m.old, m.new}})
			slots <- struct{}{}
			defer func() { <-slots }()
			began := time.Now()
			out := runMutant(t, root, overlay, exactly(m.test))
			switch {
			case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
				t.Errorf("the mutant does not build:\n%s", out)
			case strings.Contains(out, "[no tests to run]"):
				t.Errorf("there is no test %s", m.test)
			case strings.Contains(out, "panic: test timed out"):
				t.Errorf("%s hangs:\n%s", m.test, tail(out))
			case !strings.Contains(out, "--- FAIL") && !strings.Contains(out, "panic: "):
				t.Errorf("the mutant survives %s: %s\n- %s\n+ %s\n%s", m.test, m.file, m.old, m.new, tail(out))
			default:
				t.Logf("caught by %s in %v: %s", m.test, time.Since(began).Round(100*time.Millisecond), reason(out))
			}
		})
	}
}

// A text that is there twice, or not any more, mutates nothing. This is found here
// before anything is built.
func TestTextsOfMutantsAreThereOnce(t *testing.T) {
	edits := map[string][]edit{}
	for _, m := range mutants {
		edits[m.rule] = append(edits[m.rule], edit{m.file, m.old, m.new})
	}
	for _, m := range chaosMutants {
		edits[m.rule] = append(edits[m.rule], m.edits...)
	}
	for rule, list := range edits {
		for _, e := range list {
			if _, err := e.apply("../../.."); err != nil {
				t.Errorf("%s: %v", rule, err)
			}
		}
	}
}

// apply returns the mutated file.
func (e edit) apply(root string) (mutated string, err error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), e.old); n != 1 {
		return "", fmt.Errorf("%s has %d times the text, want it once:\n%s", e.file, n, e.old)
	}
	return strings.Replace(string(source), e.old, e.new, 1), nil
}

// overlay writes the mutated files, each with one edit, and what tells the build to
// use them.
func overlay(t *testing.T, root string, edits []edit) (path string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for i, e := range edits {
		mutated, err := e.apply(root)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(root, filepath.FromSlash(e.file))] = write(fmt.Sprint(i, filepath.Base(e.file)), []byte(mutated))
	}
	replace, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	return write("overlay.json", replace)
}

// exactly is the pattern of one test.
func exactly(test string) (pattern string) {
	parts := strings.Split(test, "/")
	for i := range parts {
		parts[i] = "^" + parts[i] + "$"
	}
	return strings.Join(parts, "/")
}

// allTests is the pattern of all tests that mutants name.
func allTests() (pattern string) {
	each := map[string]bool{}
	for _, m := range mutants {
		each[exactly(m.test)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(each)), "|")
}

// runMutant builds and runs the tests that match, less patiently than usual.
func runMutant(t *testing.T, root, overlay, pattern string) (output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mutantLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay="+overlay, "-vet=off", "-ldflags=-s -w", "-count=1", "-run", pattern, "./internal/test/conformance")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), patienceVariable+"="+mutantPatience.String())
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s does not end within %v:\n%s", pattern, mutantLimit, tail(string(out)))
	}
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// reason is the first complaint in the output of a failed test.
func reason(out string) string {
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, "_test.go:") || strings.HasPrefix(line, "panic: ") {
			return strings.TrimSpace(line)
		}
	}
	return "no reason given"
}

// tail is the end of a long output.
func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
