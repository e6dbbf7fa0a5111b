package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// buildWorker is `runnel worker ./cmd/shop [flags]`: it builds the package and
// runs its worker with the flags, and forwards every signal.
func (p *program) buildWorker(c *call) error {
	switch {
	case len(c.args) == 0:
		return usagef(c, "which package? say %s worker ./cmd/shop, or run the worker command of your own binary", p.name)
	case len(c.args) > 1:
		return usagef(c, "one package, not %q", c.args)
	case c.IsSet(flagApp):
		return usagef(c, "--app: the package itself names its app")
	}
	dir, err := os.MkdirTemp("", "runnel-worker-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := p.build(c.Context(), dir, c.arg(0))
	if err != nil {
		return err
	}
	var typed []string
	c.Flags().Visit(func(f *pflag.Flag) { typed = append(typed, "--"+f.Name+"="+f.Value.String()) })
	cmd := exec.CommandContext(c.Context(), binary, append([]string{"worker"}, typed...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, raw(p.stdout), raw(p.stderr)
	return p.child.run(cmd)
}

// build compiles the package and returns the path of its binary.
func (p *program) build(ctx context.Context, dir, pkg string) (string, error) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("the Go toolchain is not installed, or its go command is not in PATH: install it from https://go.dev/dl, or build the package elsewhere and run its own worker command")
	}
	binary := filepath.Join(dir, binaryName(pkg))
	cmd := exec.CommandContext(ctx, goTool, "build", "-o", binary, pkg)
	cmd.Stdout, cmd.Stderr = raw(p.stderr), raw(p.stderr)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go build %s: %w", pkg, err)
	}
	if !isProgram(binary) {
		return "", fmt.Errorf("%s is not a main package", pkg)
	}
	return binary, nil
}

// isProgram reports whether go build made a program, and not the archive of a package other than main.
func isProgram(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const archive = "!<arch>"
	var start [len(archive)]byte
	_, err = io.ReadFull(f, start[:])
	return err == nil && string(start[:]) != archive
}

// binaryName is the name of the built program in its messages.
func binaryName(pkg string) string {
	name := filepath.Base(filepath.Clean(pkg))
	if abs, err := filepath.Abs(pkg); err == nil && (name == "." || name == "..") {
		name = filepath.Base(abs)
	}
	name = strings.TrimSuffix(name, ".go")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return name
}

// childPatience is how long a child may take to drain after the context ended: more than any
// sensible Grace.
const childPatience = 10 * time.Minute

// run runs a built worker and returns its exit code as an error.
func (ch *child) run(cmd *exec.Cmd) error {
	detach(cmd)
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = childPatience
	if err := cmd.Start(); err != nil {
		return err
	}
	ch.process.Store(cmd.Process)
	err := cmd.Wait()
	ch.process.Store(nil)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitCode(max(exit.ExitCode(), 1)) // -1: a signal that it did not handle
	}
	if cmd.ProcessState != nil && cmd.ProcessState.Success() {
		return nil // drained after the context ended
	}
	return err
}
