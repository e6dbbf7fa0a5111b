package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/examples"
)

const (
	flagReplace = "replace"
	// oldestGo is the version of Go in the go.mod of a new app: the oldest that builds runnel.
	oldestGo = "1.25.0"
)

// newApps matches the names that an app, its directory and its module may all have.
var newApps = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// A createdApp is what `new` wrote.
type createdApp struct {
	App    string `json:"app"`
	Dir    string `json:"dir"`
	Module string `json:"module"`
	Runnel string `json:"runnel"` // its version, or the directory of its source
}

func newCommand(p *program) *cobra.Command {
	replace := newFlag(flagReplace, "", "build the app with the source of runnel in `DIR`, a clone of its repository; default is what this program was built from")
	return p.plain("new DIRECTORY", "write the files of a new app into a new directory", flagList{replace}, p.runNew,
		p.name+" new shop",
		p.name+" new ../shop --replace .")
}

func (p *program) runNew(c *call) error {
	if len(c.args) != 1 {
		return usagef(c, "one directory is needed, such as shop, not %d arguments", len(c.args))
	}
	dir, err := filepath.Abs(c.arg(0))
	if err != nil {
		return err
	}
	app := createdApp{App: filepath.Base(dir), Dir: c.arg(0)}
	app.Module = "example.com/" + app.App
	if !newApps.MatchString(app.App) {
		return usagef(c, `the directory %q names no app: up to 64 small letters, digits, "_" and "-", the first one a letter`, app.App)
	}
	require, err := requirement(c)
	if err != nil {
		return err
	}
	app.Runnel = cmp.Or(require.dir, require.version)
	files, err := newFiles(app, require)
	if err != nil {
		return err
	}
	if err := writeNew(dir, files); err != nil {
		return fmt.Errorf("new app %s: %w", app.App, err)
	}
	if require.dir == "" {
		if err := tidy(c.Context(), dir, raw(p.stderr)); err != nil {
			return fmt.Errorf("the files are in %s, but go.mod is not complete: %w; type `go mod tidy` there", app.Dir, err)
		}
	}
	did := fmt.Sprintf("wrote main.go, main_test.go and go.mod of app %s", app.App)
	return unwritten(did, newOutput(c, p.stdout).write(app, func(w io.Writer) error {
		_, err := printf(w, "%s. Next:\n  cd %s && go test ./...\n  go run . worker --dev\n  go run . send orders '{\"customer\":\"ada\",\"amount\":1.50}'    # from a second terminal\n", did, quote(app.Dir))
		return err
	}))
}

// A required is the runnel that a new app is built with: a version, or source in a directory.
type required struct{ version, dir string }

// requirement returns --replace, else what this program was built from.
func requirement(c *call) (required, error) {
	if c.IsSet(flagReplace) {
		dir, err := filepath.Abs(c.String(flagReplace))
		if err != nil {
			return required{}, err
		}
		if !isSource(dir) {
			return required{}, usagef(c, "--%s %q is no directory with the source of %s", flagReplace, c.String(flagReplace), module)
		}
		return required{dir: dir}, nil
	}
	info, ok := debug.ReadBuildInfo()
	_, file, _, _ := runtime.Caller(0)
	if found := builtFrom(info, ok, file); found != (required{}) {
		return found, nil
	}
	return required{}, usagef(c, "this program does not know which runnel it was built from: say --%s DIR, a clone of %s", flagReplace, module)
}

// builtFrom returns what a program was built from, as far as its build info and file, the path of
// this source, show. A version without a checksum is that of a working tree, which may exist nowhere else.
func builtFrom(info *debug.BuildInfo, ok bool, file string) required {
	if ok {
		for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
			if m.Path == module && m.Sum != "" && m.Replace == nil {
				return required{version: m.Version}
			}
		}
	}
	if dir := filepath.Dir(filepath.Dir(file)); filepath.IsAbs(dir) && isSource(dir) {
		return required{dir: dir}
	}
	return required{}
}

// isSource reports whether a directory holds the source of runnel.
func isSource(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(text, []byte("module "+module+"\n"))
}

// requires matches each requirement of a go.mod.
var requires = regexp.MustCompile(`(?m)^\t(\S+ v\S+)(?: // indirect)?$`)

// quoteMod quotes a path for go.mod, where that is needed.
func quoteMod(path string) string {
	if strings.ContainsAny(path, " \t\"'`()[]{},;\\") {
		return strconv.Quote(path)
	}
	return path
}

// newFiles returns the files of a new app by their names: those of the example basic, under the
// app's name, and go.mod. With the source of runnel in a directory, go.mod is complete and go.sum is
// among the files, so that go looks up nothing.
func newFiles(app createdApp, from required) (map[string]string, error) {
	renamed := strings.NewReplacer(
		"// Basic ", "// "+strings.ToUpper(app.App[:1])+app.App[1:]+" ",
		"./examples/basic", ".",
		`runnel.New("shop"`, "runnel.New("+strconv.Quote(app.App))
	files := map[string]string{}
	for _, name := range []string{"main.go", "main_test.go"} {
		text, err := fs.ReadFile(examples.Basic, "basic/"+name)
		if err != nil {
			return nil, err
		}
		files[name] = renamed.Replace(string(text))
	}
	files["go.mod"] = "module " + app.Module + "\n\ngo " + oldestGo + "\n\nrequire " + module + " " + cmp.Or(from.version, "v0.0.0") + "\n"
	if from.dir == "" {
		return files, nil
	}
	mod, err := os.ReadFile(filepath.Join(from.dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(from.dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	files["go.mod"] += "\nrequire (\n"
	for _, needed := range requires.FindAllSubmatch(mod, -1) {
		files["go.mod"] += "\t" + string(needed[1]) + " // indirect\n"
	}
	files["go.mod"] += ")\n\nreplace " + module + " => " + quoteMod(from.dir) + "\n"
	files["go.sum"] = string(sums)
	return files, nil
}

// writeNew writes files into a directory that is empty or not there yet.
func writeNew(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return fmt.Errorf("%s is not empty; nothing was written", dir)
	}
	for name, text := range files {
		if err := writeNewFile(filepath.Join(dir, name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// tidy adds the indirect requirements of the app to go.mod, and writes go.sum.
func tidy(ctx context.Context, dir string, messages io.Writer) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("the go command is not in PATH")
	}
	cmd := exec.CommandContext(ctx, goTool, "mod", "tidy")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, messages, messages
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go mod tidy: %w", err)
	}
	return nil
}
