package stage

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/runnel-go/runnel/internal/store"
)

const (
	// endsPerCommit is how many entities one script ends.
	endsPerCommit = 128

	// tripsAtOnce, callsPerTrip and bytesPerTrip bound the round trips to one node, and what owners' calls
	// of one carry, if there are several.
	tripsAtOnce  = 3
	callsPerTrip = 16 * endsPerCommit
	bytesPerTrip = 1 << 20
)

// An Owners makes the calls of the owners of many partitions: those that come at the same time share
// round trips, and of each partition scripts. Its methods block until the server has answered or the
// connection gives up, and may be called concurrently.
type Owners struct {
	set *Set

	mu    sync.Mutex
	nodes map[string]*trips
}

// The trips to one node. Where little is going on, a caller that finds none under way makes its own; the
// others are made in goroutines of their own, which grow their stacks once.
type trips struct {
	queue  []*ownerCall
	under  int // way
	shared int // above zero where trips were shared lately
}

// sharedLasts is how many trips of one caller follow a shared one, until little is going on.
const sharedLasts = 16

// An ownerCall is a Take, or an End with what became of it.
type ownerCall struct {
	take      *Take
	partition int
	fence     string
	end       *End
	bytes     int // of end
	ended     Ended
	err       error
	done      chan struct{} // closed behind the trip
}

// NewOwners returns the calls of the owners of a set.
func NewOwners(s *Set) *Owners { return &Owners{set: s, nodes: map[string]*trips{}} }

// Take is Set.Take of one partition.
func (o *Owners) Take(ctx context.Context, t *Take) error {
	return o.do(ctx, &ownerCall{take: t, partition: t.Partition})
}

// End commits the End of one visit; see Commit. After an error nothing is known of its outcome, unless
// that is store.ErrFenced.
func (o *Owners) End(ctx context.Context, partition int, fence string, e *End) (*Ended, error) {
	c := &ownerCall{partition: partition, fence: fence, end: e, bytes: len(e.Payload)}
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
		t = &trips{}
		o.nodes[node] = t
	}
	if t.under == 0 && t.shared == 0 {
		t.under = 1
		o.mu.Unlock()
		o.send(ctx, []*ownerCall{c})
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(t.queue) > 0 {
			go o.travel(t)
		} else {
			t.under--
		}
		return c.err
	}
	c.done = make(chan struct{})
	t.queue = append(t.queue, c)
	if t.under < tripsAtOnce {
		t.under++
		go o.travel(t)
	}
	o.mu.Unlock()
	<-c.done
	return c.err
}

// travel makes trips until nobody waits for one.
func (o *Owners) travel(t *trips) {
	for {
		calls := o.next(t)
		if len(calls) == 0 {
			return
		}
		o.send(context.Background(), calls)
		for _, c := range calls {
			close(c.done)
		}
	}
}

// next returns the calls of the next trip. Without any the trips are over.
func (o *Owners) next(t *trips) []*ownerCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	// Callers whose trip just ended may be about to call again. Without any, there is no pause.
	for n := -1; n < len(t.queue); {
		n = len(t.queue)
		o.mu.Unlock()
		runtime.Gosched()
		o.mu.Lock()
	}
	n, bytes := 0, 0
	for n < min(len(t.queue), callsPerTrip) {
		if bytes += t.queue[n].bytes; n > 0 && bytes > bytesPerTrip {
			break
		}
		n++
	}
	if n > 1 {
		t.shared = sharedLasts
	} else if n == 1 && t.shared > 0 {
		t.shared--
	}
	calls := slices.Clone(t.queue[:n])
	if t.queue = slices.Delete(t.queue, 0, n); n == 0 {
		t.under--
	}
	return calls
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
