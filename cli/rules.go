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

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
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
	admin := &cli.BoolFlag{Name: flagAsAdmin, DisableDefaultText: true, Usage: "say that you mean it: a block is an administrator's"}
	return []*cli.Command{
		p.ruleCommand("pause", "hold back an app, a stream, a processor or a partition: it takes no event until resume", set, p.setRule(rules.Pause),
			"PROG pause orders/printer --why 'no paper' --for 10m",
			"PROG pause orders/printer --partition 3",
			"PROG pause orders --wait",
			"PROG pause --all --wait"),
		p.ruleCommand("resume", "remove a pause", scope, p.removeRule(rules.Pause),
			"PROG resume orders/printer",
			"PROG resume --all"),
		p.ruleCommand("block", "hold back as pause does, whatever operators pause and resume", append(set, admin), p.setRule(rules.Block),
			"PROG block orders --as-admin --why 'migration' --wait"),
		p.ruleCommand("unblock", "remove a block", append(scope, admin), p.removeRule(rules.Block),
			"PROG unblock orders --as-admin"),
	}
}

func (p *program) ruleCommand(name, usage string, flags []cli.Flag, fn func(context.Context, *session, *cli.Context) error, examples ...string) *cli.Command {
	return p.command(&cli.Command{
		Name: name, Usage: usage, ArgsUsage: "STREAM[/PROCESSOR]|--all", Flags: flags, Action: p.action(fn),
	}, examples...)
}

// scopeOf is the scope that a command line names.
func scopeOf(c *cli.Context) (rules.Scope, error) {
	stream, processor, narrower := strings.Cut(c.Args().First(), "/")
	switch {
	case c.NArg() > 1:
		return rules.Scope{}, usagef(c, "unexpected argument %q", c.Args().Get(1))
	case c.Bool(flagAll) && (c.NArg() > 0 || c.IsSet(flagPartition)):
		return rules.Scope{}, usagef(c, "--all is the whole app: leave out the rest")
	case c.Bool(flagAll):
		return rules.App(), nil
	case c.NArg() == 0:
		return rules.Scope{}, usagef(c, "of what? say STREAM, STREAM/PROCESSOR, or --all for the whole app")
	case c.IsSet(flagPartition) && !narrower:
		return rules.Scope{}, usagef(c, "--partition is of a processor: say STREAM/PROCESSOR")
	}
	scope := rules.Stream(stream)
	if narrower {
		scope = rules.Processor(stream, processor)
	}
	if c.IsSet(flagPartition) {
		scope = rules.Partition(stream, processor, c.Int(flagPartition))
	}
	if err := scope.Check(); err != nil {
		return rules.Scope{}, usagef(c, "%w", err)
	}
	return scope, nil
}

