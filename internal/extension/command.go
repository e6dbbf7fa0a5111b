package extension

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A Command is a command of an extension's group.
type Command struct {
	Call     string // its name, of two words for one of Extension.Nouns, and its arguments, as in "add TEXT…"
	Usage    string // what it does, in one line
	Flags    []Flag
	Changes  bool     // it has the flags --yes and --why for Confirm and Audited
	Examples []string // command lines, with PROG for the program
	// Run does it, once the server has answered. Its error ends the program: a UsageError with code 2, any other
	// with 1.
	Run func(ctx context.Context, env *Env) error
	// Work, instead of Run, adds to a *runnel.App without code of its own what a worker of it is to run; then one runs, as by
	// the command worker. It returns what the worker prints first. Apps that have registered the extension do not have the command.
	Work func(app any, flags Flags) (says string, err error)
}

// A Flag is a flag of a command.
type Flag struct {
	Name    string
	Usage   string // with the name of the value in backquotes
	Default any    // a bool, string, int or time.Duration: the type of its value
	NoPage  bool   // pages do not have it
}

// Flags are the values of a command's flags, by name.
type Flags interface {
	IsSet(name string) bool
	Bool(name string) bool
	String(name string) string
	Int(name string) int
	Duration(name string) time.Duration
}

// An Env is what a command runs with.
type Env struct {
	Client *store.Client // of the app
	Who    string        // asks, of a command that changes something
	Args   []string
	Flags  Flags
	// Print writes v as JSON, or the text, whichever --output asks for.
	Print func(v any, text func(t Table)) error
	// Note writes a line for people beside the output.
	Note func(format string, args ...any)
	// Confirm asks a question at the terminal, unless --yes is set, and returns an error without a yes.
	Confirm func(format string, args ...any) error
	// Audited calls do between two entries in the audit stream: what it is about to do to what, and the
	// result that do returns. It returns that result.
	Audited func(ctx context.Context, what, on string, do func(context.Context) (string, error)) (string, error)
}

// A Table is text in columns, and lines between the rows.
type Table interface {
	Row(cells ...any)
	Linef(format string, args ...any)
}

// Choose returns the name of one of those that an owner has, or for "" the only one. The error tells how to say which one.
func Choose(owner, noun, say, name string, names []string) (string, error) {
	there := cmp.Or(strings.Join(names, ", "), "none")
	switch {
	case slices.Contains(names, name):
		return name, nil
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "":
		return "", Usagef("which %s? say %s: %s has %s", noun, say, owner, there)
	}
	return "", fmt.Errorf("%s has no %s %q; it has %s", owner, noun, name, there)
}
