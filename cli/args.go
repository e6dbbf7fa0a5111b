package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange puts all flags, wherever they were typed, between the command and its arguments,
// because the library stops looking for flags at the first argument. It also returns the
// flags alone, as typed. "--" ends the flags. Neither "-" nor a negative number is a flag.
func arrange(root *cli.App, args []string) (arranged, flags []string, err error) {
	valued := valuedFlags(root.Flags, root.Commands)
	var words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			words = append(words, args[i+1:]...)
			break
		}
		if !isFlag(arg) {
			words = append(words, arg)
			continue
		}
		flags = append(flags, arg)
		if name := strings.TrimLeft(arg, "-"); valued[name] {
			if i+1 == len(args) {
				path, _ := commandPath(root.Commands, words)
				return nil, flags, &usageError{strings.Join(path, " "), missingValue(arg)}
			}
			i++
			flags = append(flags, args[i])
		}
	}
	if len(words) > 0 && words[0] == "help" {
		words, flags = words[1:], append(flags, "--help")
	}
	if len(words) == 0 {
		if at := slices.Index(flags, "--version"); at >= 0 {
			words, flags = []string{"version"}, slices.Delete(flags, at, at+1)
		}
	}
	path, rest := commandPath(root.Commands, words)
	if len(path) > 0 && (slices.Contains(flags, "--help") || slices.Contains(flags, "-h")) {
		// Without the arguments, which the library would take for commands to explain.
		return append(path, "--help"), flags, nil
	}
	return slices.Concat(path, flags, []string{"--"}, rest), flags, nil
}

type missingValue string

func (m missingValue) Error() string { return "flag " + string(m) + " needs a value" }

func isFlag(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && (arg[1] < '0' || arg[1] > '9')
}

// valuedFlags are the names of all flags that take a value.
func valuedFlags(flags []cli.Flag, commands []*cli.Command) map[string]bool {
	valued := map[string]bool{}
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && d.TakesValue() {
			for _, name := range f.Names() {
				valued[name] = true
			}
		}
	}
	for _, c := range commands {
		for name := range valuedFlags(c.Flags, c.Subcommands) {
			valued[name] = true
		}
	}
	return valued
}

// commandPath splits words into the names of a command and its arguments.
func commandPath(commands []*cli.Command, words []string) (path, rest []string) {
	for len(words) > 0 {
		at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(words[0]) })
		if at < 0 {
			break
		}
		path, words, commands = append(path, words[0]), words[1:], commands[at].Subcommands
	}
	return path, words
}
