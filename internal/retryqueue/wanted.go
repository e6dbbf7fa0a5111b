package retryqueue

import (
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
)

// wanted are the events that are looked for among the next ones. Each is met once, or never.
type wanted struct {
	suspect  string   // ID of the event that may have ended the owner before
	skip     string   // ID of an event that an operator wants skipped
	setAside []string // IDs, in order, of what comes again though it was taken out: parked, or a dead letter
}

func newWanted(c *Config) wanted {
	w := wanted{skip: c.Skip, setAside: slices.SortedFunc(slices.Values(c.SetAside), entryid.Compare)}
	if c.Retry != nil {
		w.suspect = c.Suspect
	}
	return w
}

// any reports whether an event is looked for.
func (w *wanted) any() bool { return w.suspect != "" || w.skip != "" || len(w.setAside) > 0 }

// pass forgets events that cannot come after this one.
func (w *wanted) pass(id string) {
	if w.suspect != "" && entryid.Compare(w.suspect, id) < 0 {
		w.suspect = ""
	}
	if w.skip != "" && entryid.Compare(w.skip, id) < 0 {
		w.skip = ""
	}
	w.setAside = slices.DeleteFunc(w.setAside, func(aside string) bool { return entryid.Compare(aside, id) <= 0 })
}
