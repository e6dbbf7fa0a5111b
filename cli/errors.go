package cli

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel"
)

// An exitCode ends the program without a word: all was said.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// A usageError is a mistake in the command line.
type usageError struct {
	command string // "" for the program itself
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(c *cli.Context, format string, args ...any) error {
	return &usageError{command: commandOf(c), err: fmt.Errorf(format, args...)}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	text := strings.Replace(err.Error(), "flag provided but not defined: -", "unknown flag --", 1)
	return usagef(c, "%s", text)
}

// commandOf is the path of a command without the program's name.
func commandOf(c *cli.Context) string {
	if c.Command == nil || c.Command.HelpName == "" {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(c.Command.HelpName, c.App.HelpName), " ")
}

// oneLine is an error's message as one line: the stacks of panics, which the
// log has, are left out.
//
// Of a URL among the arguments it does not repeat who is to log in.
func oneLine(err error) string {
	text := credentials.ReplaceAllString(err.Error(), "://***@")
	for _, stack := range stacks(err) {
		text = strings.ReplaceAll(text, "\n"+stack, "")
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}

// credentials are what stands before the host of a URL.
var credentials = regexp.MustCompile(`://[^\s"']*@`)

func stacks(err error) []string {
	var out []string
	if p, ok := err.(*runnel.PanicError); ok {
		out = append(out, string(p.Stack))
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			out = append(out, stacks(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			out = append(out, stacks(inner)...)
		}
	}
	return out
}

// unreachable reports whether err says that there is no connection.
func unreachable(err error) bool {
	var ne net.Error
	return errors.As(err, &ne)
}

// noServer says what was tried and what to do.
func noServer(addr string, err error) error {
	why := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" { // else it says more
		why = op.Err.Error()
	}
	return fmt.Errorf("no Redis at %s (%s): start redis-server, or say where it is with --redis-url or RUNNEL_REDIS_URL, or try it without one: worker --dev", addr, why)
}
