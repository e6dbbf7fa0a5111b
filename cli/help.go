package cli

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
