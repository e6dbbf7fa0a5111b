package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/keymigrate"
)

const (
	flagBack   = "back"
	flagDelete = "delete"
)

func moveLayoutCommand(p *program) *cobra.Command {
	return p.command("move-layout", "give all keys of the stopped app the names that a Redis Cluster needs, here or on another server; interrupted, run it again", flagList{
		newFlag(flagTo, "", "copy everything to the Redis at `URL`, such as redis+cluster://host:port; what is here stays, and is refused"),
		newFlag(flagDelete, false, "with --to: delete here what is there; may be said later"),
		newFlag(flagBack, false, "give the keys here their standalone names again"),
		newFlag(flagDryRun, false, "list what would be moved, and change nothing; exit with 3 if the move would be refused"),
		yesFlag(),
	}, runMoveLayout,
		"PROG stream move-layout --dry-run",
		"PROG stream move-layout",
		"PROG stream move-layout --to redis+cluster://10.0.0.1:6379,10.0.0.2:6379")
}

// A movedLayout is what `stream move-layout` prints.
type movedLayout struct {
	App     string      `json:"app"`
	Redis   string      `json:"redis"`            // address of the server that has, or had, the keys
	To      string      `json:"to"`               // layout of their new names
	Target  string      `json:"target,omitempty"` // address of the server that gets them, if it is another one
	DryRun  bool        `json:"dry_run"`
	Resumed bool        `json:"resumed"` // an earlier move was not complete
	Moved   bool        `json:"moved"`   // all keys are moved; false after a dry run, or if there is nothing to move
	Refused string      `json:"refused"` // of a dry run: why nothing would be moved now, "" for no reason
	Kinds   []movedKind `json:"kinds"`   // keys to move
}

// A movedKind is all keys of a kind.
type movedKind struct {
	Kind  string `json:"kind"`
	Keys  int    `json:"keys"`
	Items int64  `json:"items"` // entries, events or fields in them
	Bytes int64  `json:"bytes"` // of Redis' memory, -1 if unknown
}

func runMoveLayout(ctx context.Context, s *session, c *call) error {
	to := c.String(flagTo)
	switch {
	case c.IsSet(flagTo) && to == "":
		return usagef(c, "--to is a URL of Redis")
	case c.Bool(flagBack) && to != "":
		return usagef(c, "--back and --to exclude each other: the way back is on the server that had the keys")
	case c.Bool(flagDelete) && to == "":
		return usagef(c, "--delete is for --to")
	}
	m, err := keymigrate.Open(keymigrate.Options{
		App: s.app.Name(), Source: s.client.Opened(), Target: to, Back: c.Bool(flagBack), Delete: c.Bool(flagDelete), Report: reportMove(s),
	})
	if err != nil {
		return usagef(c, "%w", err)
	}
	defer m.Close()
	if err := s.connect(ctx); err != nil {
		return err
	}
	done := movedLayout{App: s.app.Name(), Redis: s.client.Addr(), To: m.To(), Target: m.Target(), DryRun: c.Bool(flagDryRun), Kinds: []movedKind{}}
	plan, err := m.Plan(ctx)
	if errors.Is(err, keymigrate.ErrNothing) {
		return s.out.line(done, "nothing to move: app %s at %s has no keys of other names", done.App, done.Redis)
	}
	if err != nil {
		return moveError(s, m, err)
	}
	if done.DryRun {
		done.found(plan)
		if err := s.out.table(done, done.write); err != nil || done.Refused == "" {
			return err
		}
		return exitThreshold
	}
	if plan.Refused != nil {
		return fmt.Errorf("app %s: %w; nothing was changed", done.App, plan.Refused)
	}
	where := ""
	if done.Target != "" {
		where = " and copy them to " + done.Target
	}
	if err := s.confirm(c, "Give %d keys of app %s at %s their %s names%s?", plan.Keys(), done.App, done.Redis, done.To, where); err != nil {
		return err
	}
	plan, err = m.Run(ctx)
	s.far.done()
	if err != nil {
		return moveError(s, m, err)
	}
	done.found(plan)
	done.Moved = true
	return unwritten(done.next(), s.out.table(done, done.write))
}

// moveError names both servers in an error that may be of either.
func moveError(s *session, m *keymigrate.Mover, err error) error {
	if unreachable(err) && m.Target() != "" && !strings.Contains(err.Error(), m.Target()) {
		return fmt.Errorf("redis at %s or %s: %w", s.client.Addr(), m.Target(), err)
	}
	return err
}

func (m *movedLayout) found(p *keymigrate.Plan) {
	if m.Resumed = p.Resumed; p.Refused != nil {
		m.Refused = p.Refused.Reason
	}
	for _, k := range p.Kinds {
		m.Kinds = append(m.Kinds, movedKind{k.Kind, k.Keys, k.Items, k.Bytes})
	}
}

func (m movedLayout) write(t table) {
	fmt.Fprintln(t, "KIND\tKEYS\tITEMS\tBYTES")
	total := movedKind{}
	for _, k := range m.Kinds {
		t.row(k.Kind, k.Keys, k.Items, known(k.Bytes, "-"))
		total.Keys += k.Keys
		if total.Bytes += k.Bytes; k.Bytes < 0 || total.Bytes < 0 {
			total.Bytes = -1
		}
	}
	t.row("total", total.Keys, "", known(total.Bytes, "-"))
	t.linef("%s", m.next())
}

// next is what was done, and what the user does next.
func (m movedLayout) next() string {
	layout := "set RUNNEL_KEY_LAYOUT=" + m.To + " for all workers and producers, then start them"
	switch {
	case m.Refused != "":
		return "not now: " + m.Refused
	case m.DryRun && m.Resumed:
		return "a move was begun and is not complete; nothing was changed now"
	case m.DryRun:
		return "nothing was changed"
	case m.Target != "":
		return fmt.Sprintf("all keys are at %s: set RUNNEL_REDIS_URL for all workers and producers, then start them", m.Target)
	}
	return fmt.Sprintf("all keys have their %s names: %s", m.To, layout)
}

// reportMove prints each step of a move when it begins, and how much of it is done on a terminal.
func reportMove(s *session) func(step string, done, of int) {
	now := ""
	return func(step string, done, of int) {
		if step != now {
			now = step
			s.far.done()
			printf(s.stderr, "%s …\n", step)
		}
		s.far.of(step, int64(done), int64(of))
	}
}
