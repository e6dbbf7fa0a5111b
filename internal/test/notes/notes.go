// Package notes is a tiny extension: notes of operators in a hash of the app. docs/extensions.md explains it, and
// tests of the command line, the metrics, the dashboard and package admin run it.
package notes

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// most is how many notes check tolerates.
const most = 2

// key is the key of a hash. A real extension has its kinds in the table of internal/keys instead, so that rights,
// moves and doctor know them.
func key(c *store.Client, what string) string { return "__notes:" + c.Keys().App + "." + what }

// New returns the extension, which counts the notes that have been added in this process.
func New() *extension.Extension {
	added := &atomic.Int64{}
	stored := &extension.Metric{Name: "stored_notes", Help: "Notes in Redis.", Kind: extension.Gauge, OfApp: true}
	adds := &extension.Metric{Name: "added_total", Help: "Notes that this process added, by whether they replaced one.", Kind: extension.Counter, Labels: []string{"replaced"}}
	return &extension.Extension{
		Name: "notes", Usage: "keep notes for other operators",
		Present:  Present,
		Commands: commands(added),
		Targets:  targets,
		Metrics:  []*extension.Metric{stored, adds},
		Gather: func(ctx context.Context, c *store.Client, ofApp bool, add func(extension.Sample)) error {
			if !ofApp {
				add(extension.Sample{Metric: adds, Labels: []string{"no"}, Value: float64(added.Load())})
				return nil
			}
			n, err := c.Redis().HLen(ctx, key(c, "all")).Result()
			if err == nil {
				add(extension.Sample{Metric: stored, Value: float64(n)})
			}
			return err
		},
		Findings: findings,
		Status:   status,
		Page:     page(added),
	}
}

// Present reports whether the app has any note.
func Present(ctx context.Context, c *store.Client) (bool, error) {
	n, err := c.Redis().Exists(ctx, key(c, "all"), key(c, "dead")).Result()
	return n > 0, err
}

// Add adds a note, and returns whether there was none of this name.
func Add(ctx context.Context, c *store.Client, name, text string) (bool, error) {
	n, err := c.Redis().HSet(ctx, key(c, "all"), name, text).Result()
	return n > 0, err
}

func commands(added *atomic.Int64) []extension.Command {
	return []extension.Command{{
		Call: "add NAME TEXT…", Usage: "add a note, or replace the one of this name", Changes: true,
		Flags:    []extension.Flag{{Name: "sign", Usage: "put this `NAME` below it", Default: ""}},
		Examples: []string{"PROG notes add gate 'mind the step'", "PROG notes add gate 'mind the step' --sign ada --yes"},
		Run: func(ctx context.Context, env *extension.Env) error {
			if len(env.Args) < 2 {
				return extension.Usagef("a note needs a name and a text")
			}
			name, text := env.Args[0], strings.Join(env.Args[1:], " ")
			if by := env.Flags.String("sign"); by != "" {
				text += " (" + by + ")"
			}
			if err := env.Confirm("Add note %s?", name); err != nil {
				return err
			}
			did, err := env.Audited(ctx, "notes/add", name, func(ctx context.Context) (string, error) {
				fresh, err := Add(ctx, env.Client, name, text)
				if fresh {
					added.Add(1)
				}
				return "note " + name + " added", err
			})
			if err != nil {
				return err
			}
			return env.Print(map[string]string{"name": name, "text": text}, func(t extension.Table) { t.Linef("%s", did) })
		},
	}}
}

func findings(ctx context.Context, c *store.Client, _ inspect.Limits) ([]inspect.Finding, error) {
	n, err := c.Redis().HLen(ctx, key(c, "all")).Result()
	if err != nil || n <= most {
		return nil, err
	}
	return []inspect.Finding{{Stream: "board", Processor: "pins", What: "notes", Value: n, Limit: most, Text: fmt.Sprintf("%d notes, above %d: read them", n, most)}}, nil
}

func status(ctx context.Context, c *store.Client) ([]string, error) {
	n, err := c.Redis().HLen(ctx, key(c, "all")).Result()
	return []string{fmt.Sprintf("notes: %d", n)}, err
}

//go:embed page.js
var module []byte

func page(added *atomic.Int64) *extension.Page {
	p := extension.NewPage("Notes", module, commands(added), "add")
	p.Reads["list"] = func(ctx context.Context, c *store.Client, q url.Values) (any, error) {
		return c.Redis().HGetAll(ctx, key(c, "all")).Result()
	}
	return p
}
