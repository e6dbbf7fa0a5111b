package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
)

// helpOf writes the help of a command, or of the program itself if top is set.
func helpOf(w io.Writer, c *cli.Command, top bool) {
	text := tabwriter.NewWriter(w, 1, 8, 2, ' ', 0) // lines up the flags
	fmt.Fprintf(text, "%s: %s\n\nUsage:\n   %s", c.HelpName, c.Usage, c.HelpName)
	if len(c.Subcommands) > 0 {
		fmt.Fprint(text, " COMMAND")
	}
	fmt.Fprint(text, " [flags]")
	switch {
	case c.ArgsUsage != "":
		fmt.Fprint(text, " "+c.ArgsUsage)
	case top:
		fmt.Fprint(text, " [arguments]")
	}
	fmt.Fprint(text, "\n")
	if c.Description != "" {
		fmt.Fprintf(text, "\nExamples:\n   %s\n", c.Description)
	}
	if !top || len(c.Subcommands) > 0 {
		fmt.Fprint(text, "\n")
	}
	if len(c.Subcommands) > 0 {
		fmt.Fprint(text, "Commands:")
		writeCommands(text, c.Subcommands)
		fmt.Fprint(text, "\n\n")
	}
	fmt.Fprint(text, "Flags:")
	for _, category := range c.VisibleFlagCategories() {
		writeFlags(text, category)
	}
	if top {
		fmt.Fprintf(text, "\n%s COMMAND --help shows a command with examples.\n", c.HelpName)
	}
	text.Flush() // Main notices output that cannot be written
}

func writeCommands(w io.Writer, commands []*cli.Command) {
	commands = slices.DeleteFunc(slices.Clone(commands), func(c *cli.Command) bool { return c.Hidden })
	width := 0
	for _, c := range commands {
		width = max(width, len(strings.Join(c.Names(), ", ")))
	}
	for _, c := range commands {
		fmt.Fprintf(w, "\n   %-*s  %s", width, strings.Join(c.Names(), ", "), c.Usage)
	}
}

func writeFlags(w io.Writer, category cli.VisibleFlagCategory) {
	fmt.Fprint(w, "\n")
	if category.Name() != "" {
		fmt.Fprintf(w, "   %s\n\n", category.Name())
	}
	for _, f := range category.Flags() {
		fmt.Fprintf(w, "   %s\n", f)
	}
}
