package webhook

import (
	"context"
	"fmt"
	"strings"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/store"
)

// A Save is the state of a subscriber that its owner saves.
type Save struct {
	Name     string
	Replaces int64  // version of the state
	Settings string // version of the settings that it counts on, "" for any
	State    []byte
	Letters  []store.DeadLetter // what has become dead

	Result SaveResult
}

// A SaveResult is what became of a Save.
type SaveResult byte

// Results of a Save.
const (
	Saved    SaveResult = '1'
	Changed  SaveResult = 's' // there are other settings
	Replaced SaveResult = 'v' // there is another state
	Gone     SaveResult = '-' // there is no such subscriber
)

// SavesPerCall is how many states a call saves at most.
const SavesPerCall = 64

// savesPerTrip is how many calls of owners share a round trip at most, and how many bytes.
var savesPerTrip = groupcommit.Load{Items: 32, Bytes: 1 << 20}

// Save saves states of one delivery partition, and sets their results. Calls of many owners at the same time share round trips. It
// may be repeated by the same owner. It returns store.ErrFenced to who does not own the partition any more.
func (b *Bus) Save(ctx context.Context, n int, fence string, saves []*Save) error {
	p := b.client.Partition(b.name, Processor, n)
	c := call("save", []string{p.Own, b.key("whsub", n), p.Dead}, fence)
	for _, s := range saves {
		c.Args = append(c.Args, s.Name, s.Replaces, s.Settings, s.State, len(s.Letters))
		for i := range s.Letters {
			fields := s.Letters[i].Fields()
			c.Args = append(c.Args, len(fields))
			for _, f := range fields {
				c.Args = append(c.Args, f)
			}
		}
	}
	b.shared(b.client.NodeOf(p.Own)).Do(ctx, c)
	results, err := textOf(c), c.Err
	if err == nil && (len(results) != len(saves) || strings.Trim(results, "1sv-") != "") {
		err = fmt.Errorf("unexpected reply %q to %d states", results, len(saves))
	}
	for i := 0; err == nil && i < len(saves); i++ {
		saves[i].Result = SaveResult(results[i])
	}
	return err
}

// shared returns the trips to a node: who waits for one waits for none of the others.
func (b *Bus) shared(node string) *groupcommit.Trips[*store.ScriptCall] {
	run := func(ctx context.Context, calls []*store.ScriptCall) { b.client.Run(ctx, calls...) }
	trips, _ := b.trips.LoadOrStore(node, &groupcommit.Trips[*store.ScriptCall]{Send: run, Bytes: bytesOf, Limit: savesPerTrip})
	return trips.(*groupcommit.Trips[*store.ScriptCall])
}

// bytesOf returns how long the states of a call are.
func bytesOf(c *store.ScriptCall) (n int) {
	for _, arg := range c.Args {
		state, _ := arg.([]byte)
		n += len(state)
	}
	return n
}
