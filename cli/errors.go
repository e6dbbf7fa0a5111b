package cli

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// An exitCode ends the program without a message, since the command has written all there is.
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

// onUsageError rewords an error of package flag in the style of the other usage errors.
func onUsageError(c *cli.Context, err error) error {
	text := err.Error()
	if name, unknown := strings.CutPrefix(text, "flag provided but not defined: -"); unknown {
		return usagef(c, "unknown flag %s", dashed(name))
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		if is := kindOf(c, m[2]); is != "" {
			return usagef(c, "%s %q is no %s", dashed(m[2]), m[1], is)
		}
	}
	return usagef(c, "%s", text)
}

// badValue matches the error of package flag for a value that it cannot read.
var badValue = regexp.MustCompile(`^invalid (?:boolean )?value "(.*)" for (?:flag )?-([\w-]+): `)

func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// kindOf describes the values of a flag, "" for an unknown kind.
func kindOf(c *cli.Context, name string) string {
	flags := c.App.Flags
	if c.Command != nil {
		flags = append(flags, c.Command.Flags...)
	}
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return "duration, such as 10s, 5m or 1h30m"
		case *cli.IntFlag, *cli.Int64Flag:
			return "whole number"
		case *cli.BoolFlag:
			return "truth value: the flag stands alone, or with =true or =false"
		}
	}
	return ""
}

// meant returns ", did you mean …?" with the word closest to what was typed, or "" if none differs
// by at most two letters and a third of its length.
func meant(typed string, words []string) string {
	best, least := "", 1+min(2, len(typed)/3)
	for _, w := range words {
		if d := distance(typed, w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s?", best)
}

// distance is the number of letters to add, remove, replace or swap with their neighbor to turn
// one word into the other (optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(last[j]+1, next[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last = last, next
	}
	return last[len(b)]
}

// commandOf is the path of a command without the program's name.
func commandOf(c *cli.Context) string {
	if c.Command == nil || c.Command.HelpName == "" {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(c.Command.HelpName, c.App.HelpName), " ")
}

// oneLine is an error's message as one line, without the stacks of panics, which the log has,
// and without the credentials in URLs.
func oneLine(err error) string {
	text := credentials.ReplaceAllString(err.Error(), "://***@")
	for _, stack := range stacks(err) {
		text = strings.ReplaceAll(text, "\n"+stack, "")
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}

// credentials matches what stands before the host of a URL.
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

// unreachable reports whether err is of a connection that failed.
func unreachable(err error) bool {
	var ne net.Error
	return errors.As(err, &ne)
}

// noServer is the error for a server that cannot be reached, with what to do.
func noServer(addr string, err error) error {
	if errors.As(err, new(*redisconn.CrowdedError)) {
		return err // the server is there
	}
	why := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" { // the whole error has more otherwise
		why = op.Err.Error()
	}
	return fmt.Errorf("no Redis at %s (%s): start redis-server, or say where it is with --redis-url or RUNNEL_REDIS_URL, or try it without one: worker --dev; %s", addr, why, help.RedisUnreachable)
}
