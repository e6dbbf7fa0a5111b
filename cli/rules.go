package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	flagWhy     = "why"
	flagWho     = "who"
	flagFor     = "for"
	flagWait    = "wait"
	flagAsAdmin = "as-admin"
	flagYet     = "yet"

	// waitingEvery is how often --wait says what it waits for.
	waitingEvery = 5 * time.Second
)

// ruleCommands are pause, resume, block and unblock.
func (p *program) ruleCommands() []*cli.Command {
	scope := []cli.Flag{
		&cli.IntFlag{Name: flagPartition, DefaultText: "all", Usage: "only partition `N` of a processor"},
		&cli.BoolFlag{Name: flagAll, DisableDefaultText: true, Usage: "the whole app"},
	}
	set := append([]cli.Flag{
		&cli.StringFlag{Name: flagWhy, Usage: "`REASON`, which rules ls and status show"},
		&cli.StringFlag{Name: flagWho, Usage: "`NAME` that they show (default user@host)"},
		&cli.DurationFlag{Name: flagFor, DefaultText: "until it is removed", Usage: "end by itself after this `TIME`, such as 10m"},
		&cli.BoolFlag{Name: flagYet, DisableDefaultText: true, Usage: "also what is not there yet: it is held back from its start"},
		&cli.BoolFlag{Name: flagWait, DisableDefaultText: true, Usage: "return when no function runs any more and none can begin to"},
	}, scope...)
	mean := &cli.BoolFlag{Name: flagAsAdmin, DisableDefaultText: true, Usage: "say that you mean it: a block is an administrator's"}
	return []*cli.Command{
		p.ruleCommand("pause", "hold back an app, a stream, a processor or a partition: it takes no event until resume", set, p.setRule(admin.RulePause),
			"PROG pause orders/printer --why 'no paper' --for 10m",
			"PROG pause orders/printer --partition 3",
			"PROG pause orders --wait",
			"PROG pause --all --wait"),
		p.ruleCommand("resume", "remove a pause", scope, p.removeRule(admin.RulePause),
			"PROG resume orders/printer",
			"PROG resume --all"),
		p.ruleCommand("block", "hold back as pause does, whatever operators pause and resume", append(set, mean), p.setRule(admin.RuleBlock),
			"PROG block orders --as-admin --why 'migration' --wait"),
		p.ruleCommand("unblock", "remove a block", append(scope, mean), p.removeRule(admin.RuleBlock),
			"PROG unblock orders --as-admin"),
	}
}

func (p *program) ruleCommand(name, usage string, flags []cli.Flag, fn func(context.Context, *session, *cli.Context) error, examples ...string) *cli.Command {
	return p.command(&cli.Command{
		Name: name, Usage: usage, ArgsUsage: "STREAM[/PROCESSOR]|--all", Flags: flags, Action: p.action(fn),
	}, examples...)
}

// scopeOf is the scope that a command line names.
func scopeOf(c *cli.Context) (admin.Scope, error) {
	stream, processor, narrower := strings.Cut(c.Args().First(), "/")
	switch {
	case c.NArg() > 1:
		return admin.Scope{}, usagef(c, "unexpected argument %q", c.Args().Get(1))
	case c.Bool(flagAll) && (c.NArg() > 0 || c.IsSet(flagPartition)):
		return admin.Scope{}, usagef(c, "--all is the whole app: leave out the rest")
	case c.Bool(flagAll):
		return admin.AppScope(), nil
	case c.NArg() == 0:
		return admin.Scope{}, usagef(c, "of what? say STREAM, STREAM/PROCESSOR, or --all for the whole app")
	case c.IsSet(flagPartition) && !narrower:
		return admin.Scope{}, usagef(c, "--partition is of a processor: say STREAM/PROCESSOR")
	}
	scope := admin.StreamScope(stream)
	if narrower {
		scope = admin.ProcessorScope(stream, processor)
	}
	if c.IsSet(flagPartition) {
		scope = admin.PartitionScope(stream, processor, c.Int(flagPartition))
	}
	if err := scope.Check(); err != nil {
		return admin.Scope{}, usagef(c, "%w", err)
	}
	return scope, nil
}

// checkAdmin refuses what only administrators should do by accident.
func checkAdmin(c *cli.Context, kind admin.RuleKind) error {
	if kind == admin.RuleBlock && !c.Bool(flagAsAdmin) {
		return usagef(c, "a block is an administrator's: say --as-admin if you mean it; an operator's is pause and resume")
	}
	return nil
}

