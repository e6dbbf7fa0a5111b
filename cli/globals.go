package cli

import (
	"os"
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
	flagKey       = "key"

	envApp = "RUNNEL_APP"
)

// globals are the flags of every command. None has a default or reads the
// environment here: what a flag leaves open, the app's code says, then the
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

// command completes what all commands have in common. Examples are command
// lines, with PROG for the program.
func (p *program) command(c *cli.Command, examples ...string) *cli.Command {
	prog := p.name
	if p.app == nil && c.Name != "version" {
		prog += " --app shop"
	}
	c.Description = strings.ReplaceAll(strings.Join(examples, "\n   "), "PROG", prog)
	c.Flags = append(c.Flags, p.globals()...)
	return c
}

// group is a command that only has commands of its own. Its examples are the first
// of each.
func (p *program) group(name, usage string, commands ...*cli.Command) *cli.Command {
	var names, examples []string
	for _, c := range commands {
		names = append(names, c.Name)
		example, _, _ := strings.Cut(c.Description, "\n")
		examples = append(examples, example)
	}
	return p.command(&cli.Command{
		Name:        name,
		Usage:       usage,
		Subcommands: commands,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef(c, "unknown command %q%s; there is %s", c.Args().First(), meant(c.Args().First(), names), strings.Join(names, ", "))
			}
			return usagef(c, "a command is needed: %s", strings.Join(names, ", "))
		},
	}, examples...)
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
		if v := c.String(f.name); c.IsSet(f.name) && !contains(f.words, v) {
			return usagef(c, "--%s %q is none of %s", f.name, v, strings.Join(f.words, ", "))
		}
	}
	if c.Bool(flagDev) && c.IsSet(flagRedisURL) {
		return usagef(c, "--dev and --redis-url exclude each other")
	}
	return nil
}

func contains(words []string, s string) bool {
	for _, w := range words {
		if strings.EqualFold(w, s) {
			return true
		}
	}
	return false
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
