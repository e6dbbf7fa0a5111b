package cli

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
)

const flagHelp = "help"

// dispatch runs the command that args, as arranged by arrange, begin with.
//
// The library's App.Run would do the same, but prints help with text/template, which calls
// methods by name. For a program that can do so the linker keeps every exported method of
// every type: 8 MB more, most of it commands of Redis that nothing calls.
func dispatch(ctx context.Context, p *program, root *cli.App, args []string) error {
	at := &cli.Command{HelpName: root.HelpName, Usage: root.Usage, Flags: root.Flags, Subcommands: root.Commands, Action: p.noCommand}
	top := true
	for len(args) > 0 {
		next := at.Command(args[0])
		if next == nil {
			break
		}
		next.HelpName = at.HelpName + " " + next.Name
		at, top, args = next, false, args[1:]
	}
	at.Flags = append(at.Flags, &cli.BoolFlag{Name: flagHelp, Aliases: []string{"h"}, DisableDefaultText: true, Usage: "show help"})
	set := flag.NewFlagSet(at.HelpName, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	c := cli.NewContext(root, set, &cli.Context{Context: ctx})
	c.Command = at
	if err := parseFlags(set, at.Flags, args); err != nil {
		return onUsageError(c, err)
	}
	if c.Bool(flagHelp) {
		if top {
			p.reveal(c, at.Subcommands)
		}
		helpOf(p.stdout, at, top)
		return nil
	}
	return at.Action(c)
}

// parseFlags reads args into a set, under all names of each flag.
func parseFlags(set *flag.FlagSet, flags []cli.Flag, args []string) error {
	for _, f := range flags {
		if err := f.Apply(set); err != nil {
			return err
		}
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	typed := map[string]bool{}
	set.Visit(func(f *flag.Flag) { typed[f.Name] = true })
	for _, f := range flags {
		var found string
		for _, name := range f.Names() {
			if !typed[name] {
				continue
			}
			if found != "" {
				return fmt.Errorf("cannot use two forms of the same flag: %s %s", name, found)
			}
			found = name
		}
		for _, name := range f.Names() {
			if found != "" && name != found {
				if err := set.Set(name, set.Lookup(found).Value.String()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
