package schedulers

import (
	"context"
	_ "embed"
	"net/url"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

//go:embed page.js
var module []byte

// page is the page of the dashboard: jobs, the grid of one, and a run with its log. Its rows pause jobs by the actions of the core.
func page() *extension.Page {
	p := extension.NewPage("Schedule", module, commands(), "grid", "runs", "logs", "activate", "clear", "cancel")
	p.Reads["jobs"] = readJobs
	return p
}

// readJobs returns the states of the jobs of all schedulers.
func readJobs(ctx context.Context, c *store.Client, _ url.Values) (any, error) {
	all, err := load(ctx, c, "")
	states := []JobState{}
	for _, s := range all {
		some, err := s.states(ctx, s.names()...)
		if err != nil {
			return nil, err
		}
		states = append(states, some...)
	}
	return states, err
}
