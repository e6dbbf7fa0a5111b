package cli

import (
	"flag"

	"github.com/urfave/cli/v2"
)

const rootHelp = `{{.HelpName}}: {{.Usage}}

Usage:
   {{.HelpName}} COMMAND [flags] [arguments]

Commands:{{template "visibleCommandCategoryTemplate" .}}

Flags:{{template "visibleFlagCategoryTemplate" .}}
{{.HelpName}} COMMAND --help shows a command with examples.
`

const commandHelp = `{{.HelpName}}: {{.Usage}}

Usage:
   {{if .UsageText}}{{.UsageText}}{{else}}{{.HelpName}}{{if .VisibleCommands}} COMMAND{{end}} [flags]{{if .ArgsUsage}} {{.ArgsUsage}}{{end}}{{end}}
{{if .Description}}
Examples:
   {{.Description}}
{{end}}{{if .VisibleCommands}}
Commands:{{template "visibleCommandCategoryTemplate" .}}
{{end}}
Flags:{{template "visibleFlagCategoryTemplate" .}}`

// helpFlag is the library's flag, but for what that one writes into a variable of
// all programs: two calls of Main may begin at once.
type helpFlag struct{ *cli.BoolFlag }

func (f helpFlag) Apply(set *flag.FlagSet) error {
	for _, name := range f.Names() {
		set.Bool(name, false, f.Usage)
	}
	return nil
}

func init() {
	if f, ok := cli.HelpFlag.(*cli.BoolFlag); ok {
		cli.HelpFlag = helpFlag{f}
	}
}
