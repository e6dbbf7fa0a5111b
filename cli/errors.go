package cli

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

func usagef(c *call, format string, args ...any) error {
	return usageOf(c.Command, fmt.Errorf(format, args...))
}

func usageOf(c *cobra.Command, err error) error {
	return &usageError{strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name()), " "), err}
}

// onUsageError rewords an error of the flags' parser in the style of the other usage errors.
func onUsageError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name := dashed(unknown.GetSpecifiedName())
		err = fmt.Errorf("unknown flag %s", name)
		if strings.TrimLeft(name, "-0123456789.") == "" {
			err = fmt.Errorf("%w: behind -- a number below 0 is an argument", err)
		}
	case errors.As(err, &missing):
		err = fmt.Errorf("flag %s needs a value", dashed(missing.GetSpecifiedName()))
	case errors.As(err, &bad):
		is := map[string]string{
			"duration": "duration, such as 10s, 5m or 1h30m", "int": "whole number", "int64": "whole number",
			"bool": "truth value: the flag stands alone, or with =true or =false",
		}[bad.GetFlag().Value.Type()]
		err = fmt.Errorf("%s %q is no %s", dashed(bad.GetFlag().Name), bad.GetValue(), is)
	}
	return usageOf(c, err)
}

func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
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
