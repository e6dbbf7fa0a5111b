package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// A Worker is an executor of a worker, as a member of one processor.
type Worker struct {
	Stream    string
	Processor string
	Name      string // of the worker
	Executor  string
	JoinedAt  time.Time
	Alive     bool      // its heartbeat has not expired
	Assigned  []int     // partitions
	Owned     []int     // partitions whose lock it holds
	Pinned    []int     // partitions that operators assigned to its worker
	Drained   time.Time // since when its worker gets no other partitions; zero: not drained
}

// Workers are the workers of the app.
type Workers struct{ c *core }

// Workers returns the workers of the app. It does no I/O.
func (c *Client) Workers() *Workers { return &Workers{&c.core} }

// List returns the members of all processors of the app, by stream, processor, worker and executor.
func (w *Workers) List(ctx context.Context) ([]Worker, error) {
	app, err := w.c.look(ctx)
	if err != nil {
		return nil, err
	}
	var out []Worker
	for _, p := range app.Processors() {
		if p.MembersErr != "" {
			return out, errors.New(p.MembersErr)
		}
		for _, m := range p.Members {
			w := Worker{Stream: p.Stream, Processor: p.Processor, Name: m.Worker, Executor: m.Executor, JoinedAt: m.JoinedAt, Alive: m.Alive, Assigned: m.Assigned, Pinned: m.Pinned}
			if m.Drained != nil {
				w.Drained = *m.Drained
			}
			for _, s := range p.Partitions {
				if s.Executor == m.Executor {
					w.Owned = append(w.Owned, s.Partition)
				}
			}
			out = append(out, w)
		}
	}
	return out, nil
}

func (c *core) look(ctx context.Context) (*inspect.AppState, error) {
	client, err := c.app.Client()
	if err != nil {
		return nil, err
	}
	return inspect.App(ctx, client, "", 1)
}

// Assignment holds the pins and drains that operators have set for a processor.
type Assignment struct {
	Stream     string               `json:"stream"`
	Processor  string               `json:"processor"`
	Generation int64                `json:"generation"`        // of the membership that contains them
	Pins       map[int]string       `json:"pins,omitempty"`    // worker by partition
	Cordons    map[string]time.Time `json:"cordons,omitempty"` // time of the drain by worker

	Worker string `json:"-"` // the worker of the call
	Keeps  int    `json:"-"` // partitions that stay assigned to the worker
}

// A WorkerOf is a worker of one processor; without a stream, of all processors.
type WorkerOf struct{ Name, Stream, Processor string }

// Drain takes all partitions from a worker, and assigns it no others, until Undrain. Pinned
// partitions stay; if every worker is drained, each keeps its share. The worker is given by its
// name or by the ID of an executor. Drain returns the Assignment of each processor as soon as it is
// stored; AwaitDrained waits until the partitions have moved.
func (w *Workers) Drain(ctx context.Context, of WorkerOf) ([]Assignment, error) {
	return w.cordon(ctx, of, time.Now().UTC().Truncate(time.Millisecond), false) // as it is stored
}

// Undrain gives a drained worker its share again, even a worker that is gone.
func (w *Workers) Undrain(ctx context.Context, of WorkerOf) ([]Assignment, error) {
	return w.cordon(ctx, of, time.Time{}, true)
}

