// Package buses is what operators see of webhook buses: the extension of package webhook, but for the commands that need its code. It knows
// buses by what is in Redis alone. By file:
//
//	buses.go     the extension; which buses an app has
//	look.go      topics and subscribers as they are now, for all that shows them, package webhook included
//	commands.go  commands, their arguments, and what those print that change something
//	show.go      those that print lists
//	targets.go   subscribers as targets: pauses, dead letters
//	metrics.go   metrics; what check finds, and status
//	page.js      the page of the dashboard
package buses

import (
	"context"
	_ "embed"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/webhook"
)

// New returns the extension. In a program with the app's code its buses count what metrics.go names, and more are commands that know the
// options of that code; else both are nil.
func New(count *extension.Counters, more []extension.Command) *extension.Extension {
	if more == nil {
		more = Code
	}
	return &extension.Extension{
		Name: "webhook", Usage: "look after a webhook bus and its subscribers",
		Present: func(ctx context.Context, c *store.Client) (bool, error) {
			all, err := load(ctx, c, "")
			return len(all) > 0, err
		},
		Absent:   ": start one with `webhook serve`",
		Commands: append(commands(), more...), Nouns: map[string]string{"topic": "look after a topic", "token": "look after tokens of the HTTP API"},
		Targets: targets, Findings: findings, Status: status, Metrics: metrics, Gather: extension.Gatherer(count, gather),
		Page: extension.NewPage("Webhooks", module, commands(), "topics", "subs"),
	}
}

// module is the page of the dashboard: topics, subscribers, and one of these with its open batch and last answer. Its rows pause subscribers by
// the actions of the core.
//
//go:embed page.js
var module []byte

// A bus is one of an app, as its metadata has it.
type bus struct {
	*webhook.Bus
	meta store.Meta
}

// load returns the buses of an app, or for a name that one, if it is a bus.
func load(ctx context.Context, c *store.Client, name string) (all []*bus, err error) {
	names := []string{name}
	if name == "" {
		names, err = c.Streams(ctx)
	}
	for _, name := range names {
		meta, there, err := c.LoadMeta(ctx, name)
		if err != nil {
			return nil, err
		}
		if there && meta.Kind == webhook.Kind {
			all = append(all, &bus{webhook.New(c, name), meta})
		}
	}
	return all, err
}