// checkAdmin refuses what only administrators should do by accident.
func checkAdmin(c *cli.Context, kind rules.Kind) error {
	if kind == rules.Block && !c.Bool(flagAsAdmin) {
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
func scopeFor(c *cli.Context, kind rules.Kind) (rules.Scope, error) {
	scope, err := scopeOf(c)
	if err == nil {
		err = checkAdmin(c, kind)
	}
	return scope, err
}

func (p *program) setRule(kind rules.Kind) func(context.Context, *session, *cli.Context) error {
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
		r := rules.Rule{Kind: kind, Scope: scope, Who: whoOf(c), Why: c.String(flagWhy)}
		told, r, err := s.hold(ctx, r, lasts)
		if err != nil {
			return err
		}
		if told.Waited = c.Bool(flagWait); told.Waited {
			if err := s.awaitRules(ctx, scope); err != nil {
				return err
			}
		}
		if told.Held, err = s.heldBy(ctx, scope); err != nil {
			return err
		}
		did := r.String()
		if told.Waited {
			did += "; nothing runs any more"
		}
		return s.out.line(told, "%s", did)
	}
}

// hold sets a rule, for a time or, with 0, until it is removed, and returns it as it is
// stored.
func (s *session) hold(ctx context.Context, r rules.Rule, lasts time.Duration) (changedRule, rules.Rule, error) {
	change, err := s.client.SetRule(ctx, r, lasts)
	if err != nil {
		return changedRule{}, r, err
	}
	r.At, r.Until = change.At, change.Until
	return changedRule{RuleState: inspect.StateOf(r), Generation: change.Generation, Was: change.Was}, r, nil
}

// release removes a rule.
func (s *session) release(ctx context.Context, kind rules.Kind, scope rules.Scope) (changedRule, error) {
	change, err := s.client.RemoveRule(ctx, kind, scope)
	if err != nil {
		return changedRule{}, err
	}
	told := changedRule{RuleState: inspect.StateOf(rules.Rule{Kind: kind, Scope: scope, At: change.At}), Generation: change.Generation, Was: change.Was}
	told.Held, err = s.heldBy(ctx, scope)
	return told, err
}

func (p *program) removeRule(kind rules.Kind) func(context.Context, *session, *cli.Context) error {
	return func(ctx context.Context, s *session, c *cli.Context) error {
		scope, err := scopeFor(c, kind)
		if err != nil {
			return err
		}
		if err := s.connect(ctx); err != nil {
			return err
		}
		told, err := s.release(ctx, kind, scope)
		if err != nil {
			return err
		}
		return unwritten(told.did(), s.out.write(told, func(w io.Writer) error { return writeRemoved(w, told) }))
	}
}

// did tells what became of a rule that was to be removed.
func (r changedRule) did() string {
	if r.Was {
		return fmt.Sprintf("the %s of %s is removed", r.Kind, r.Scope)
	}
	return fmt.Sprintf("there was no %s of %s", r.Kind, r.Scope)
}

func writeRemoved(w io.Writer, told changedRule) error {
	printf(w, "%s\n", told.did())
	for _, other := range told.Held {
		printf(w, "still in force: %s\n", other)
	}
	return nil
}

// heldBy are the rules in force that have to do with a scope.
func (s *session) heldBy(ctx context.Context, scope rules.Scope) ([]string, error) {
	in, err := inspect.Rules(ctx, s.client)
	held := []string{}
	for _, r := range in {
		if r.Scope.Contains(scope) || scope.Contains(r.Scope) {
			held = append(held, r.String())
		}
	}
	return held, err
}

// checkKnown refuses to hold back what is not there, which may be a slip, unless it may come later.
func (s *session) checkKnown(ctx context.Context, scope rules.Scope, yet bool) error {
	stream := scope.StreamName()
	if stream == "" {
		return nil
	}
	m, ok, err := s.client.LoadMeta(ctx, stream)
	switch n, one := scope.PartitionNumber(); {
	case err != nil:
		return err
	case !ok && yet:
		return nil
	case !ok:
		return fmt.Errorf("%w; --%s holds it back from its start", s.noStream(ctx, stream), flagYet)
	case scope.ProcessorName() != "" && !slices.Contains(m.Processors, scope.ProcessorName()) && !yet:
		return fmt.Errorf("%w; --%s holds it back from its start", unknownProcessor(stream, scope.ProcessorName(), m.Processors), flagYet)
	case one && n >= m.Partitions:
		return fmt.Errorf("stream %s has partitions 0 to %d, not %d", stream, m.Partitions-1, n)
	}
	return nil
}

// awaitRules waits until nothing runs, and says from time to time what still does.
func (s *session) awaitRules(ctx context.Context, scope rules.Scope) error {
	said := time.Now()
	err := inspect.AwaitRules(ctx, s.client, scope, func(holdouts []store.NotPausedYet) {
		if time.Since(said) < waitingEvery {
			return
		}
		said = time.Now()
		var names []string
		for _, h := range holdouts {
			names = append(names, h.String())
		}
		printf(s.stderr, "%s: waiting for %s\n", s.name, strings.Join(names, ", "))
	})
	if errors.Is(err, inspect.ErrNotHeld) {
		return fmt.Errorf("%w any more: the rule ended, or somebody removed it, before everything had stopped", err)
	}
	return err
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
				printf(s.stderr, "%s: %s of %s/%s cannot be looked at, so quarantines may be missing here; `%s doctor` says why\n", s.name, plural(n, "partition"), p.Stream, p.Processor, s.prefix())
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
		until, why := "until removed", reasonOf(r.Event, r.Why)
		switch {
		case r.Kind == inspect.KindQuarantine:
			until, why = "until released", fmt.Sprintf("at event %s: %s", dash(r.Event), why)
		case r.Until != nil:
			until = r.Until.Format(time.RFC3339)
		}
		scope := r.Scope
		if r.Absent {
			scope += " (not there)"
		}
		printf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s %s\n", r.Kind, scope, dash(r.Who), r.At.Format(time.RFC3339), until, dash(why), s.prefix(), r.Command)
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
		text += ": " + summary(r.Why)
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