func (w *Workers) cordon(ctx context.Context, of WorkerOf, at time.Time, end bool) ([]Assignment, error) {
	found, err := w.find(ctx, of, end)
	if err != nil {
		return nil, err
	}
	var all []Assignment
	for _, f := range found {
		one, err := w.c.assign(ctx, f.Stream, f.Processor, f.Name, func(g rebalance.Group) (rebalance.Group, error) {
			return g.Cordon(rebalance.Salt(f.Stream, f.Processor), f.Name, at), nil
		})
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// find returns the processors of which a worker is a member; with end, also those in which it is
// drained.
func (w *Workers) find(ctx context.Context, of WorkerOf, end bool) (found []WorkerOf, err error) {
	app, err := w.lookFor(ctx, of)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, p := range app.Processors() {
		if p.MembersErr != "" {
			return nil, errors.New(p.MembersErr)
		}
		name, known := memberNamed(p.Members, of.Name)
		if _, is := p.Cordons[of.Name]; !known && is && end {
			name, known = of.Name, true
		}
		if known {
			found = append(found, WorkerOf{name, p.Stream, p.Processor})
		}
		for _, m := range p.Members {
			there = append(there, m.Worker)
		}
	}
	if len(found) == 0 {
		return nil, noWorker(of.Name, there)
	}
	return found, nil
}

// lookFor returns the app with the named processor, or with all.
func (w *Workers) lookFor(ctx context.Context, of WorkerOf) (*inspect.AppState, error) {
	if of.Stream == "" {
		return w.c.look(ctx)
	}
	_, p, err := w.c.processorOf(ctx, of.Stream, of.Processor)
	if err != nil {
		return nil, err
	}
	return &inspect.AppState{Streams: []inspect.StreamState{{Processors: []inspect.ProcessorState{*p}}}}, nil
}

// memberNamed finds a member by the name of its worker or by its executor ID.
func memberNamed(members []inspect.MemberState, name string) (worker string, ok bool) {
	for _, m := range members {
		if m.Worker == name || m.Executor == name {
			return m.Worker, true
		}
	}
	return "", false
}

func noWorker(name string, there []string) error {
	if len(there) == 0 {
		return fmt.Errorf("no worker %q: none runs", name)
	}
	slices.Sort(there)
	return fmt.Errorf("no worker %q; there is %s", name, strings.Join(slices.Compact(there), ", "))
}

func (c *core) assign(ctx context.Context, stream, processor, worker string, change func(rebalance.Group) (rebalance.Group, error)) (Assignment, error) {
	client, err := c.app.Client()
	if err != nil {
		return Assignment{}, err
	}
	g, err := rebalance.Steer(ctx, client.Group(stream, processor), change)
	if err != nil {
		return Assignment{}, fmt.Errorf("stream %s: processor %s: %w", stream, processor, err)
	}
	a := Assignment{Stream: stream, Processor: processor, Generation: g.Generation, Pins: g.Pins, Cordons: g.Cordons, Worker: worker}
	for _, e := range g.Executors {
		if e.Worker == worker {
			a.Keeps += len(e.Partitions)
		}
	}
	return a, nil
}

// Pin assigns partitions of a processor to a worker: rebalances do not move them while it lives.
func (w *Workers) Pin(ctx context.Context, of WorkerOf, partitions ...int) (Assignment, error) {
	client, err := w.pinnable(ctx, of.Stream, of.Processor, partitions)
	if err != nil {
		return Assignment{}, err
	}
	_, members, err := inspect.Members(ctx, client, of.Stream, of.Processor)
	if err != nil {
		return Assignment{}, err
	}
	name, known := memberNamed(members, of.Name)
	if !known {
		var there []string
		for _, m := range members {
			there = append(there, m.Worker)
		}
		return Assignment{}, fmt.Errorf("stream %s: processor %s: %w", of.Stream, of.Processor, noWorker(of.Name, there))
	}
	return w.pin(ctx, of.Stream, of.Processor, name, partitions)
}

// Unpin removes the pins of partitions: rebalances may move them again.
func (w *Workers) Unpin(ctx context.Context, stream, processor string, partitions ...int) (Assignment, error) {
	if _, err := w.pinnable(ctx, stream, processor, partitions); err != nil {
		return Assignment{}, err
	}
	return w.pin(ctx, stream, processor, "", partitions)
}

func (w *Workers) pinnable(ctx context.Context, stream, processor string, partitions []int) (*store.Client, error) {
	client, m, err := w.c.registered(ctx, stream, processor)
	if err == nil && len(partitions) == 0 {
		err = errors.New("no partitions are named")
	}
	if err == nil {
		_, err = chosen(stream, m, partitions)
	}
	return client, err
}

func (w *Workers) pin(ctx context.Context, stream, processor, worker string, partitions []int) (Assignment, error) {
	return w.c.assign(ctx, stream, processor, worker, func(g rebalance.Group) (rebalance.Group, error) {
		return g.Pin(rebalance.Salt(stream, processor), worker, partitions...)
	})
}

const drainPoll = 100 * time.Millisecond

// AwaitDrained waits until the drained workers own only partitions pinned to them. It returns an
// error if a drain was ended meanwhile, or if every worker of a processor is drained, as each then
// keeps its share.
func (w *Workers) AwaitDrained(ctx context.Context, drained []Assignment) error {
	client, err := w.c.app.Client()
	if err != nil {
		return err
	}
	for _, one := range drained {
		most := 0
		for {
			p, err := inspect.Processor(ctx, client, one.Stream, one.Processor, 0)
			if err != nil {
				return err
			}
			owned, err := ownedBy(p, one.Worker)
			if err != nil {
				return err
			}
			most = max(most, owned)
			w.c.tell("given up by "+one.Worker+" in "+one.Stream+"/"+one.Processor+":", most-owned, most)
			if owned == 0 {
				break
			}
			if _, is := p.Cordons[one.Worker]; !is {
				return fmt.Errorf("%s/%s: worker %s is not drained any more: the drain was ended", one.Stream, one.Processor, one.Worker)
			}
			if !slices.ContainsFunc(p.Members, func(m inspect.MemberState) bool { return m.Drained == nil }) {
				return fmt.Errorf("%s/%s: every worker is drained, so that each has its share: start another one, or end one of the drains", one.Stream, one.Processor)
			}
			if !monotime.Sleep(ctx, drainPoll) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// ownedBy counts the partitions that a worker owns and that are not pinned to it.
func ownedBy(p *inspect.ProcessorState, worker string) (n int, err error) {
	for _, s := range p.Partitions {
		if s.Err != "" {
			return 0, unseen(s)
		}
		if s.Worker == worker && p.Pins[s.Partition] != worker {
			n++
		}
	}
	return n, nil
}
