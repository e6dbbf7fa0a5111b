package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// End is the position after the last entry of a partition.
const End = "$"

// Positions are the committed positions of one processor, one per partition: all events up to there
// are done.
type Positions struct {
	c                 *core
	stream, processor string
	rows              Rows
}

// Positions returns the positions of a processor. It does no I/O.
func (c *Client) Positions(stream, processor string) *Positions {
	return &Positions{c: &c.core, stream: stream, processor: processor}
}

// List returns the committed positions by partition; without arguments, of all partitions.
func (p *Positions) List(ctx context.Context, partitions ...int) (map[int]string, error) {
	_, state, err := p.c.processorOf(ctx, p.stream, p.processor)
	if err != nil {
		return nil, err
	}
	numbers, err := chosen(p.stream, store.Meta{Partitions: len(state.Partitions)}, partitions)
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	for _, n := range numbers {
		s := state.Partitions[n]
		if s.Err != "" {
			return nil, unseen(s)
		}
		out[s.Partition] = s.Floor
	}
	return out, nil
}

func unseen(s inspect.PartitionState) error {
	return fmt.Errorf("partition %d cannot be looked at: %s", s.Partition, s.Err)
}

// Find parses a text as a position in each of the named partitions, or in all if none is named:
//
//	start                  before the first entry
//	end                    behind the last one, which is End
//	1767225600000-0        behind this entry, in each partition
//	3/1767225600000-0      the same, only in partition 3
//	@2026-01-31T08:00:00Z  before the entries appended then, by Redis' clock
//	-1h30m                 the same so long ago
//	-100, +1               so many entries back, or on, from the committed position
//
// A text that is none of these is a *PositionError.
func (p *Positions) Find(ctx context.Context, text string, partitions ...int) (map[int]string, error) {
	at, err := parsePosition(text)
	if err != nil {
		return nil, err
	}
	client, state, err := p.c.processorOf(ctx, p.stream, p.processor)
	if err != nil {
		return nil, err
	}
	numbers, err := chosen(p.stream, store.Meta{Partitions: len(state.Partitions)}, partitions)
	if err != nil {
		return nil, err
	}
	switch {
	case at.one != nil:
		if _, err := chosen(p.stream, store.Meta{Partitions: len(state.Partitions)}, []int{*at.one}); err != nil {
			return nil, err
		}
		numbers = []int{*at.one}
	case at.when != nil:
		if at.id, err = before(ctx, client, *at.when); err != nil {
			return nil, err
		}
	}
	out := map[int]string{}
	for _, n := range numbers {
		if out[n] = at.id; at.id != "" {
			continue
		}
		s := state.Partitions[n]
		if s.Err != "" {
			return nil, unseen(s)
		}
		if out[n], err = client.Step(ctx, client.Partition(p.stream, p.processor, n), s.Floor, at.steps); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// A PositionError is returned for a text that is not a position.
type PositionError struct{ Text, Why string }

// Error returns Why.
func (e *PositionError) Error() string { return e.Why }

// CheckPosition returns the *PositionError that Find would, without I/O.
func CheckPosition(text string) error {
	_, err := parsePosition(text)
	return err
}

// A position is a parsed text: an ID, perhaps of one partition, a time, or a number of steps.
type position struct {
	id    string
	one   *int
	when  *inspect.Moment
	steps int64
}

// mostSteps is more entries than a partition can have.
const mostSteps = 1 << 40

var (
	wholeOrPart = regexp.MustCompile(`^([0-9]+)(?:-([0-9]+))?$`)
	stepsOff    = regexp.MustCompile(`^[+-][0-9]+$`)
)

func parsePosition(text string) (at position, err error) {
	bad := func(format string, args ...any) (position, error) {
		return position{}, &PositionError{text, fmt.Sprintf(format, args...)}
	}
	switch {
	case text == "start":
		return position{id: "0-0"}, nil
	case text == "end":
		return position{id: End}, nil
	case stepsOff.MatchString(text):
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || max(n, -n) > mostSteps || n == math.MinInt64 {
			return bad("%s is too far", text)
		}
		return position{steps: n}, nil
	}
	name := text
	if n, id, ok := entryid.ParseEventID(text); ok {
		at.one, name = &n, id
	}
	if wholeOrPart.MatchString(name) {
		if at.id, err = ParseID(name); err != nil {
			return bad("%v", err)
		}
		return at, nil
	}
	when, ok := inspect.ParseMoment(text)
	if !ok {
		return bad("%q is none of start, end, an entry ID, an event such as 3/1767225600000-0, a time such as @2026-01-31T08:00:00Z, a time ago such as -1h30m, a number of events such as -100 or +1", text)
	}
	return position{when: &when}, nil
}

// ParseID returns an entry ID in full: 1767225600000 is 1767225600000-0.
func ParseID(text string) (string, error) {
	m := wholeOrPart.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%q is no entry ID", text)
	}
	var parts [2]uint64
	for i, digits := range m[1:] {
		if digits == "" {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return "", fmt.Errorf("entry ID %q: %s is too large", text, digits)
		}
		parts[i] = n
	}
	return fmt.Sprintf("%d-%d", parts[0], parts[1]), nil
}

// before returns the position before the entries appended at a moment, by Redis' clock.
func before(ctx context.Context, c *store.Client, m inspect.Moment) (string, error) {
	at, err := m.Time(ctx, c)
	return entryid.Before(fmt.Sprint(max(at.UnixMilli(), 0))), err
}

// A Move is a position that was set, or would be.
type Move struct {
	Partition int    `json:"partition"`
	Old       string `json:"old"` // all events up to here were done
	New       string `json:"new"`
	Rows      int64  `json:"rows,omitempty"` // that were cleared with it
}

// Preview returns what Set would do now.
func (p *Positions) Preview(ctx context.Context, to map[int]string) ([]Move, error) {
	client, m, err := p.c.registered(ctx, p.stream, p.processor)
	if err != nil {
		return nil, err
	}
	if err := p.checkRows(m); err != nil {
		return nil, err
	}
	state, err := inspect.Processor(ctx, client, p.stream, p.processor, 0)
	if err != nil {
		return nil, err
	}
	numbers, err := p.numbers(len(state.Partitions), to)
	if err != nil {
		return nil, err
	}
	moves := []Move{}
	for _, n := range numbers {
		s, id := state.Partitions[n], to[n]
		if s.Err != "" {
			return nil, unseen(s)
		}
		if s.End != "" && (id == End || entryid.Compare(id, s.End) > 0) { // else it is not known
			id = s.End
		}
		gone, _, err := p.cleared(ctx, client, m, n)
		if err != nil {
			return nil, err
		}
		moves = append(moves, Move{n, s.Floor, id, gone})
	}
	return moves, nil
}

// numbers returns the partitions of to in order, or an error if one is not of the stream.
func (p *Positions) numbers(partitions int, to map[int]string) ([]int, error) {
	if len(to) == 0 {
		return nil, errors.New("no positions are named")
	}
	return chosen(p.stream, store.Meta{Partitions: partitions}, slices.Sorted(maps.Keys(to)))
}

// Set sets the committed position of each partition in to: events up to there count as done, later
// ones are processed, even if they were before. No worker may run the processor; otherwise nothing
// is changed. Set locks all of the partitions before it changes any. With a later error it returns
// the moves made so far, and the other partitions are unchanged. Of a processor with tables WithRows
// says first what becomes of its rows.
func (p *Positions) Set(ctx context.Context, to map[int]string) ([]Move, error) {
	client, m, err := p.c.registered(ctx, p.stream, p.processor)
	if err != nil {
		return nil, err
	}
	numbers, err := p.numbers(m.Partitions, to)
	if err == nil {
		err = p.checkRows(m)
	}
	if err != nil {
		return nil, err
	}
	var moves []Move
	o := &owning{c: p.c, client: client, stream: p.stream, processor: p.processor}
	err = o.run(ctx, numbers, "set the position of", func(at store.Partition) error {
		old, err := client.Takeover(ctx, at, o.claim, "", 0)
		if err != nil {
			return err
		}
		gone, clear, err := p.cleared(ctx, client, m, at.Number)
		if err != nil {
			return err
		}
		now, err := client.Reset(ctx, at, o.claim, to[at.Number], clear...)
		if err == nil {
			moves = append(moves, Move{at.Number, old.Committed, now, gone})
		}
		return err
	})
	return moves, err
}

// Rows says what becomes of the rows of a processor's tables when its position is set.
type Rows int

const (
	KeepRows  Rows = iota + 1 // events that are processed again are counted again
	ClearRows                 // removed in the same step, in the partitions whose position is set
)

// WithRows returns Positions of which Set does that with rows.
func (p *Positions) WithRows(rows Rows) *Positions {
	with := *p
	with.rows = rows
	return &with
}

// A RowsError is returned by Set if a processor has tables, and WithRows was not called.
type RowsError struct {
	Stream, Processor string
	Tables            []string
}

// Error names the tables and the choices.
func (e *RowsError) Error() string {
	return fmt.Sprintf("%s/%s has tables (%s), whose rows are of the events up to its position: keep them, and what is processed again is counted again; or clear them, so that they are built again from there; nothing was changed",
		e.Stream, e.Processor, strings.Join(e.Tables, ", "))
}

func (p *Positions) checkRows(m store.Meta) error {
	if tables := m.TablesOf(p.processor); len(tables) > 0 && p.rows == 0 {
		return &RowsError{p.stream, p.processor, tables}
	}
	return nil
}

// cleared returns the tables whose rows Set removes in a partition, and how many rows they have.
func (p *Positions) cleared(ctx context.Context, client *store.Client, m store.Meta, n int) (rows int64, all []store.Table, err error) {
	if p.rows != ClearRows {
		return 0, nil, nil
	}
	for _, name := range m.TablesOf(p.processor) {
		t := client.Table(p.stream, name, n)
		count, err := client.RowsOf(ctx, t)
		if err != nil {
			return 0, nil, err
		}
		rows, all = rows+count, append(all, t)
	}
	return rows, all, nil
}
