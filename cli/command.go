package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

const (
	flagRedisURL  = "redis-url"
	flagLogLevel  = "log-level"
	flagLogFormat = "log-format"
	flagOutput    = "output"
	flagDev       = "dev"
	flagApp       = "app"

	envApp = "RUNNEL_APP"
)

// A runner is what a command does.
type runner func(ctx context.Context, s *session, c *cli.Context) error

// command returns a command for the streams of an app. call is its name and its arguments, as in
// "ls [STREAM]"; examples are command lines, with PROG for the program.
func (p *program) command(call, usage string, flags []cli.Flag, run runner, examples ...string) *cli.Command {
	return p.plain(call, usage, flags, p.action(run), examples...)
}

// connected runs a command once the server has answered.
func connected(run runner) runner {
	return func(ctx context.Context, s *session, c *cli.Context) error {
		if err := s.connect(ctx); err != nil {
			return err
		}
		return run(ctx, s, c)
	}
}

// plain returns a command that needs no app.
func (p *program) plain(call, usage string, flags []cli.Flag, do cli.ActionFunc, examples ...string) *cli.Command {
	name, arguments, _ := strings.Cut(call, " ")
	prog := p.name
	if p.app == nil && name != "version" {
		prog += " --app shop"
	}
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: arguments, Flags: slices.Concat(flags, p.globals()),
		Description: strings.ReplaceAll(strings.Join(examples, "\n   "), "PROG", prog),
		Action: func(c *cli.Context) error {
			if err := checkGlobals(c); err != nil {
				return err
			}
			if err := checkArguments(c); err != nil {
				return err
			}
			return do(c)
		},
	}
}

// group returns a command that only has commands of its own. Its examples are the first of each.
func (p *program) group(name, usage string, commands ...*cli.Command) *cli.Command {
	var names, examples []string
	for _, c := range commands {
		names = append(names, c.Name)
		example, _, _ := strings.Cut(c.Description, "\n")
		examples = append(examples, example)
	}
	group := p.plain(name, usage, nil, nil, examples...)
	group.Subcommands = commands
	group.Action = func(c *cli.Context) error {
		if c.Args().Present() {
			return usagef(c, "unknown command %q%s; there is %s", c.Args().First(), meant(c.Args().First(), names), strings.Join(names, ", "))
		}
		return usagef(c, "a command is needed: %s", strings.Join(names, ", "))
	}
	return group
}

// globals are the flags of every command. None has a default or reads the
// environment here: the app's code decides what a flag leaves open, then the
// environment, then the default.
func (p *program) globals() []cli.Flag {
	const category = "Every command:"
	flags := []cli.Flag{
		&cli.StringFlag{Name: flagRedisURL, Category: category, Usage: "`URL` of Redis (RUNNEL_REDIS_URL; default redis://127.0.0.1:6379)"},
		&cli.BoolFlag{Name: flagDev, Category: category, DisableDefaultText: true, Usage: "start a Redis inside this process; its data is lost on exit"},
		&cli.StringFlag{Name: flagLogLevel, Category: category, Usage: "lowest `LEVEL` to log: debug, info, warn or error (RUNNEL_LOG_LEVEL; default info)"},
		&cli.StringFlag{Name: flagLogFormat, Category: category, Usage: "`FORMAT` of the log on stderr: text or json (RUNNEL_LOG_FORMAT; default text)"},
		&cli.StringFlag{Name: flagOutput, Aliases: []string{"o"}, Category: category, Usage: "`FORMAT` of the data on stdout: text, wide (text with all columns) or json (default text)"},
	}
	if p.app == nil {
		flags = append(flags, &cli.StringFlag{Name: flagApp, Category: category, Usage: "`NAME` of the app (" + envApp + ")"})
	}
	return flags
}

// checkGlobals refuses values that no command understands.
func checkGlobals(c *cli.Context) error {
	for _, f := range []struct {
		name  string
		words []string
	}{
		{flagLogLevel, []string{"debug", "info", "warn", "error"}},
		{flagLogFormat, []string{"text", "json"}},
		{flagOutput, []string{"text", "wide", "json"}},
	} {
		v := c.String(f.name)
		known := slices.ContainsFunc(f.words, func(w string) bool { return strings.EqualFold(w, v) })
		if c.IsSet(f.name) && !known {
			return usagef(c, "--%s %q is none of %s", f.name, v, strings.Join(f.words, ", "))
		}
	}
	if c.Bool(flagDev) && c.IsSet(flagRedisURL) {
		return usagef(c, "--dev and --redis-url exclude each other")
	}
	return nil
}

// checkArguments holds the arguments of a command to its usage. Commands with other arguments
// than none, a stream or a processor check theirs themselves.
func checkArguments(c *cli.Context) error {
	usage, first, allowed := c.Command.ArgsUsage, c.Args().First(), 1
	switch usage {
	case "":
		allowed = 0
	case "STREAM":
		if first == "" {
			return usagef(c, "which stream?")
		}
	case "[STREAM]":
		if strings.Contains(first, "/") {
			return usagef(c, "%q is no stream", first)
		}
	case "[STREAM[/PROCESSOR]]":
		if strings.HasPrefix(first, "/") {
			return usagef(c, "%q names no stream: say STREAM or STREAM/PROCESSOR", first)
		}
	case "[STREAM/PROCESSOR]", "STREAM/PROCESSOR", "STREAM/PROCESSOR|STREAM/GROUP":
		stream, processor, _ := strings.Cut(first, "/")
		if c.NArg() > 1 || (c.NArg() == 1 || usage[0] != '[') && (stream == "" || processor == "") {
			return usagef(c, "which processor? say STREAM/PROCESSOR")
		}
	default:
		return nil
	}
	if c.NArg() > allowed {
		return usagef(c, "unexpected argument %q%s", c.Args().Get(allowed), noArguments[c.Command.Name])
	}
	return nil
}

// noArguments are hints for commands that a user may expect to take arguments.
var noArguments = map[string]string{
	"worker":      "; processors are chosen with --processors",
	"move-layout": ": all streams of an app are moved together",
}

// namedApp is the name of the app of a program without types.
func namedApp(c *cli.Context) (string, error) {
	if name := c.String(flagApp); name != "" {
		return name, nil
	}
	if name := os.Getenv(envApp); name != "" {
		return name, nil
	}
	return "", usagef(c, "which app? say --app NAME or set %s", envApp)
}
