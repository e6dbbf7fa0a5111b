package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

const (
	// completeWord is the command that the shells' scripts call with the words as they were
	// typed. The help does not list it.
	completeWord = "__complete"
	// completePatience bounds how long a user who pressed a key waits for names.
	completePatience = time.Second
)

// completions are scripts for shells. PROG stands for the name of the program, FUNC for the same
// as a name of a function.
var completions = map[string]string{
	"bash": `_FUNC_complete() {
	local IFS=$'\n'
	COMPREPLY=($(compgen -W "$(PROG __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _FUNC_complete PROG
`,
	"zsh": `#compdef PROG
_FUNC_complete() {
	local -a found
	found=("${(@f)$(PROG __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	compadd -a found
}
compdef _FUNC_complete PROG
`,
	"fish": `complete -c PROG -f -a '(PROG __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

func completionCommand(p *program) *cli.Command {
	return p.plain("completion bash|zsh|fish", "print a script that completes commands, flags, streams and processors in a shell", nil, p.runCompletion,
		"source <(PROG completion bash)",
		"PROG completion fish > ~/.config/fish/completions/PROG.fish")
}

func (p *program) runCompletion(c *cli.Context) error {
	script, ok := completions[c.Args().First()]
	if !ok || c.NArg() != 1 {
		return usagef(c, "for which shell? bash, zsh or fish")
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, p.name)
	_, err := io.WriteString(p.stdout, strings.NewReplacer("PROG", p.name, "FUNC", name).Replace(script))
	return err
}

// complete prints the completions of the last word, a line each. It prints no errors, since a shell
// shows none.
func (p *program) complete(ctx context.Context, words []string) int {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	root := p.root()
	valued := valuedFlags(root.Flags, root.Commands)
	var typed []string // without flags and their values
	for i := 0; i < len(before); i++ {
		if !isFlag(before[i]) {
			typed = append(typed, before[i])
		} else if valued[strings.TrimLeft(before[i], "-")] {
			if i++; i == len(before) {
				return 0 // a value is being typed
			}
		}
	}
	path, args := commandPath(root.Commands, typed)
	flags, commands := root.Flags, root.Commands
	var command *cli.Command
	for _, name := range path {
		command = commands[slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(name) })]
		flags, commands = command.Flags, command.Subcommands
	}
	var found []string
	switch {
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			found = append(found, "--"+f.Names()[0])
		}
		found = append(found, "--help")
	case len(commands) > 0 && len(args) == 0:
		if command == nil {
			p.reveal(contextOf(ctx, root, before), root.Commands)
		}
		for _, c := range commands {
			if !c.Hidden {
				found = append(found, c.Name)
			}
		}
	case command != nil && len(args) == 0:
		found = p.names(ctx, command.ArgsUsage, before)
		if slices.Contains(takeParts, path[0]) {
			found = append(found, p.parts(contextOf(ctx, root, before))...)
		}
	}
	slices.Sort(found)
	for _, word := range slices.Compact(found) {
		if strings.HasPrefix(word, last) {
			fmt.Fprintln(p.stdout, word)
		}
	}
	return 0
}

// placeOf returns the flags that say which server and which app.
func placeOf(typed []string) (flags []string) {
	for i, word := range typed {
		if slices.Contains([]string{"--" + flagApp, "--" + flagRedisURL}, word) && i+1 < len(typed) {
			flags = append(flags, word, typed[i+1])
		}
	}
	return flags
}

// contextOf is of the program's own flags in what was typed so far.
func contextOf(ctx context.Context, root *cli.App, typed []string) *cli.Context {
	set := flag.NewFlagSet(root.HelpName, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	_ = parseFlags(set, root.Flags, placeOf(typed)) // each has its value
	c := cli.NewContext(root, set, &cli.Context{Context: ctx})
	c.Command = &cli.Command{HelpName: root.HelpName}
	return c
}

// takeParts are the commands that take a part of an extension where they take a processor.
var takeParts = []string{"pause", "resume", "block", "unblock", "parked", "dead"}

// names are the streams and processors that an argument may name, by the usage of its command.
func (p *program) names(ctx context.Context, usage string, typed []string) (found []string) {
	if !strings.Contains(usage, "STREAM") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completePatience)
	defer cancel()
	var out bytes.Buffer
	var streams []listedStream
	lister := newProgram(p.app, strings.NewReader(""), &out, io.Discard)
	if lister.main(ctx, append([]string{"stream", "ls", "--all", "--output", "json"}, placeOf(typed)...)) != 0 || json.Unmarshal(out.Bytes(), &streams) != nil {
		return nil
	}
	for _, st := range streams {
		if !strings.HasPrefix(strings.TrimPrefix(usage, "["), "STREAM/") {
			found = append(found, st.Stream)
		}
		for _, name := range st.Processors {
			if strings.Contains(usage, "/PROCESSOR") {
				found = append(found, st.Stream+"/"+name)
			}
		}
	}
	return found
}
