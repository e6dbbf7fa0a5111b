package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

func TestNewRefuses(t *testing.T) {
	source := sourceDir(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("main.go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("full", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("full/notes", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		err  string
	}{
		{"no directory", nil, 2, "one directory is needed"},
		{"two directories", []string{"../x", "y"}, 2, "not 2 arguments"},
		{"capitals", []string{"Shop"}, 2, `"Shop" names no app`},
		{"space", []string{"my shop"}, 2, `"my shop" names no app`},
		{"dot", []string{"a.b"}, 2, `"a.b" names no app`},
		{"hyphen first", []string{"a/-b"}, 2, `"-b" names no app`},
		{"root", []string{"/"}, 2, "names no app"},
		{"no source", []string{"shop", "--replace", "full"}, 2, `--replace "full" is no directory with the source`},
		{"something in it", []string{"full", "--replace", source}, 1, "full is not empty; nothing was written"},
		{"a file", []string{"main.go/shop", "--replace", source}, 1, "new app shop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t.Context(), nil, "", append([]string{"new"}, tt.args...)...).want(t, tt.code, "", tt.err)
		})
	}
	if there, err := os.ReadDir("."); err != nil || len(there) != 2 {
		t.Errorf("the directory has %v, %v; want the two from before", there, err)
	}
	if there, err := os.ReadDir("full"); err != nil || len(there) != 1 {
		t.Errorf("full holds %v, %v; want notes alone", there, err)
	}
}

func TestBuiltFrom(t *testing.T) {
	source := sourceDir(t)
	here := filepath.Join(source, "cli", "cmd_new.go")
	main := func(m debug.Module) *debug.BuildInfo { return &debug.BuildInfo{Main: m} }
	dep := func(m debug.Module) *debug.BuildInfo { return &debug.BuildInfo{Deps: []*debug.Module{&m}} }
	release := debug.Module{Path: module, Version: "v1.2.3", Sum: "h1:x"}
	replaced := debug.Module{Path: module, Version: "v1.2.3", Sum: "h1:x", Replace: &debug.Module{Path: "../runnel"}}
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		file string
		want required
	}{
		{"installed", main(release), "/home/ada/go/pkg/mod/" + module + "@v1.2.3/cli/cmd_new.go", required{version: "v1.2.3"}},
		{"app with a release", dep(release), module + "@v1.2.3/cli/cmd_new.go", required{version: "v1.2.3"}},
		{"clone", main(debug.Module{Path: module, Version: "v1.2.4-0.20260101000000-0123456789ab+dirty"}), here, required{dir: source}},
		{"app with a replace", dep(replaced), here, required{dir: source}},
		{"without paths", main(debug.Module{Path: module, Version: "(devel)"}), module + "/cli/cmd_new.go", required{}},
		{"a clone that is gone", main(debug.Module{Path: module}), filepath.Join(t.TempDir(), "cli", "cmd_new.go"), required{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := builtFrom(tt.info, true, tt.file); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestNewNamesTheOldestGo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sourceDir(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\ngo "+oldestGo+"\n") {
		t.Errorf("go.mod does not say go %s", oldestGo)
	}
}

// A new app passes its tests, and its worker takes what its `send` sends, without a network.
func TestNewAppRuns(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	t.Setenv("GOPROXY", "off")
	dir := filepath.Join(t.TempDir(), "my shops", "book-shop")
	run(t.Context(), newShopApp(), "", "new", dir, "--replace", sourceDir(t)).
		want(t, 0, "wrote main.go, main_test.go and go.mod of app book-shop. Next:\n  cd ", "")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		return cmd
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}, {"build", "-o", "book-shop", "."}} {
		if out, err := command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if out, err := command("gofmt", "-l", ".").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt -l: %v, %s", err, out)
	}
	for _, name := range []string{"main.go", "main_test.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "main.go" && !strings.HasPrefix(string(text), "// Book-shop charges ") || strings.Contains(string(text), "examples") || !strings.Contains(string(text), `runnel.New("book-shop", `) {
			t.Errorf("%s has not become an app of its own:\n%s", name, text)
		}
	}

	url := ""
	for line := range linesOf(t, command("./book-shop", "worker", "--dev")) {
		if _, after, ok := strings.Cut(line, "RUNNEL_REDIS_URL="); ok && url == "" {
			url, _, _ = strings.Cut(after, " ")
			send := command("./book-shop", "send", "--redis-url", url, "orders", `{"customer":"eve","amount":1.50}`)
			if out, err := send.CombinedOutput(); err != nil {
				t.Fatalf("send: %v\n%s", err, out)
			}
		}
		if line == "charged eve 1.50" {
			return
		}
	}
	t.Error("the worker ended without charging eve")
}

// linesOf runs a program for as long as its lines are read.
func linesOf(t *testing.T, cmd *exec.Cmd) func(yield func(string) bool) {
	t.Helper()
	return func(yield func(string) bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, w := io.Pipe()
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		defer r.Close()
		defer context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })()
		for lines := bufio.NewScanner(r); lines.Scan() && yield(lines.Text()); {
		}
	}
}

func sourceDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
