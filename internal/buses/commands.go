package buses

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	flagBus     = "bus"
	flagFailing = "failing"
	flagLimit   = "limit"
)

// command returns a command of buses. The lines of example are example calls.
func command(call, usage, example string, run func(context.Context, *extension.Env, []*bus) error, flags ...extension.Flag) extension.Command {
	words := slices.DeleteFunc(strings.Fields(call), func(w string) bool { return w == strings.ToLower(w) })
	most, least := len(words), len(words)-strings.Count(call, "[")
	return extension.Command{
		Call: call, Usage: usage, Examples: strings.Split(example, "\n"),
		Flags: append(flags, extension.Flag{Name: flagBus, Usage: "`NAME` of the bus (default the only one, or all in lists)", Default: ""}),
		Run: func(ctx context.Context, env *extension.Env) error {
			if n := len(env.Args); n < least || n > most && !strings.Contains(call, "...") {
				return extension.Usagef("it takes %s, not %q", cmp.Or(strings.Join(words, " "), "no arguments"), env.Args)
			}
			name := env.Flags.String(flagBus)
			buses, err := load(ctx, env.Client, name)
			if err == nil && name != "" && len(buses) == 0 {
				err = fmt.Errorf("the app has no bus %q", name)
			}
			if err != nil {
				return err
			}
			return run(ctx, env, buses)
		},
	}
}

// commands only read.
func commands() []extension.Command {
	return []extension.Command{
		command("topics", "list topics: who publishes, and how much",
			"PROG webhook topics", runTopics),
		command("subs [NAME]", "list subscribers, the one that is furthest behind first; or show one",
			"PROG webhook subs --failing\nPROG webhook subs mail", runSubs,
			extension.Flag{Name: flagFailing, Usage: "only those that are not ok", Default: false},
			extension.Flag{Name: flagLimit, Usage: "at most `N` subscribers (default all)", Default: 0}),
		command("token ls", "list tokens, which are not shown themselves", "PROG webhook token ls", runTokens),
	}
}

// Code are the commands that need code of package webhook, which sets them, for apps whose code this program does not have.
var Code []extension.Command

// A BusChange is what a command does, or has done already if there is no do. Do returns what it has made.
type BusChange struct {
	Bus  string `json:"bus"`
	On   string `json:"on"`  // topic, client, or ID of a token
	Did  string `json:"did"` // in words
	Made string `json:"made,omitempty"`

	Asks bool                                           `json:"-"`
	Do   func(context.Context) (made string, err error) `json:"-"`
}

// Change returns a command that changes one bus. plan says how.
func Change(
	call, usage, example string, plan func(ctx context.Context, env *extension.Env, bus string, meta store.Meta) (*BusChange, error), flags ...extension.Flag,
) extension.Command {
	c := command(call, usage, example, func(ctx context.Context, env *extension.Env, buses []*bus) error {
		if n := len(buses); n != 1 {
			return extension.Usagef("which bus? say --%s NAME: the app has %d", flagBus, n)
		}
		name := buses[0].Name()
		to, err := plan(ctx, env, name, buses[0].meta)
		if err != nil {
			return err
		}
		if to.Asks {
			if err := env.Confirm("%s: go on?", to.Did); err != nil {
				return err
			}
		}
		what := strings.TrimRightFunc(call, func(c rune) bool { return c < 'a' }) // without arguments
		if to.Do != nil {
			_, err := env.Audited(ctx, "webhook "+what, name+"/"+to.On, func(ctx context.Context) (did string, err error) {
				if to.Made, err = to.Do(ctx); err == nil {
					did = to.Did
				}
				return did, err
			})
			if err != nil {
				return fmt.Errorf("%s %s: %w", what, to.On, err)
			}
		}
		to.Bus = name
		return env.Print(to, func(t extension.Table) {
			t.Linef("%s", to.Did)
			if to.Made != "" {
				t.Linef("%s", to.Made)
			}
		})
	}, flags...)
	c.Changes = true
	return c
}
