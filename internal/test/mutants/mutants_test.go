package mutants

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
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

// mutantLimit is how long a run of a test may take.
const mutantLimit = 2 * time.Minute

// Every rule of the protocol is there for a reason: without it a test fails.
func TestMutants(t *testing.T) {
	tier.Slow(t)
	try(t, "internal/test/conformance", mutants)
}

// So is every rule of sets of entities.
func TestStageMutants(t *testing.T) {
	tier.Slow(t)
	for pkg, list := range stageMutants {
		t.Run(strings.ReplaceAll(pkg, "/", "_"), func(t *testing.T) { try(t, pkg, list) })
	}
}

// So is every rule of schedulers.
func TestScheduleMutants(t *testing.T) {
	tier.Slow(t)
	for pkg, list := range scheduleMutants {
		t.Run(strings.ReplaceAll(pkg, "/", "_"), func(t *testing.T) { try(t, pkg, list) })
	}
}

// So is every rule of webhook buses.
func TestWebhookMutants(t *testing.T) {
	tier.Slow(t)
	for pkg, list := range webhookMutants {
		t.Run(strings.ReplaceAll(pkg, "/", "_"), func(t *testing.T) { try(t, pkg, list) })
	}
}

// So is every rule of reads by position.
func TestPositionMutants(t *testing.T) {
	tier.Slow(t)
	for pkg, list := range positionMutants {
		t.Run(strings.ReplaceAll(pkg, "/", "_"), func(t *testing.T) { try(t, pkg, list, "RUNNEL_READS=position") })
	}
}

// try runs the tests of a package that belong to mutants, each with its mutant, which it must notice, and
// all of them without any. The variables are set for each run.
func try(t *testing.T, pkg string, mutants []mutant, variables ...string) {
	t.Helper()
	p := build(t, pkg)
	p.set = variables
	// With the same patience, beside the mutants, and with every rule in place, all these tests pass.
	t.Run("every_rule", func(t *testing.T) {
		t.Parallel()
		if out := p.test(t, "", allTests(mutants)); !strings.HasSuffix(out, "PASS\n") {
			t.Error(tail(out))
		}
	})
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			out := p.test(t, m.rule, exactly(m.test))
			switch {
			case strings.Contains(out, "no tests to run"):
				t.Errorf("there is no test %s", m.test)
			case noProgram.MatchString(out):
				t.Errorf("the mutant is no program:\n%s", tail(out))
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

// noProgram is what a server says of a script that it cannot compile. The embedded one says nearly the same of an error
// in one that runs, and then its line first.
var noProgram = regexp.MustCompile(`Error compiling script \(new function\): ([^:]|:[^0-9])`)

// A text that occurs twice, or no longer, mutates nothing. This is found before anything is built.
func TestTextsOfMutantsAreThereOnce(t *testing.T) {
	all := variants()
	for _, v := range all {
		for _, e := range v.edits {
			if _, err := e.apply("../../.."); err != nil {
				t.Errorf("%s: %v", v.rule, err)
			}
		}
	}
	for _, m := range chaosMutants {
		if len(all[m.rule].edits) == 0 {
			t.Errorf("%s: no edits", m.rule)
		}
	}
}

// variants are the programs without one rule of all lists, by the rule.
func variants() map[string]variant {
	all := map[string]variant{}
	for _, list := range append(slices.Concat(slices.Collect(maps.Values(stageMutants)), slices.Collect(maps.Values(scheduleMutants)), slices.Collect(maps.Values(webhookMutants)), slices.Collect(maps.Values(positionMutants)), slices.Collect(maps.Values(tableMutants))), mutants) {
		for _, m := range list {
			all[m.rule] = variant{m.rule, []edit{{m.file, m.old, m.new}}}
		}
	}
	for _, m := range chaosMutants {
		if m.edits != nil {
			all[m.rule] = variant{m.rule, m.edits}
		}
	}
	return all
}

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

func exactly(test string) (pattern string) {
	parts := strings.Split(test, "/")
	for i := range parts {
		parts[i] = "^" + parts[i] + "$"
	}
	return strings.Join(parts, "/")
}

func allTests(mutants []mutant) (pattern string) {
	each := map[string]bool{}
	for _, m := range mutants {
		each[exactly(m.test)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(each)), "|")
}

// test runs the tests that match, less patiently than usual.
func (p *program) test(t *testing.T, rule, pattern string) (output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mutantLimit)
	defer cancel()
	if rule == "" {
		ctx = t.Context()
	}
	cmd := exec.CommandContext(ctx, p.binary, "-test.run", pattern)
	cmd.Dir = p.dir
	cmd.Env = append(append(p.environment(rule), p.set...), patienceVariable+"="+mutantPatience.String())
	if rule == "" {
		cmd.Env = append(cmd.Env, "RUNNEL_SIM_SEEDS=8") // make unraced and sim-short play more
	} else {
		cmd.Env = append(cmd.Env, redistest.PatienceVariable+"=15s")
	}
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

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
