package rebalance

import (
	"maps"
	"slices"
	"time"
)

// ForgetAfter is how long pins and cordons outlive their worker, while others work.
const ForgetAfter = 24 * time.Hour

// tidied returns a group that replaces old. The result notes since when the workers of pins
// and cordons have been gone, and lacks the pins and cordons of those gone for ForgetAfter,
// whose names are forgotten. While there is no member no worker counts as gone, so a fleet
// that stood still for days finds its pins again.
func (g Group) tidied(old Group, now time.Time) (next Group, forgotten []string) {
	since := g.Gone
	if len(old.Executors) == 0 {
		since = nil
	}
	g = g.without(nil)
	g.Gone = nil
	for _, worker := range g.absent() {
		at, known := since[worker]
		if !known || at.After(now) {
			at = now.UTC().Truncate(time.Millisecond) // as it is stored
		}
		if now.Sub(at) >= ForgetAfter {
			forgotten = append(forgotten, worker)
			delete(g.Cordons, worker)
			maps.DeleteFunc(g.Pins, func(_ int, to string) bool { return to == worker })
			continue
		}
		if g.Gone == nil {
			g.Gone = map[string]time.Time{}
		}
		g.Gone[worker] = at
	}
	return g, forgotten
}

// absent returns the workers of pins and cordons that are no members, sorted.
func (g Group) absent() []string {
	named := map[string]bool{}
	for worker := range g.Cordons {
		named[worker] = true
	}
	for _, worker := range g.Pins {
		named[worker] = true
	}
	for _, e := range g.Executors {
		delete(named, e.Worker)
	}
	return slices.Sorted(maps.Keys(named))
}
