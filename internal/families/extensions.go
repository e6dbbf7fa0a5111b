package families

import (
	"context"
	"slices"
	"sort"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

// extensions gathers the metrics of an app's extensions: of the app as a whole, or of this process.
type extensions struct {
	app   string
	ofApp bool
	all   []extension.Entry // those that have any
	of    map[*extension.Metric]*Family
	list  []*Family
}

// extensionsOf is of the extensions that app, a *runnel.App or nil, has now. Of those that it has not
// registered only what is in Redis counts.
func extensionsOf(name string, app any, ofApp bool) *extensions {
	x := &extensions{app: name, ofApp: ofApp, of: map[*extension.Metric]*Family{}}
	prefix := "runnel_"
	if ofApp {
		prefix += "app_"
	}
	for _, e := range extension.All(app) {
		n := len(x.list)
		for _, m := range e.Metrics {
			if m.OfApp == ofApp && (ofApp || e.Registered) {
				f := &Family{prefix + e.Name + "_" + m.Name, m.Help, m.Kind, append([]string{"app"}, m.Labels...)}
				x.of[m], x.list = f, append(x.list, f)
			}
		}
		if len(x.list) > n {
			x.all = append(x.all, e)
		}
	}
	return x
}

// gather returns the samples of each family together. Those of an extension that fails are missing.
func (x *extensions) gather(ctx context.Context, c *store.Client) []Sample {
	var samples []Sample
	for _, e := range x.all {
		if there, err := e.There(ctx, c); err != nil || !there {
			continue
		}
		var own []Sample
		err := e.Gather(ctx, c, x.ofApp, func(s extension.Sample) {
			if f := x.of[s.Metric]; f != nil && len(s.Labels) == len(s.Metric.Labels) {
				own = append(own, Sample{f, append([]string{x.app}, s.Labels...), s.Value, s.Histogram})
			}
		})
		if err == nil {
			samples = append(samples, own...)
		}
	}
	sort.SliceStable(samples, func(i, j int) bool {
		return slices.Index(x.list, samples[i].Family) < slices.Index(x.list, samples[j].Family)
	})
	return samples
}
