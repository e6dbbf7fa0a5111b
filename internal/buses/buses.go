// Package buses is what operators see and do of webhook buses: the extension of package webhook. It knows buses by what is in Redis
// alone, so that it works without the code of their app. By file:
//
//	buses.go    the extension; look.go: subscribers as they are now
//	metrics.go  metrics
package buses

import (
	"context"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/webhook"
)

// New returns the extension. In a program with the app's code its buses count what metrics.go names; else count is nil.
func New(count *extension.Counters) *extension.Extension {
	return &extension.Extension{
		Name: "webhook", Usage: "look after a webhook bus and its subscribers",
		Present: func(ctx context.Context, c *store.Client) (bool, error) {
			names, err := names(ctx, c)
			return len(names) > 0, err
		},
		Absent:  ": start one with `webhook serve`",
		Metrics: metrics, Gather: gatherer(count),
	}
}

// names returns the buses of an app.
func names(ctx context.Context, c *store.Client) (all []string, err error) {
	streams, err := c.Streams(ctx)
	for _, name := range streams {
		meta, there, err := c.LoadMeta(ctx, name)
		if err != nil {
			return nil, err
		}
		if there && meta.Kind == webhook.Kind {
			all = append(all, name)
		}
	}
	return all, err
}
