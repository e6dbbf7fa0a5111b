package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
// registered are hidden until reveal finds something of it in Redis. A program without an app shows those
// whose worker needs none.
func extensionCommands(p *program) (groups []*cobra.Command) {
	for _, e := range p.extensions() {
		commands := extensionCommandsOf(p, e)
		if len(commands) > 0 {
			group := p.group(e.Name, e.Usage, commands...)
			works := slices.ContainsFunc(e.Commands, func(c extension.Command) bool { return c.Work != nil })
			group.Hidden = !e.Registered && (p.app != nil || !works)
			groups = append(groups, group)
		}
	}
	return groups
}

// extensionCommandsOf are the commands of an extension, with a group for each of its nouns.
func extensionCommandsOf(p *program, e extension.Entry) (commands []*cobra.Command) {
	nouns := map[string][]*cobra.Command{}
	for _, command := range e.Commands {
		if command.Work != nil && e.Registered {
			continue
		}
		noun, call, _ := strings.Cut(command.Call, " ")
		if e.Nouns[noun] == "" {
			commands = append(commands, extensionCommand(p, e, command))
			continue
		}
		command.Call = call
		nouns[noun] = append(nouns[noun], extensionCommand(p, e, command))
	}
	for _, noun := range slices.Sorted(maps.Keys(nouns)) {
		commands = append(commands, p.group(noun, e.Nouns[noun], nouns[noun]...))
	}
	return commands
}

func extensionCommand(p *program, e extension.Entry, command extension.Command) *cobra.Command {
	var flags flagList
	for _, f := range command.Flags {
		flags = append(flags, newFlag(f.Name, f.Default, f.Usage))
	}
	if command.Changes {
		flags = append(flags, yesFlag(), newFlag(flagWhy, "", "`REASON`, which audit ls shows"))
	}
	if command.Work != nil {
		return p.command(command.Call, command.Usage, append(append(flags, httpFlags()...), processorsFlag()), extensionWorker(command), command.Examples...)
	}
	run := connected(func(ctx context.Context, s *session, c *call) error {
		there, err := e.There(ctx, s.client)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("app %s at %s has nothing of %s%s", s.app.Name(), s.client.Addr(), e.Name, e.Absent)
		}
		err = command.Run(ctx, s.env(c))
		if errors.As(err, new(*extension.UsageError)) {
			return usagef(c, "%w", err)
		}
		return err
	})
	return p.command(command.Call, command.Usage, flags, run, command.Examples...)
}

// extensionWorker runs a worker for an app without code of its own.
func extensionWorker(command extension.Command) runner {
	return func(ctx context.Context, s *session, c *call) error {
		says, err := command.Work(s.app, c)
		if errors.As(err, new(*extension.UsageError)) {
			return usagef(c, "%w", err)
		}
		if err != nil {
			return err
		}
		printf(s.stderr, "%s: %s\n", s.name, says)
		return runWorker(ctx, s, c)
	}
}

// env is what a command of an extension runs with.
func (s *session) env(c *call) *extension.Env {
	return &extension.Env{
		Client: s.client, Who: rules.Whoami(), Args: c.args, Flags: c,
		Print: func(v any, text func(extension.Table)) error {
			return s.out.table(v, func(t table) { text(extensionTable{t}) })
		},
		Note:    func(format string, args ...any) { printf(s.stderr, s.name+": "+format+"\n", args...) },
		Confirm: func(format string, args ...any) error { return s.confirm(c, format, args...) },
		Audited: func(ctx context.Context, what, on string, do func(context.Context) (string, error)) (string, error) {
			return s.audited(ctx, c, what, on, do)
		},
	}
}

// audited calls do between two entries in the audit stream.
func (s *session) audited(ctx context.Context, c *call, what, on string, do func(context.Context) (string, error)) (string, error) {
	note := store.Audit{Who: rules.Whoami(), From: "command line", What: what, On: on, Why: c.String(flagWhy)}
	result, unnoted, err := s.client.Audited(ctx, note, do)
	if unnoted != nil && err == nil {
		err = fmt.Errorf("%s, but the audit stream does not have it: %w", result, unnoted)
	}
	return result, err
}

// extensionTable is a table for packages that do not know this one.
type extensionTable struct{ table }

func (t extensionTable) Row(cells ...any)                 { t.row(cells...) }
func (t extensionTable) Linef(format string, args ...any) { t.linef(format, args...) }

// reveal shows the hidden groups of which Redis has something, in the app that the flags name. Without
// an app, or an answer in time, they stay hidden.
func (p *program) reveal(c *call) {
	hidden := map[string]*cobra.Command{}
	for _, command := range c.Root().Commands() {
		if command.Hidden {
			hidden[command.Name()] = command
		}
	}
	if len(hidden) == 0 {
		return
	}
	p.quietly(c, func(ctx context.Context, s *session) {
		for _, e := range p.extensions() {
			if group := hidden[e.Name]; group != nil {
				there, err := e.There(ctx, s.client)
				group.Hidden = err != nil || !there
			}
		}
	})
}

// quietly calls do in a session of the app that the flags name, if they name one. do has as long as a user
// waits who pressed a key.
func (p *program) quietly(c *call, do func(ctx context.Context, s *session)) {
	s := &session{program: p}
	if s.open(c) != nil {
		return
	}
	if p.app == nil {
		defer s.app.Close()
	}
	var err error
	if s.client, err = s.reg.Client(); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), completePatience)
	defer cancel()
	do(ctx, s)
}
