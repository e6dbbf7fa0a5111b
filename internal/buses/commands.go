package buses

import (
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

// A Request is a call of a command, with the buses that it is about.
type Request struct {
	*extension.Env
	buses []*bus
}

// Arg returns an argument, "" if it is not there.
func (r *Request) Arg(i int) string {
	if i < len(r.Args) {
		return r.Args[i]
	}
	return ""
}

// One returns the bus that is meant.
func (r *Request) One() (name string, meta store.Meta, err error) {
	if n := len(r.buses); n != 1 {
		return "", meta, extension.Usagef("which bus? say --%s NAME: the app has %d", flagBus, n)
	}
	return r.buses[0].Name(), r.buses[0].meta, nil
}

// fits returns what is wrong with the number of arguments of a call.
func fits(words, args []string) error {
	for i, word := range words {
		if i >= len(args) && !strings.HasPrefix(word, "[") {
			return extension.Usagef("%s is missing", strings.TrimSuffix(word, "..."))
		}
	}
	if n := len(words); len(args) > n && !strings.Contains(strings.Join(words, ""), "...") {
		return extension.Usagef("unexpected argument %q", args[n])
	}
	return nil
}

// Command returns a command of a bus. The lines of example are example calls.
func Command(call, usage, example string, run func(context.Context, *Request) error, flags ...extension.Flag) extension.Command {
	words := slices.DeleteFunc(strings.Fields(call), func(w string) bool { return w == strings.ToLower(w) })
	return extension.Command{
		Call: call, Usage: usage, Examples: strings.Split(example, "\n"),
		Flags: append(flags, extension.Flag{Name: flagBus, Usage: "`NAME` of the bus (default the only one, or all in lists)", Default: ""}),
		Run: func(ctx context.Context, env *extension.Env) error {
			if err := fits(words, env.Args); err != nil {
				return err
			}
			name := env.Flags.String(flagBus)
			buses, err := load(ctx, env.Client, name)
			if err == nil && name != "" && len(buses) == 0 {
				err = fmt.Errorf("the app has no bus %q", name)
			}
			if err != nil {
				return err
			}
			return run(ctx, &Request{env, buses})
		},
	}
}

// commands only read.
func commands() []extension.Command {
	return []extension.Command{
		Command("topics", "list topics: who publishes, and how much",
			"PROG webhook topics", runTopics),
		Command("subs [NAME]", "list subscribers, the one that is furthest behind first; or show one",
			"PROG webhook subs --failing\nPROG webhook subs mail", runSubs,
			extension.Flag{Name: flagFailing, Usage: "only those that are not ok", Default: false},
			extension.Flag{Name: flagLimit, Usage: "at most `N` subscribers (default all)", Default: 0}),
		Command("token ls", "list tokens, which are not shown themselves", "PROG webhook token ls", runTokens),
	}
}

// Code are the commands that need code of package webhook, which sets them, for apps whose code this program does not have.
var Code []extension.Command

// A BusChange is what a command has done.
type BusChange struct {
	Bus    string `json:"bus"`
	On     string `json:"on"`  // topic, client, or ID of a token
	Did    string `json:"did"` // in words
	Secret string `json:"secret,omitempty"`
	Token  string `json:"token,omitempty"`
}

// PrintChange prints what was done.
func (r *Request) PrintChange(c *BusChange) error {
	return r.Print(c, func(t extension.Table) {
		t.Linef("%s", c.Did)
		for what, text := range map[string]string{"secret": c.Secret, "token": c.Token} {
			if text != "" {
				t.Linef("%s: %s", what, text)
			}
		}
	})
}

// Change asks a question, if there is one, does a change between two entries of the audit stream, and prints it; do may set what it has made.
func (r *Request) Change(ctx context.Context, what, on, did, ask string, do func(ctx context.Context, c *BusChange) error) error {
	c := &BusChange{Bus: r.buses[0].Name(), On: on, Did: did}
	if ask != "" {
		if err := r.Confirm("%s", ask); err != nil {
			return err
		}
	}
	_, err := r.Audited(ctx, "webhook "+what, c.Bus+"/"+on, func(ctx context.Context) (string, error) {
		if err := do(ctx, c); err != nil {
			return "", err
		}
		return did, nil
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, on, err)
	}
	return r.PrintChange(c)
}
