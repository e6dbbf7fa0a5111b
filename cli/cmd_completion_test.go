package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// completed returns the completions of a command line.
func (s *shop) completed(words ...string) []string {
	s.t.Helper()
	r := s.untypedRaw(append([]string{completeWord}, words...)...)
	if r.code != 0 || r.err != "" {
		s.t.Errorf("%q: %+v", words, r)
	}
	return strings.Fields(r.out)
}

// untypedRaw is untyped with unchanged words.
func (s *shop) untypedRaw(args ...string) result { return run(s.t.Context(), nil, "", args...) }

func TestComplete(t *testing.T) {
	s := owned(t, 4)
	t.Setenv(envApp, "shop")
	for line, want := range map[string]string{
		"st":                               "status stream",
		"stream ":                          "info ls move-layout rm tail verify",
		"stream i":                         "info",
		"processor re":                     "reset",
		"tail o":                           "orders",
		"tail --key ada ":                  "orders",
		"tail --key ":                      "",
		"status ":                          "orders orders/printer",
		"top ":                             "orders orders/printer",
		"top --ev":                         "--every",
		"bench ":                           "",
		"processor reset o":                "orders/printer",
		"--app shop processor reset ":      "orders/printer",
		"check --max":                      "--max-age --max-dead --max-lag --max-lost",
		"processor reset orders/printer x": "",
		"nothing ":                         "",
	} {
		words := strings.Split(line, " ")
		if got := s.completed(words...); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := s.completed(); !slices.Contains(got, "doctor") || slices.Contains(got, completeWord) {
		t.Errorf("of nothing: %q", got)
	}
	if got := s.completed("--redis-url", "redis://127.0.0.1:1", "tail", ""); len(got) != 0 {
		t.Errorf("without Redis: %q", got)
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		r := run(t.Context(), nil, "", "completion", shell)
		r.want(t, 0, " "+completeWord+" ", "")
		if strings.Contains(r.out, "PROG") || strings.Contains(r.out, "FUNC") {
			t.Errorf("%s: %s", shell, r.out)
		}
	}
	run(t.Context(), nil, "", "completion").want(t, 2, "", "for which shell? bash, zsh or fish")
	run(t.Context(), nil, "", "completion", "csh").want(t, 2, "", "for which shell? bash, zsh or fish")
}

// Bash runs the script, with a program that answers.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	switch {
	case runtime.GOOS == "windows":
		t.Skip("a script is no program on Windows")
	case err != nil:
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &program{name: "shop-1", stdout: new(strings.Builder)}
	script := strings.NewReplacer("PROG", p.name, "FUNC", "shop_1").Replace(completions["bash"])
	answer := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + filepath.Join(dir, "args") + "\nprintf 'orders\\norders/printer\\nother\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "shop-1"), []byte(answer), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "--norc", "-c", script+`
COMP_WORDS=(shop-1 processor reset or); COMP_CWORD=3; _shop_1_complete; printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "orders\norders/printer\n" {
		t.Errorf("%v: %q", err, out)
	}
	if args, _ := os.ReadFile(filepath.Join(dir, "args")); string(args) != completeWord+"\nprocessor\nreset\nor\n" {
		t.Errorf("it asks for %q", args)
	}
}
