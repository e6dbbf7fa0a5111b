package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

const flagYes = "yes"

// yesFlag is that of every command that asks.
func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, DisableDefaultText: true, Usage: "do not ask; needed where there is no terminal to ask at"}
}

// confirm asks at a terminal whether something is meant that cannot be undone, unless
// --yes says so. Elsewhere, as in scripts, --yes has to.
func (s *session) confirm(c *cli.Context, format string, args ...any) error {
	if c.Bool(flagYes) {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !isTerminal(s.stdin) {
		return usagef(c, "%s There is no terminal to ask at: say --%s; nothing was changed", question, flagYes)
	}
	s.far.done() // the wait for an answer is no work
	printf(s.stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(io.LimitReader(s.stdin, 1<<10)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not confirmed; nothing was changed")
}