// changedRule is what these commands tell.
type changedRule struct {
	inspect.RuleState
	Generation int64    `json:"generation"` // of the rules
	Was        bool     `json:"was"`        // there was such a rule before
	Waited     bool     `json:"waited"`     // nothing runs any more
	Held       []string `json:"held"`       // the rules that hold back some of it now
}

// scopeFor reads the scope of a rule that the user may set or remove.
func scopeFor(c *cli.Context, kind admin.RuleKind) (admin.Scope, error) {
	scope, err := scopeOf(c)
	if err == nil {
		err = checkAdmin(c, kind)
	}
	return scope, err
}

func (p *program) setRule(kind admin.RuleKind) func(context.Context, *session, *cli.Context) error {
	return func(ctx context.Context, s *session, c *cli.Context) error {
		scope, err := scopeFor(c, kind)
		if err != nil {
			return err
		}
		lasts := c.Duration(flagFor)
		if c.IsSet(flagFor) && lasts < time.Millisecond {
			return usagef(c, "--for %v is too short", lasts)
		}
		if err := s.connect(ctx); err != nil {
			return err
		}
		if err := s.checkKnown(ctx, scope, c.Bool(flagYet)); err != nil {
			return err
		}
		opts := &admin.RuleOptions{Who: whoOf(c), Why: c.String(flagWhy), For: lasts}
		change, err := s.admin.SetRule(ctx, kind, scope, opts)
		if err != nil {
			return err
		}
		told := changedRule{RuleState: ruleState(change.Rule), Generation: change.Generation, Was: change.Was}
		if told.Waited = c.Bool(flagWait); told.Waited {
			if err := s.awaitRules(ctx, scope); err != nil {
				return err
			}
		}
		did := change.Rule.String()
		if told.Waited {
			did += "; nothing runs any more"
		}
		return s.out.line(told, "%s", did)
	}
}

// held are the rules that hold back some of a scope now.
func (s *session) held(ctx context.Context, scope admin.Scope) ([]string, error) {
	in, err := s.admin.RulesAbout(ctx, scope)
	held := []string{}
	for _, r := range in {
		held = append(held, r.String())
	}
	return held, err
}

func ruleState(r admin.Rule) inspect.RuleState {
	s := inspect.RuleState{Kind: string(r.Kind), Scope: r.Scope.String(), Who: r.Who, Why: r.Why, At: r.At}
	if !r.Until.IsZero() {
		s.Until = &r.Until
	}
	return s
}

func (p *program) removeRule(kind admin.RuleKind) func(context.Context, *session, *cli.Context) error {
	return func(ctx context.Context, s *session, c *cli.Context) error {
		scope, err := scopeFor(c, kind)
		if err != nil {
			return err
		}
		if err := s.connect(ctx); err != nil {
			return err
		}
		told, change, err := s.removeRule(ctx, kind, scope)
		if err != nil {
			return err
		}
		return unwritten(change.Removed(), s.out.write(told, func(w io.Writer) error { return writeRemoved(w, change, told.Held) }))
	}
}

func (s *session) removeRule(ctx context.Context, kind admin.RuleKind, scope admin.Scope) (told changedRule, change admin.RuleChange, err error) {
	if change, err = s.admin.RemoveRule(ctx, kind, scope); err != nil {
		return told, change, err
	}
	told = changedRule{RuleState: ruleState(change.Rule), Generation: change.Generation, Was: change.Was}
	told.Held, err = s.held(ctx, scope)
	return told, change, err
}

func writeRemoved(w io.Writer, change admin.RuleChange, held []string) error {
	printf(w, "%s\n", change.Removed())
	for _, other := range held {
		printf(w, "still in force: %s\n", other)
	}
	return nil
}

// checkKnown refuses to hold back what is not there, which may be a slip, unless it may come later.
func (s *session) checkKnown(ctx context.Context, scope admin.Scope, yet bool) error {
	err := s.admin.CheckScope(ctx, scope)
	if missing := (*admin.NotFoundError)(nil); errors.As(err, &missing) {
		if yet {
			return nil
		}
		return fmt.Errorf("%w; --%s holds it back from its start", err, flagYet)
	}
	return err
}

