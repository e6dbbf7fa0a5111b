// Package cli is the command line of an app: new, worker, send, sendmany, status, top,
// check, doctor, bench, workers, stream, tail, processor, table, parked, dead, delayed,
// quarantine, rules, pause, resume, block, unblock, audit, dashboard, completion and version,
// and a group for each extension that the app has.
//
// Run gives an app's binary all of it:
//
//	func main() {
//		app := runnel.New("shop", nil)
//		… streams, processors, tasks …
//		cli.Run(app)
//	}
//
// The runnel binary is the same without an app's types: it reads the declaration of a
// stream from the metadata in Redis. Data goes to stdout, messages and logs
// to stderr. Exit codes: 0 done, 1 an error, 2 a mistake in the command line, 3 a
// check found something, 130 interrupted twice.
//
// A command is a function that returns a *cobra.Command, in a file cmd_*.go. It runs in a
// session, which connects it to the app, to Redis and to the output. Commands only read
// arguments and write results: package admin changes and internal/inspect reads.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Run runs the command of os.Args and exits the process. A nil app is one
// without types, named by --app or RUNNEL_APP.
//
// The first SIGINT or SIGTERM ends the command, and so drains a worker; the
// second exits at once, with code 130. Run sets slog's default, unless the app has a
// Logger or the program has set a default of its own. Log lines of a processor then
// carry worker, stream, processor, partition and event. A function that logs
// waits until its line is written; the worker does not wait for its own lines, see
// runnel.Options.
func Run(app *runnel.App) {
	p := newProgram(app, os.Stdin, os.Stdout, os.Stderr)
	p.ownsProcess = true
	redisconn.MuteDialErrors()
	ctx, cancel := context.WithCancel(context.Background())
	go p.interrupts(cancel)
	os.Exit(p.main(ctx, os.Args[1:]))
}

// Main runs one command and returns its exit code. args are without the
// program's name. Main blocks until the command is done, or has stopped after ctx
// ended. It installs no signal handlers and leaves slog's default alone. The values of
// flags stay set in app afterwards. A nil app is one without types, named
// by --app or RUNNEL_APP. Main may be called concurrently.
func Main(ctx context.Context, app *runnel.App, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newProgram(app, stdin, stdout, stderr).main(ctx, args)
}

// A program is one run of the command line.
type program struct {
	app    *runnel.App // nil: no types
	name   string      // in messages
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	ownsProcess bool  // Run, not Main
	child       child // gets the signals while it runs
}

func newProgram(app *runnel.App, stdin io.Reader, stdout, stderr io.Writer) *program {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	return &program{app: app, name: name, stdin: stdin, stdout: newEscaping(stdout), stderr: newEscaping(stderr)}
}

func (p *program) main(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(append([]string{}, args...)) // nil would be those of the process
	err := root.ExecuteContext(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown command ") && !errors.As(err, new(*usageError)) {
		err = &usageError{"", err} // of the library's own commands
	}
	if lost := failed(p.stdout); lost != nil && !errors.Is(err, lost) {
		lost = fmt.Errorf("the output could not be written: %w", lost)
		if code := p.report(ctx, err); code != 0 {
			p.report(ctx, lost)
			return code
		}
		err = lost
	}
	return p.report(ctx, err)
}

// root returns the command line.
func (p *program) root() *cobra.Command {
	usage := "Work on the events of app " + p.appName() + ", send and inspect them."
	if p.app == nil {
		usage = "Send events, look after processors, build and run workers."
	}
	root := &cobra.Command{
		Use: p.name, Short: usage, Args: cobra.ArbitraryArgs, RunE: p.noCommand, ValidArgsFunction: p.completeHidden,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(onUsageError)
	p.globals().addTo(root.PersistentFlags())
	flagList{newFlag(flagVersion, false, "print the versions")}.addTo(root.Flags())
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c == root {
			p.reveal(&call{c, args})
		}
		help(c, args)
	})
	for _, in := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run and send:", []*cobra.Command{newCommand(p), workerCommand(p), sendCommand(p), sendManyCommand(p), tailCommand(p)}},
		{"Look:", []*cobra.Command{statusCommand(p), topCommand(p), checkCommand(p), doctorCommand(p), benchCommand(p), auditCommand(p), dashboardCommand(p)}},
		{"Look after:", slices.Concat(ruleCommands(p), extensionCommands(p), []*cobra.Command{workersCommand(p), streamCommand(p), processorCommand(p), tableCommand(p), parkedCommand(p), deadCommand(p), delayedCommand(p), quarantineCommand(p), rulesCommand(p)})},
	} {
		root.AddGroup(&cobra.Group{ID: in.title, Title: in.title})
		for _, c := range in.commands {
			c.GroupID = in.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(versionCommand(p))
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, _ []string) error {
			return usageOf(c, errors.New("for which shell? bash, zsh, fish or powershell"))
		}
	}
	return root
}

func (p *program) appName() string {
	if p.app == nil {
		return ""
	}
	return p.app.Name()
}

// noCommand is run where the command line names no command.
func (p *program) noCommand(root *cobra.Command, args []string) error {
	c := &call{root, args}
	switch {
	case len(args) > 0:
		return usagef(c, "unknown command %q%s", args[0], meant(c))
	case c.Bool(flagVersion):
		return p.runVersion(c)
	}
	root.SetOut(p.stderr)
	root.HelpFunc()(root, nil)
	return exitCode(2)
}

// report prints an error and returns the exit code.
func (p *program) report(ctx context.Context, err error) int {
	var code exitCode
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		help := strings.TrimSpace(p.name + " " + usage.command)
		p.finally("%s: %s; see %s --help\n", help, oneLine(err), help)
		return 2
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		p.finally("%s: interrupted\n", p.name)
		return 1
	}
	p.finally("%s: %s%s\n", p.name, oneLine(err), p.rightsAdvice(err))
	return 1
}

// lastWords bounds how long a process waits until its last message is read.
const lastWords = 500 * time.Millisecond

// finally writes a last message. A stderr that is not read does not keep a process from ending.
func (p *program) finally(format string, args ...any) {
	if !p.ownsProcess {
		printf(p.stderr, format, args...)
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		printf(p.stderr, format, args...)
	}()
	select {
	case <-written:
	case <-time.After(lastWords):
	}
}

// rightsAdvice is what to do where the user of Redis lacks a right.
func (p *program) rightsAdvice(err error) string {
	if !redisconn.Denied(err) {
		return ""
	}
	return fmt.Sprintf("; the user of Redis lacks a right: `%s doctor --role operator` says which; %s", p.name, help.MissingRights)
}
