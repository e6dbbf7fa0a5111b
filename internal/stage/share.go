package stage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/store"
)

// endsPerCommit is how many entities one script ends.
const endsPerCommit = 128

// An Owners makes the calls of the owners of many partitions: those that come at the same time share
// round trips, and of each partition scripts. Its methods block until the server has answered or the
// connection gives up, and may be called concurrently.
type Owners struct {
	set *Set

	mu    sync.Mutex
	nodes map[string]*groupcommit.Trips[*ownerCall]
}

// An ownerCall is a Take, or an End with what became of it.
type ownerCall struct {
	take      *Take
	partition int
	fence     string
	end       *End
	ended     Ended
	err       error
}

// NewOwners returns the calls of the owners of a set.
func NewOwners(s *Set) *Owners {
	return &Owners{set: s, nodes: map[string]*groupcommit.Trips[*ownerCall]{}}
}

// Take is Set.Take of one partition.
func (o *Owners) Take(ctx context.Context, t *Take) error {
	return o.do(ctx, &ownerCall{take: t, partition: t.Partition})
}

// End commits the End of one visit; see Commit. After an error nothing is known of its outcome, unless
// that is store.ErrFenced.
func (o *Owners) End(ctx context.Context, partition int, fence string, e *End) (*Ended, error) {
	c := &ownerCall{partition: partition, fence: fence, end: e}
	if err := o.do(ctx, c); err != nil {
		return nil, err
	}
	return &c.ended, nil
}

func (o *Owners) do(ctx context.Context, c *ownerCall) error {
	node := o.set.client.NodeOf(o.set.place(c.partition).Own)
	o.mu.Lock()
	t := o.nodes[node]
	if t == nil {
		t = &groupcommit.Trips[*ownerCall]{Send: o.send, Bytes: (*ownerCall).bytes, Limit: groupcommit.Load{Items: 16 * endsPerCommit, Bytes: 1 << 20}}
		o.nodes[node] = t
	}
	o.mu.Unlock()
	t.Do(ctx, c)
	return c.err
}

func (c *ownerCall) bytes() int {
	if c.end == nil {
		return 0
	}
	return len(c.end.Payload)
}

// send makes the calls of one round trip; each keeps its own error.
func (o *Owners) send(ctx context.Context, calls []*ownerCall) {
	ends := slices.DeleteFunc(slices.Clone(calls), func(c *ownerCall) bool { return c.take != nil })
	slices.SortStableFunc(ends, func(a, b *ownerCall) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.fence, b.fence))
	})
	var scripts []*store.ScriptCall
	var reads []func(texts []string, err error)
	for len(ends) > 0 {
		n := 1
		for n < len(ends) && n < endsPerCommit && ends[n].partition == ends[0].partition && ends[n].fence == ends[0].fence {
			n++
		}
		some, commit := ends[:n], &Commit{Partition: ends[0].partition, Fence: ends[0].fence}
		for _, c := range some {
			commit.Ends = append(commit.Ends, *c.end)
		}
		scripts = append(scripts, o.set.commitCall(commit))
		reads = append(reads, func(texts []string, err error) {
			ended, err := endedOf(texts, err)
			if err == nil && len(ended) != len(some) {
				err = fmt.Errorf("%d ended of %d", len(ended), len(some))
			}
			for i, c := range some {
				if c.err = err; err == nil {
					c.ended = ended[i]
				}
			}
		})
		ends = ends[n:]
	}
	for _, c := range calls {
		if c.take != nil {
			scripts = append(scripts, o.set.takeCall(c.take))
			reads = append(reads, func(texts []string, err error) { c.err = c.take.read(texts, err) })
		}
	}
	o.set.run(ctx, scripts, func(i int, texts []string, err error) { reads[i](texts, err) })
}