// awaitRules waits until nothing runs, and says from time to time what still does.
func (s *session) awaitRules(ctx context.Context, scope admin.Scope) error {
	said := time.Now()
	return s.admin.WithProgress(func(what string, _, _ int64) {
		if time.Since(said) >= waitingEvery {
			said = time.Now()
			printf(s.stderr, "%s: %s\n", s.name, what)
		}
	}).Wait(ctx, scope)
}

func whoOf(c *cli.Context) string {
	if who := c.String(flagWho); who != "" {
		return who
	}
	return rules.Whoami()
}

// rules is the command that lists them.
func (p *program) rules() *cli.Command {
	ls := p.command(&cli.Command{
		Name: "ls", Usage: "list what is paused, blocked and quarantined: by whom, since when, until when, why, and what ends it", Action: p.action(runRules),
	}, "PROG rules ls", "PROG rules ls --output json")
	return p.group("rules", "see what is paused, blocked and quarantined", ls)
}

func runRules(ctx context.Context, s *session, c *cli.Context) error { return listStops(ctx, s, c, "") }

func runQuarantineLs(ctx context.Context, s *session, c *cli.Context) error {
	return listStops(ctx, s, c, inspect.KindQuarantine)
}

// listStops lists what stands still: all of it, or one kind.
func listStops(ctx context.Context, s *session, c *cli.Context, kind string) error {
	if c.Args().Present() {
		return usagef(c, "unexpected argument %q", c.Args().First())
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if _, err := inspect.Rules(ctx, s.client); err != nil {
		return err // as such, so that it says what to do
	}
	app, err := inspect.App(ctx, s.client, "", 1)
	if err != nil {
		return err
	}
	states := slices.DeleteFunc(app.Stops(), func(r inspect.RuleState) bool { return kind != "" && r.Kind != kind })
	for i := range app.Streams {
		for _, p := range app.Streams[i].Processors {
			if n := p.Totals.Unknown; n > 0 {
				printf(s.stderr, "%s: %s of %s/%s cannot be looked at, so quarantines may be missing here; `%s doctor` says why\n", s.name, words.Plural(n, "partition"), p.Stream, p.Processor, s.prefix())
			}
		}
	}
	return s.out.write(states, func(w io.Writer) error { return s.writeRules(w, states) })
}

func (s *session) writeRules(w io.Writer, states []inspect.RuleState) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(states) == 0 {
		fmt.Fprintln(t, "nothing is paused, blocked or quarantined")
		return t.Flush()
	}
	fmt.Fprintln(t, "KIND\tSCOPE\tWHO\tSINCE\tUNTIL\tWHY\tENDS WITH")
	for _, r := range states {
		until, why := "until removed", words.Reason(r.Event, r.Why)
		switch {
		case r.Kind == inspect.KindQuarantine:
			until, why = "until released", fmt.Sprintf("at event %s: %s", words.Dash(r.Event), why)
		case r.Until != nil:
			until = r.Until.Format(time.RFC3339)
		}
		scope := r.Scope
		if r.Absent {
			scope += " (not there)"
		}
		printf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s %s\n", r.Kind, scope, words.Dash(r.Who), r.At.Format(time.RFC3339), until, words.Dash(why), s.prefix(), r.Command)
	}
	return t.Flush()
}

// ruleText is a rule as status shows it.
func ruleText(r inspect.RuleState) string {
	text := fmt.Sprintf("%s of %s by %s since %s", r.Kind, r.Scope, r.Who, r.At.Format(time.RFC3339))
	if r.Until != nil {
		text += " until " + r.Until.Format(time.RFC3339)
	}
	if r.Why != "" {
		text += ": " + words.Summary(r.Why)
	}
	return text
}

// writeHeld names the partitions that rules hold back.
func writeHeld(w io.Writer, p *inspect.ProcessorState) {
	for _, kind := range []struct{ kind, text string }{{"block", "blocked"}, {"pause", "paused"}} {
		var held []int
		for _, s := range p.Partitions {
			if s.Held == kind.kind {
				held = append(held, s.Partition)
			}
		}
		switch {
		case len(held) == 0:
		case len(held) == len(p.Partitions):
			printf(w, "all partitions are %s\n", kind.text)
		default:
			printf(w, "partitions %s are %s\n", rebalance.Ranges(held), kind.text)
		}
	}
}
