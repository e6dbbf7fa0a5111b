package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
)

// extensions are those of the app, or without an app those that are known.
func (p *program) extensions() []extension.Entry {
	if p.app == nil {
		return extension.All(nil)
	}
	return extension.All(p.app)
}

// extensionCommands are the command groups of extensions. Those of an extension that the app has not
// registered are hidden until reveal finds something of it in Redis.
func extensionCommands(p *program) (groups []*cli.Command) {
	for _, e := range p.extensions() {
		var commands []*cli.Command
		for _, command := range e.Commands {
			commands = append(commands, extensionCommand(p, e, command))
		}
		if len(commands) > 0 {
			group := p.group(e.Name, e.Usage, commands...)
			group.Hidden = !e.Registered
			groups = append(groups, group)
		}
	}
	return groups
}

func extensionCommand(p *program, e extension.Entry, command extension.Command) *cli.Command {
	var flags []cli.Flag
	for _, f := range command.Flags {
		flags = append(flags, flagOf(f))
	}
	if command.Changes {
		flags = append(flags, yesFlag(), &cli.StringFlag{Name: flagWhy, Usage: "`REASON`, which audit ls shows"})
	}
	run := connected(func(ctx context.Context, s *session, c *cli.Context) error {
		there, err := e.There(ctx, s.client)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("app %s at %s has nothing of %s", s.app.Name(), s.client.Addr(), e.Name)
		}
		err = command.Run(ctx, s.env(c))
		if errors.As(err, new(*extension.UsageError)) {
			return usagef(c, "%w", err)
		}
		return err
	})
	return p.command(command.Call, command.Usage, flags, run, command.Examples...)
}

// flagOf panics for a default of another type: that is a mistake in an extension's code.
func flagOf(f extension.Flag) cli.Flag {
	switch v := f.Default.(type) {
	case bool:
		return boolFlag(f.Name, f.Usage)
	case string:
		return &cli.StringFlag{Name: f.Name, Value: v, Usage: f.Usage}
	case int:
		return &cli.IntFlag{Name: f.Name, Value: v, Usage: f.Usage}
	case time.Duration:
		return &cli.DurationFlag{Name: f.Name, Value: v, Usage: f.Usage}
	}
	panic(fmt.Sprintf("cli: flag --%s of an extension has a default of type %T", f.Name, f.Default))
}

// env is what a command of an extension runs with.
func (s *session) env(c *cli.Context) *extension.Env {
	return &extension.Env{
		Client: s.client, Args: c.Args().Slice(), Flags: c,
		Print: func(v any, text func(extension.Table)) error {
			return s.out.table(v, func(t table) { text(extensionTable{t}) })
		},
		Confirm: func(format string, args ...any) error { return s.confirm(c, format, args...) },
		Audited: func(ctx context.Context, what, on string, do func(context.Context) (string, error)) (string, error) {
			note := store.Audit{Who: rules.Whoami(), From: "command line", What: what, On: on, Why: c.String(flagWhy)}
			result, unnoted, err := s.client.Audited(ctx, note, do)
			if unnoted != nil && err == nil {
				err = fmt.Errorf("%s, but the audit stream does not have it: %w", result, unnoted)
			}
			return result, err
		},
	}
}

// extensionTable is a table for packages that do not know this one.
type extensionTable struct{ table }

func (t extensionTable) Row(cells ...any)                 { t.row(cells...) }
func (t extensionTable) Linef(format string, args ...any) { t.linef(format, args...) }

// reveal shows the hidden groups of which Redis has something, in the app that the flags name. Without
// an app, or an answer in time, they stay hidden.
func (p *program) reveal(c *cli.Context, commands []*cli.Command) {
	hidden := map[string]*cli.Command{}
	for _, command := range commands {
		if command.Hidden {
			hidden[command.Name] = command
		}
	}
	if len(hidden) == 0 {
		return
	}
	p.quietly(c, func(ctx context.Context, _ *runnel.App, client *store.Client) {
		for _, e := range p.extensions() {
			if group := hidden[e.Name]; group != nil {
				there, err := e.There(ctx, client)
				group.Hidden = err != nil || !there
			}
		}
	})
}

// parts are the parts of extensions, as OWNER/PART.
func (p *program) parts(c *cli.Context) (names []string) {
	if len(p.extensions()) == 0 {
		return nil
	}
	p.quietly(c, func(ctx context.Context, app *runnel.App, client *store.Client) {
		all, _ := extension.Targets(ctx, app, client, "") // a shell shows no errors
		for _, t := range all {
			names = append(names, t.Owner+"/"+t.Part)
		}
	})
	return names
}

// quietly calls do with the client of the app that the flags name, if they name one. do has as long as
// a user waits who pressed a key.
func (p *program) quietly(c *cli.Context, do func(ctx context.Context, app *runnel.App, client *store.Client)) {
	s := &session{program: p}
	if s.open(c) != nil {
		return
	}
	if p.app == nil {
		defer s.app.Close()
	}
	client, err := s.reg.Client()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context, completePatience)
	defer cancel()
	do(ctx, s.app, client)
}
