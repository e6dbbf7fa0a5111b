package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// confirm asks at a terminal before a command does what cannot be undone, unless --yes is set.
// Without a terminal, as in scripts, --yes is required.
func (s *session) confirm(c *call, format string, args ...any) error {
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
