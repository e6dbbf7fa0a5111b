package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	flagRedisURL  = "redis-url"
	flagLogLevel  = "log-level"
	flagLogFormat = "log-format"
	flagOutput    = "output"
	flagDev       = "dev"
	flagApp       = "app"
	flagHelp      = "help" // persistent, so that it may stand before a command

	envApp = "RUNNEL_APP"
)

// A call is a command, with its flags and arguments as they were typed.
type call struct {
	*cobra.Command
	args []string
}

// arg returns an argument, "" for one that is not there.
func (c *call) arg(i int) string {
	if i >= len(c.args) {
		return ""
	}
	return c.args[i]
}

// usage is what the arguments of the command mean, as its help has them.
func (c *call) usage() string {
	_, usage, _ := strings.Cut(c.Use, " ")
	return usage
}

// IsSet reports whether a flag was typed. It and the methods below take a flag that the command does not
// have for one that was not typed.
func (c *call) IsSet(name string) bool { return c.Flags().Changed(name) }

func (c *call) Bool(name string) bool     { return orZero(c.Flags().GetBool(name)) }
func (c *call) String(name string) string { return orZero(c.Flags().GetString(name)) }
func (c *call) Int(name string) int       { return orZero(c.Flags().GetInt(name)) }
func (c *call) Int64(name string) int64   { return orZero(c.Flags().GetInt64(name)) }

func (c *call) Duration(name string) time.Duration { return orZero(c.Flags().GetDuration(name)) }

// orZero is the value of a flag, and the zero value, which comes with the error, where there is no such flag.
func orZero[T any](value T, _ error) T { return value }

// A runner is what a command does.
type runner func(ctx context.Context, s *session, c *call) error

// command returns a command for the streams of an app. use is its name and its arguments, as in
// "ls [STREAM]"; examples are command lines, with PROG for the program.
func (p *program) command(use, usage string, flags flagList, run runner, examples ...string) *cobra.Command {
	return p.plain(use, usage, flags, p.action(run), examples...)
}

// connected runs a command once the server has answered.
func connected(run runner) runner {
	return func(ctx context.Context, s *session, c *call) error {
		if err := s.connect(ctx); err != nil {
			return err
		}
		return run(ctx, s, c)
	}
}

// plain returns a command that needs no app.
func (p *program) plain(use, usage string, flags flagList, do func(*call) error, examples ...string) *cobra.Command {
	prog := p.name
	if p.app == nil && use != "version" {
		prog += " --app shop"
	}
	command := &cobra.Command{
		Use: use, Short: usage, Example: "  " + strings.ReplaceAll(strings.Join(examples, "\n  "), "PROG", prog),
		Args: cobra.ArbitraryArgs, ValidArgsFunction: p.completeArgument,
		RunE: func(command *cobra.Command, args []string) error {
			c := &call{command, args}
			if err := checkGlobals(c); err != nil {
				return err
			}
			if err := checkArguments(c); err != nil {
				return err
			}
			return do(c)
		},
	}
	flags.addTo(command.Flags())
	return command
}

// group returns a command that only has commands of its own. Its examples are the first of each.
func (p *program) group(name, usage string, commands ...*cobra.Command) *cobra.Command {
	var names, examples []string
	for _, c := range commands {
		names = append(names, c.Name())
		example, _, _ := strings.Cut(c.Example, "\n")
		examples = append(examples, strings.TrimSpace(example))
	}
	group := p.plain(name, usage, nil, nil, examples...)
	group.AddCommand(commands...)
	group.RunE = func(command *cobra.Command, args []string) error {
		c, all := &call{command, args}, strings.Join(names, ", ")
		if len(args) > 0 {
			return usagef(c, "unknown command %q%s; there is %s", args[0], meant(c), all)
		}
		return usagef(c, "a command is needed: %s", all)
	}
	return group
}

// meant returns ", did you mean …?" with the commands that resemble what was typed, or "" if none does.
func meant(c *call) string {
	c.SuggestionsMinimumDistance = min(2, len(c.arg(0))/3) // the most that letters may differ
	alike := c.SuggestionsFor(c.arg(0))
	if len(alike) == 0 || c.arg(0) == "" {
		return ""
	}
	return ", did you mean " + strings.Join(alike, " or ") + "?"
}

// globals are the flags of every command. None has a default or reads the
// environment here: the app's code decides what a flag leaves open, then the
// environment, then the default.
func (p *program) globals() flagList {
	flags := flagList{
		newFlag(flagHelp, false, "show help"),
		newFlag(flagRedisURL, "", "`URL` of Redis (RUNNEL_REDIS_URL; default redis://127.0.0.1:6379)"),
		newFlag(flagDev, false, "start a Redis inside this process; its data is lost on exit"),
		newFlag(flagLogLevel, "", "lowest `LEVEL` to log: debug, info, warn or error (RUNNEL_LOG_LEVEL; default info)"),
		newFlag(flagLogFormat, "", "`FORMAT` of the log on stderr: text or json (RUNNEL_LOG_FORMAT; default text)"),
		newFlag(flagOutput, "", "`FORMAT` of the data on stdout: text, wide (text with all columns) or json (default text)"),
	}
	if p.app == nil {
		flags = append(flags, newFlag(flagApp, "", "`NAME` of the app ("+envApp+")"))
	}
	return flags
}

// checkGlobals refuses values that no command understands.
func checkGlobals(c *call) error {
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
func checkArguments(c *call) error {
	usage, first, allowed := c.usage(), c.arg(0), 1
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
		if len(c.args) > 1 || (len(c.args) == 1 || usage[0] != '[') && (stream == "" || processor == "") {
			return usagef(c, "which processor? say STREAM/PROCESSOR")
		}
	case "STREAM/TABLE", "STREAM/TABLE KEY":
		allowed = 1 + strings.Count(usage, " ")
		if stream, table, _ := strings.Cut(first, "/"); stream == "" || table == "" {
			return usagef(c, "which table? say STREAM/TABLE")
		}
		if len(c.args) < allowed {
			return usagef(c, "which row? say STREAM/TABLE KEY")
		}
	default:
		return nil
	}
	if len(c.args) > allowed {
		return usagef(c, "unexpected argument %q%s", c.arg(allowed), noArguments[c.Name()])
	}
	return nil
}

// noArguments are hints for commands that a user may expect to take arguments.
var noArguments = map[string]string{
	"worker":      "; processors are chosen with --processors",
	"move-layout": ": all streams of an app are moved together",
}

// namedApp is the name of the app of a program without types.
func namedApp(c *call) (string, error) {
	if name := c.String(flagApp); name != "" {
		return name, nil
	}
	if name := os.Getenv(envApp); name != "" {
		return name, nil
	}
	return "", usagef(c, "which app? say --app NAME or set %s", envApp)
}
