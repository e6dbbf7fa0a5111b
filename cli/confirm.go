package cli

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// confirm asks, at a terminal, whether something is meant, unless --yes says so.
// Elsewhere, as in scripts, it is.
func (s *session) confirm(c *cli.Context, format string, args ...any) error {
	if c.Bool(flagYes) || !isTerminal(s.stdin) {
		return nil
	}
	printf(s.stderr, format+" [y/N] ", args...)
	answer, _ := bufio.NewReader(io.LimitReader(s.stdin, 1<<10)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not confirmed; nothing was changed")
}
