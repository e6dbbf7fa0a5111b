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
	"time"

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
}

// Positions returns the positions of a processor. It does no I/O.
func (c *Client) Positions(stream, processor string) *Positions {
	return &Positions{&c.core, stream, processor}
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
}

// Preview returns what Set would do now.
func (p *Positions) Preview(ctx context.Context, to map[int]string) ([]Move, error) {
	_, state, err := p.c.processorOf(ctx, p.stream, p.processor)
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
		moves = append(moves, Move{n, s.Floor, id})
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

// resetExpiry is the longest time that a crashed Set keeps workers from its partitions;
// workers shorten it to their own lease.
const resetExpiry = 30 * time.Second

// Set sets the committed position of each partition in to: events up to there count as done, later
// ones are processed, even if they were before. No worker may run the processor; otherwise nothing
// is changed. Set locks all of the partitions before it changes any. With a later error it returns
// the moves made so far, and the other partitions are unchanged.
func (p *Positions) Set(ctx context.Context, to map[int]string) ([]Move, error) {
	client, m, err := p.c.registered(ctx, p.stream, p.processor)
	if err != nil {
		return nil, err
	}
	numbers, err := p.numbers(m.Partitions, to)
	if err != nil {
		return nil, err
	}
	r := &reset{Positions: p, client: client, claim: store.Claim{Executor: store.NewExecutorID(), Number: 1}}
	return r.run(ctx, numbers, to)
}

// A reset owns the partitions of a processor for as long as it takes.
type reset struct {
	*Positions
	client *store.Client
	claim  store.Claim
	held   []store.Partition
}

// run reads the members twice, as a worker may start at any time:
//
//  1. the processor has no live member; the reset begins to lock partitions;
//  2. a worker joins. If it takes a partition not yet locked, its lock stops the reset. If it
//     waits for a locked one, the second look finds it, and everything is given back unchanged;
//  3. a worker that joins after the second look waits for the locks, and begins at the new
//     position.
func (r *reset) run(ctx context.Context, numbers []int, to map[int]string) (moves []Move, err error) {
	if err := r.notRun(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.unlock(ctx)) }()
	for i, n := range numbers {
		r.c.tell("locked", i, len(numbers))
		if err := r.lock(ctx, r.client.Partition(r.stream, r.processor, n)); err != nil {
			return nil, err
		}
	}
	if err := r.notRun(ctx); err != nil {
		return nil, err
	}
	for i, p := range r.held {
		r.c.tell("set the position of", i, len(r.held))
		old, err := r.client.Takeover(ctx, p, r.claim, "", 0)
		if err != nil {
			return moves, err
		}
		now, err := r.client.Reset(ctx, p, r.claim, to[p.Number])
		if err != nil {
			return moves, err
		}
		moves = append(moves, Move{p.Number, old.Committed, now})
	}
	return moves, nil
}

// notRun returns an error while a worker runs the processor.
func (r *reset) notRun(ctx context.Context) error {
	_, members, err := inspect.Members(ctx, r.client, r.stream, r.processor)
	if err != nil {
		return err
	}
	var alive []string
	for _, m := range members {
		if m.Alive {
			alive = append(alive, fmt.Sprintf("%s (%s)", m.Worker, m.Executor))
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("stream %s: processor %s runs on %s: stop these workers first; nothing was changed", r.stream, r.processor, strings.Join(alive, ", "))
	}
	return nil
}

func (r *reset) lock(ctx context.Context, p store.Partition) error {
	err := r.client.Lock(ctx, p, r.claim, resetExpiry, 0)
	if !errors.Is(err, store.ErrHeld) {
		r.held = append(r.held, p) // even of an unknown outcome: the lock may be ours
		return err
	}
	views, viewErr := r.client.Views(ctx, []store.Partition{p})
	if viewErr != nil || views[0].Owner == "" {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("stream %s partition %d: processor %s: owned by executor %s, whose lock expires in %s: stop its worker, or wait; nothing was changed",
		r.stream, p.Number, r.processor, views[0].Owner, views[0].LockLeft.Round(time.Second))
}

func (r *reset) unlock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetExpiry)
	defer cancel()
	var errs []error
	for _, p := range r.held {
		if err := r.client.Unlock(ctx, p, r.claim); err != nil {
			errs = append(errs, fmt.Errorf("%w; the lock expires in %s", err, resetExpiry))
		}
	}
	return errors.Join(errs...)
}
