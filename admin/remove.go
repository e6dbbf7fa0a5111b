package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// RemoveOptions configure a removal. nil is all defaults.
type RemoveOptions struct {
	DryRun   bool // return what would be removed, or why it cannot be, and change nothing
	Dead     bool // of a processor: its dead letters, too
	Rows     bool // of a processor: the rows of its tables, too; without it a processor that has rows is not removed
	ToPython bool // of a processor: leave a consumer group of its name, from which Python's runnel continues
}

// A RemovedProcessor lists what was or would be removed of a processor or a consumer group.
type RemovedProcessor struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`
	Lag       int64  `json:"lag"`    // events that it will not process
	Parked    int64  `json:"parked"` // parked events that it will not process
	Dead      int64  `json:"dead"`   // dead letters that were removed
	Rows      int64  `json:"rows"`   // of its tables that were removed
	Rules     int    `json:"rules"`  // pauses and blocks of it that were removed

	Outputs int64 `json:"outputs,omitempty"` // that waited in its outboxes, and were, or would be, brought to where they are for

	Who    string `json:"-"` // of a consumer group: its reader
	Python bool   `json:"-"` // Python's runnel runs it: nothing but its registration was removed
}

// RemoveProcessor removes a processor with its positions and parked events, so that trimming does
// not wait for it. It returns an error while a worker runs the processor. If Python's runnel runs
// it, only the registration is removed. What it has committed and not yet emitted to other partitions is brought there
// first, which may take seconds: the error names a partition that takes nothing, and the processor stays.
func (c *Client) RemoveProcessor(ctx context.Context, stream, processor string, opts *RemoveOptions) (RemovedProcessor, error) {
	if opts == nil {
		opts = &RemoveOptions{}
	}
	gone := RemovedProcessor{Stream: stream, Processor: processor}
	client, m, err := c.registered(ctx, stream, processor)
	if err != nil {
		return gone, err
	}
	state, err := inspect.Processor(ctx, client, stream, processor, 0)
	if err != nil {
		return gone, err
	}
	// Of a processor that Python's runnel runs only the registration belongs to this implementation.
	gone.Python = slices.ContainsFunc(state.Members, func(m inspect.MemberState) bool { return m.Alive && m.Worker == inspect.PythonWorker })
	if gone.Python {
		if !opts.DryRun {
			_, err = client.Unregister(ctx, stream, processor)
		}
		return gone, err
	}
	if err := notRun(state); err != nil {
		return gone, err
	}
	if gone.Lag, gone.Parked = state.Totals.Lag, state.Totals.Parked; opts.ToPython {
		gone.Lag = 0 // they wait for Python
	}
	if opts.Dead {
		gone.Dead = state.Totals.Dead
	}
	gone.Outputs = state.Totals.Outputs
	tables := m.TablesOf(processor)
	if gone.Rows, err = rowsOf(ctx, client, stream, m, tables...); err == nil && gone.Rows > 0 && !opts.Rows {
		err = fmt.Errorf("%s/%s has %s in %s, which nothing keeps up without it: `--rows` removes them, too, `table rm` those of one table; nothing was changed",
			stream, processor, words.Plural(gone.Rows, "row"), inTables(tables))
	}
	if err != nil || opts.DryRun {
		return gone, err
	}
	forget := client.Forget
	if opts.ToPython {
		forget = client.LeaveToPython
	}
	if err := c.forget(ctx, client, state, m, opts.Dead, forget); err != nil || opts.ToPython {
		return gone, err
	}
	gone.Rules, err = forgetRules(ctx, client, rules.Processor(stream, processor))
	return gone, err
}

func notRun(p *inspect.ProcessorState) error {
	for _, m := range p.Members {
		if m.Alive {
			return fmt.Errorf("%s/%s is run by worker %s: stop it first; nothing was changed", p.Stream, p.Processor, m.Worker)
		}
	}
	return nil
}

// A RulesLeftError is returned if a removal succeeded but the removal of its rules failed.
type RulesLeftError struct {
	Scope Scope
	Err   error
}

// Error names the rules that are left.
func (e *RulesLeftError) Error() string {
	return fmt.Sprintf("%s is removed, its rules are not: %v", e.Scope, e.Err)
}

// Unwrap returns Err.
func (e *RulesLeftError) Unwrap() error { return e.Err }

// forgetRules removes the rules of a removed scope, so that they do not affect a later one of the
// same name. It is the last step: the rules hold until then.
func forgetRules(ctx context.Context, client *store.Client, scope rules.Scope) (int, error) {
	n, err := client.ForgetRules(ctx, scope)
	if err != nil {
		return n, &RulesLeftError{Scope{scope}, err}
	}
	return n, nil
}

func inTables(names []string) string {
	if len(names) == 1 {
		return "table " + names[0]
	}
	return "tables " + strings.Join(names, ", ")
}

// forget removes the processor from the metadata last: until then it is found, and the call may be
// repeated. A worker that starts the processor meanwhile either holds locks, which ends the
// removal, or registers the processor again. Before anything is removed, all that is in outboxes is brought away.
func (c *core) forget(ctx context.Context, client *store.Client, p *inspect.ProcessorState, m store.Meta, dead bool, forget func(context.Context, store.Partition, bool, ...store.Table) error) error {
	tables, places := m.TablesOf(p.Processor), client.Partitions(p.Stream, p.Processor, m.Numbers())
	if err := emptyOutboxes(ctx, client, m, p.Processor, places); err != nil {
		return err
	}
	for i, s := range p.Partitions {
		c.tell("forgot "+p.Stream+"/"+p.Processor+": partitions", i, len(p.Partitions))
		var rows []store.Table
		for _, name := range tables {
			rows = append(rows, client.Table(p.Stream, name, s.Partition))
		}
		err := forget(ctx, places[i], dead, rows...)
		switch {
		case errors.Is(err, store.ErrOutputs):
			return fmt.Errorf("%s/%s partition %d has emitted something meanwhile: stop its worker, and repeat", p.Stream, p.Processor, s.Partition)
		case errors.Is(err, store.ErrHeld):
			return fmt.Errorf("%s/%s partition %d has an owner: stop its worker, or wait until its lock has expired, and repeat", p.Stream, p.Processor, s.Partition)
		case err != nil:
			return err
		}
	}
	for _, name := range tables {
		if _, err := client.DropTable(ctx, p.Stream, name); err != nil {
			return err
		}
	}
	if err := client.ForgetMembers(ctx, p.Stream, p.Processor); err != nil {
		return err
	}
	_, err := client.Unregister(ctx, p.Stream, p.Processor)
	return err
}

// emptyOutboxes brings away what is in the outboxes of a processor. Places of one that has none lose their outbox, to which an
// operator may have no rights.
func emptyOutboxes(ctx context.Context, client *store.Client, m store.Meta, processor string, places []store.Partition) error {
	if !inspect.HasOutboxes(client, m, processor) {
		for i := range places {
			places[i].Outbox = ""
		}
		return nil
	}
	_, err := client.EmptyOutboxes(ctx, places)
	if left := (*store.OutputsLeftError)(nil); errors.As(err, &left) {
		return fmt.Errorf("%w; nothing was removed: mend that and repeat", err)
	}
	return err
}

// RemoveGroup destroys a consumer group that belongs to no registered processor: one of another
// program, or, by the name of a processor no longer registered, all of its groups. It returns an
// error if the group has a reader.
func (c *Client) RemoveGroup(ctx context.Context, stream, group string, opts *RemoveOptions) (RemovedProcessor, error) {
	gone := RemovedProcessor{Stream: stream, Processor: group}
	client, m, err := c.meta(ctx, stream)
	if err != nil {
		return gone, err
	}
	groups, err := inspect.Groups(ctx, client, stream, m)
	if err != nil {
		return gone, err
	}
	groups = slices.DeleteFunc(groups, func(g inspect.GroupState) bool { return g.Group != group && g.Processor != group })
	if len(groups) == 0 {
		return gone, c.noProcessor(client, stream, group, m)
	}
	gone.Who = groups[0].Who
	for _, g := range groups {
		if g.Alive {
			return gone, stillRead(stream, g)
		}
		gone.Lag += max(g.Lag, 0)
	}
	if opts != nil && opts.DryRun {
		return gone, nil
	}
	for _, g := range groups {
		if err := client.DropGroup(ctx, stream, m.Partitions, g.Group); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

func stillRead(stream string, g inspect.GroupState) error {
	return fmt.Errorf("consumer group %s of stream %s is read by %s, which is running: stop it first; nothing was changed", g.Group, stream, g.Who)
}

// A RemovedStream lists what was removed with a stream, or would be.
type RemovedStream struct {
	Stream     string   `json:"stream"`
	Entries    int64    `json:"entries"`
	Delayed    int64    `json:"delayed"`
	Processors []string `json:"processors"`
	Dead       int64    `json:"dead"`  // dead letters of these
	Rules      int      `json:"rules"` // pauses and blocks of it and of its processors

	Outputs int64 `json:"outputs,omitempty"` // of these, in outboxes, that were, or would be, brought to where they are for

	Extents []Extent `json:"extents,omitempty"` // what an extension has stored with it
}

// An Extent is how much of something there is.
type Extent struct {
	What  string `json:"what"` // "entities"
	Count int64  `json:"count"`
}

// RemoveStream deletes a stream with its events, its delayed events, its processors, their dead
// letters, and what an extension has stored with it, such as the entities of a set. It returns an error while the stream has a reader.
// Outputs of its processors are brought away first, as RemoveProcessor does.
func (c *Client) RemoveStream(ctx context.Context, stream string, opts *RemoveOptions) (RemovedStream, error) {
	gone := RemovedStream{Stream: stream, Processors: []string{}}
	client, m, err := c.meta(ctx, stream)
	if err != nil {
		return gone, err
	}
	state, err := inspect.Stream(ctx, client, stream, 0)
	if err == nil && state == nil {
		err = c.noStream(ctx, client, stream)
	}
	if err == nil {
		err = gone.fill(ctx, client, state, m)
	}
	if err != nil || opts != nil && opts.DryRun {
		return gone, err
	}
	for _, p := range m.Atomic { // before anything is removed
		if err := emptyOutboxes(ctx, client, m, p, client.Partitions(stream, p, m.Numbers())); err != nil {
			return gone, err
		}
	}
	for i := range state.Processors {
		if err := c.forget(ctx, client, &state.Processors[i], m, true, client.Forget); err != nil {
			return gone, err
		}
	}
	if err := client.DropStream(ctx, stream, m); err != nil {
		return gone, err
	}
	gone.Rules, err = forgetRules(ctx, client, rules.Stream(stream))
	return gone, err
}

// fill lists what is removed with a stream, or returns an error if the stream has a reader.
func (gone *RemovedStream) fill(ctx context.Context, client *store.Client, state *inspect.StreamState, m store.Meta) error {
	gone.Delayed = state.Delayed
	extents, err := client.Extents(ctx, gone.Stream, m)
	if err != nil {
		return err
	}
	for _, e := range extents {
		gone.Extents = append(gone.Extents, Extent(e))
	}
	logs, err := inspect.Logs(ctx, client, gone.Stream, state.Partitions)
	if err != nil {
		return err
	}
	for _, l := range logs {
		gone.Entries += l.Length
	}
	for i := range state.Processors {
		p := &state.Processors[i]
		if err := notRun(p); err != nil {
			return err
		}
		gone.Processors, gone.Dead, gone.Outputs = append(gone.Processors, p.Processor), gone.Dead+p.Totals.Dead, gone.Outputs+p.Totals.Outputs
	}
	groups, err := inspect.Groups(ctx, client, gone.Stream, m)
	for _, g := range groups {
		if g.Alive {
			return stillRead(gone.Stream, g)
		}
	}
	return err
}
