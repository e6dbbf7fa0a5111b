package webhook

import (
	"context"
	"fmt"
	"strings"
	"sync"

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

// Owners makes the calls of the owners of many partitions: those that come at the same time share round trips. Its method may be
// called concurrently.
type Owners struct {
	b *Bus

	mu    sync.Mutex
	nodes map[string]*groupcommit.Trips[*saveCall]
}

// A saveCall is a call of one owner, and its error.
type saveCall struct {
	call  *store.ScriptCall
	bytes int
}

// savesPerTrip is how many calls share a round trip at most, and how many bytes.
var savesPerTrip = groupcommit.Load{Items: 32, Bytes: 1 << 20}

// NewOwners returns the calls of the owners of a bus.
func NewOwners(b *Bus) *Owners {
	return &Owners{b: b, nodes: map[string]*groupcommit.Trips[*saveCall]{}}
}

// Save saves states of one delivery partition, and sets their results. It blocks until the server has answered or the connection gives up. It may
// be repeated by the same owner. It returns store.ErrFenced to who does not own the partition any more.
func (o *Owners) Save(ctx context.Context, n int, fence string, saves []*Save) error {
	p := o.b.client.Partition(o.b.name, Processor, n)
	c := &saveCall{call: &store.ScriptCall{Script: scripts["save"], Keys: []string{p.Own, o.b.key("whsub", n), p.Dead}, Args: []any{fence}, Confirm: true}}
	for _, s := range saves {
		c.bytes += len(s.State)
		c.call.Args = append(c.call.Args, s.Name, s.Replaces, s.Settings, s.State, len(s.Letters))
		for i := range s.Letters {
			fields := s.Letters[i].Fields()
			c.call.Args = append(c.call.Args, len(fields))
			for _, f := range fields {
				c.call.Args = append(c.call.Args, f)
			}
		}
	}
	o.on(o.b.client.NodeOf(p.Own)).Do(ctx, c)
	results, err := textOf(c.call), c.call.Err
	if err == nil && (len(results) != len(saves) || strings.Trim(results, "1sv-") != "") {
		err = fmt.Errorf("unexpected reply %q to %d states", results, len(saves))
	}
	for i := 0; err == nil && i < len(saves); i++ {
		saves[i].Result = SaveResult(results[i])
	}
	return err
}

// on returns the trips to a node.
func (o *Owners) on(node string) *groupcommit.Trips[*saveCall] {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.nodes[node]
	if t == nil {
		t = &groupcommit.Trips[*saveCall]{Send: o.send, Bytes: func(c *saveCall) int { return c.bytes }, Limit: savesPerTrip}
		o.nodes[node] = t
	}
	return t
}

func (o *Owners) send(ctx context.Context, all []*saveCall) {
	calls := make([]*store.ScriptCall, len(all))
	for i, c := range all {
		calls[i] = c.call
	}
	o.b.client.Run(ctx, calls...)
}
