package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
)

const (
	flagWhy     = "why"
	flagWho     = "who"
	flagFor     = "for"
	flagWait    = "wait"
	flagAsAdmin = "as-admin"
	flagYet     = "yet"

	// waitingEvery is how often --wait reports what it waits for.
	waitingEvery = 5 * time.Second
)

// ruleCommands are pause, resume, block and unblock.
func ruleCommands(p *program) []*cobra.Command {
	scope := flagList{
		newFlag(flagPartition, 0, "only partition `N` of a processor (default all)"),
		newFlag(flagAll, false, "the whole app"),
	}
	set := append(flagList{
		newFlag(flagWhy, "", "`REASON`, which rules ls and status show"),
		newFlag(flagWho, "", "`NAME` that they show (default user@host)"),
		newFlag(flagFor, time.Duration(0), "end by itself after this `TIME`, such as 10m (default until it is removed)"),
		newFlag(flagYet, false, "also what does not exist yet: it is held back from its start"),
		newFlag(flagWait, false, "return when no function runs any more and none can begin to"),
	}, scope...)
	mean := newFlag(flagAsAdmin, false, "say that you mean it: a block is an administrator's")
	const of = " STREAM[/PROCESSOR]|--all"
	return []*cobra.Command{
		p.command("pause"+of, "hold back an app, a stream, a processor or a partition: it takes no event until resume", set, setRule(admin.RulePause),
			"PROG pause orders/printer --why 'no paper' --for 10m",
			"PROG pause orders/printer --partition 3",
			"PROG pause orders --wait",
			"PROG pause --all --wait"),
		p.command("resume"+of, "remove a pause", scope, removeRule(admin.RulePause),
			"PROG resume orders/printer",
			"PROG resume --all"),
		p.command("block"+of, "hold back as pause does, whatever operators pause and resume", append(set, mean), setRule(admin.RuleBlock),
			"PROG block orders --as-admin --why 'migration' --wait"),
		p.command("unblock"+of, "remove a block", append(scope, mean), removeRule(admin.RuleBlock),
			"PROG unblock orders --as-admin"),
	}
}

// scopeOf reads the scope of a rule, and refuses a block that may not be meant.
func scopeOf(c *call, kind admin.RuleKind) (scope admin.Scope, err error) {
	stream, processor, narrower := strings.Cut(c.arg(0), "/")
	switch {
	case len(c.args) > 1:
		return scope, usagef(c, "unexpected argument %q", c.arg(1))
	case c.Bool(flagAll) && (len(c.args) > 0 || c.IsSet(flagPartition)):
		return scope, usagef(c, "--all is the whole app: leave out the rest")
	case c.Bool(flagAll):
		scope = admin.AppScope()
	case len(c.args) == 0:
		return scope, usagef(c, "of what? say STREAM, STREAM/PROCESSOR, or --all for the whole app")
	case c.IsSet(flagPartition) && !narrower:
		return scope, usagef(c, "--partition is of a processor: say STREAM/PROCESSOR")
	case c.IsSet(flagPartition):
		scope = admin.PartitionScope(stream, processor, c.Int(flagPartition))
	case narrower:
		scope = admin.ProcessorScope(stream, processor)
	default:
		scope = admin.StreamScope(stream)
	}
	if err := scope.Check(); err != nil {
		return scope, usagef(c, "%w", err)
	}
	if kind == admin.RuleBlock && !c.Bool(flagAsAdmin) {
		return scope, usagef(c, "a block is an administrator's: say --as-admin if you mean it; an operator's is pause and resume")
	}
	return scope, nil
}

// changedRule is what these commands print.
type changedRule struct {
	inspect.RuleState
	Generation int64    `json:"generation"` // of the rules
	Was        bool     `json:"was"`        // there was such a rule before
	Waited     bool     `json:"waited"`     // nothing runs any more
	Held       []string `json:"held"`       // the rules that hold back some of it now
}

func changedRuleOf(c admin.RuleChange) changedRule {
	return changedRule{RuleState: ruleState(c.Rule), Generation: c.Generation, Was: c.Was}
}

func ruleState(r admin.Rule) inspect.RuleState {
	s := inspect.RuleState{Kind: string(r.Kind), Scope: r.Scope.String(), Who: r.Who, Why: r.Why, At: r.At}
	if !r.Until.IsZero() {
		s.Until = &r.Until
	}
	return s
}

func setRule(kind admin.RuleKind) runner {
	return func(ctx context.Context, s *session, c *call) error {
		scope, err := scopeOf(c, kind)
		if err != nil {
			return err
		}
		opts := &admin.RuleOptions{Who: c.String(flagWho), Why: c.String(flagWhy), For: c.Duration(flagFor)}
		if c.IsSet(flagFor) && opts.For < time.Millisecond {
			return usagef(c, "--for %v is too short", opts.For)
		}
		if err := s.connect(ctx); err != nil {
			return err
		}
		err = s.admin.CheckScope(ctx, scope) // what does not exist may be a slip
		if missing := errors.As(err, new(*admin.NotFoundError)); missing && !c.Bool(flagYet) {
			return fmt.Errorf("%w; --%s holds it back from its start", err, flagYet)
		} else if err != nil && !missing {
			return err
		}
		change, err := s.admin.SetRule(ctx, kind, scope, opts)
		if err != nil {
			return err
		}
		out, did := changedRuleOf(change), change.Rule.String()
		if c.Bool(flagWait) {
			if err := awaitRules(ctx, s, scope); err != nil {
				return err
			}
			out.Waited = true
			did += "; nothing runs any more"
		}
		return s.out.line(out, "%s", did)
	}
}

// awaitRules waits until nothing runs, and reports from time to time what still does.
func awaitRules(ctx context.Context, s *session, scope admin.Scope) error {
	said := time.Now()
	return s.admin.WithProgress(func(what string, _, _ int64) {
		if time.Since(said) >= waitingEvery {
			said = time.Now()
			printf(s.stderr, "%s: %s\n", s.name, what)
		}
	}).Wait(ctx, scope)
}

func removeRule(kind admin.RuleKind) runner {
	return func(ctx context.Context, s *session, c *call) error {
		scope, err := scopeOf(c, kind)
		if err != nil {
			return err
		}
		if err := s.connect(ctx); err != nil {
			return err
		}
		out, did, err := ruleRemoved(ctx, s.admin, kind, scope)
		if err != nil {
			return err
		}
		return unwritten(did[0], s.out.write(out, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, strings.Join(did, "\n"))
			return err
		}))
	}
}

// ruleRemoved removes a rule. did says so, and names the rules that still hold back some of the scope.
func ruleRemoved(ctx context.Context, a *admin.Client, kind admin.RuleKind, scope admin.Scope) (out changedRule, did []string, err error) {
	change, err := a.RemoveRule(ctx, kind, scope)
	if err != nil {
		return out, nil, err
	}
	out, did = changedRuleOf(change), []string{shown(change.Removed())}
	out.Held = []string{}
	in, err := a.RulesAbout(ctx, scope)
	for _, r := range in {
		out.Held = append(out.Held, r.String())
		did = append(did, "still in force: "+shown(r.String()))
	}
	return out, did, err
}
