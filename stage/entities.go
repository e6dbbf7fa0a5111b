package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	istage "github.com/runnel-go/runnel/internal/stage"
)

const (
	idsAtOnce    = 128     // of one script
	bytesPerSave = 4 << 20 // of one script, unless one entity is larger
	savesPerTrip = 64      // scripts
)

// Get returns an entity, or ErrNotFound.
func (s *Set[T]) Get(ctx context.Context, id string) (e Entity[T], err error) {
	if err := s.ready(ctx); err != nil {
		return e, err
	}
	return s.got(ctx, id)
}

func (s *Set[T]) got(ctx context.Context, id string) (e Entity[T], err error) {
	found, err := s.get(ctx, s.partition(id), id)
	if err != nil {
		return e, s.wrap("get", id, err)
	}
	value := found.value
	if value == nil {
		if value, err = s.decode(id, found.payload); err != nil {
			return e, s.wrap("get", id, err)
		}
	}
	return Entity[T]{value.(T), found.version}, nil
}

func (s *set) wrap(op, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("set %s: %s %q: %w", s.name, op, id, err)
}

// A PutFailure is a value that Put has not stored.
type PutFailure struct {
	Index   int // among the values
	ID      string
	Unknown bool // it may be stored
	Err     error
}

// A PutError says which values Put has not stored. The others are stored.
type PutError struct {
	Set    string
	Failed []PutFailure // by index
	Of     int          // values in all
}

// Error tells the first failure, and how many there are.
func (e *PutError) Error() string {
	first := e.Failed[0]
	return fmt.Sprintf("set %s: %d of %d values not stored, the first is %q: %v", e.Set, len(e.Failed), e.Of, first.ID, first.Err)
}

// Unwrap returns the errors.
func (e *PutError) Unwrap() (errs []error) {
	for _, f := range e.Failed {
		errs = append(errs, f.Err)
	}
	return errs
}

// Put stores values whatever is stored, in their order, and has all stages asked. Values of one partition
// are stored in steps of up to 128. It blocks until all is stored, and by as many replicas confirmed as
// Options.Durability of the app says. Its error is a *PutError, unless nothing was tried. Put again what
// failed or is unknown: it does no harm but that stages are asked once more.
func (s *Set[T]) Put(ctx context.Context, values ...T) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.external != nil {
		return fmt.Errorf("set %s: Put is of sets in Redis: store the entities in their Store, and call Touch", s.name)
	}
	failed := make([]error, len(values))
	ids := make([]string, len(values))
	type part struct {
		save  *istage.Save
		at    []int
		bytes int
	}
	var parts []*part
	open := map[int]*part{}
	for i, value := range values {
		payload, id, n, err := s.encodeAny(value)
		if ids[i] = id; err != nil {
			failed[i] = err
			continue
		}
		p := open[n]
		if p == nil || len(p.at) == idsAtOnce || p.bytes+len(payload) > bytesPerSave {
			p = &part{save: &istage.Save{Partition: n}}
			open[n], parts = p, append(parts, p)
		}
		p.save.Changes = append(p.save.Changes, istage.Change{ID: id, Payload: payload, Version: istage.Any})
		p.at, p.bytes = append(p.at, i), p.bytes+len(payload)
	}
	for len(parts) > 0 {
		some := parts[:min(savesPerTrip, len(parts))]
		parts = parts[len(some):]
		var saves []*istage.Save
		for _, p := range some {
			saves = append(saves, p.save)
		}
		s.calls.Save(ctx, saves...)
		for _, p := range some {
			for _, i := range p.at {
				failed[i] = p.save.Err
			}
		}
	}
	return putError(s.name, ids, failed)
}

func putError(set string, ids []string, failed []error) error {
	e := &PutError{Set: set, Of: len(ids)}
	for i, err := range failed {
		if err != nil {
			e.Failed = append(e.Failed, PutFailure{Index: i, ID: ids[i], Err: err, Unknown: errors.Is(err, redisconn.ErrUnknownOutcome)})
		}
	}
	if len(e.Failed) == 0 {
		return nil
	}
	return e
}

// Save stores a value over the version that e names, 0 for none, and returns it with its new version. If
// another one is stored, it returns ErrConflict and changes nothing. All stages are asked.
func (s *Set[T]) Save(ctx context.Context, e Entity[T]) (Entity[T], error) {
	if err := s.ready(ctx); err != nil {
		return e, err
	}
	payload, id, n, err := s.encodeAny(e.Value)
	if err != nil {
		return e, s.wrap("save", id, err)
	}
	if s.external != nil {
		version, err := s.external.change(ctx, id, e.Value, e.Version, false)
		if err == nil {
			e.Version, err = version, s.Touch(ctx, id)
		}
		return e, s.wrap("save", id, err)
	}
	save := &istage.Save{Partition: n, Changes: []istage.Change{{ID: id, Payload: payload, Version: e.Version}}}
	s.calls.Save(ctx, save)
	if len(save.Saved) == 1 && save.Saved[0].Version == 0 {
		return e, s.wrap("save", id, ErrConflict)
	}
	if len(save.Saved) == 1 {
		e.Version = save.Saved[0].Version
	}
	return e, s.wrap("save", id, save.Err)
}

// Update gets an entity, changes it and saves it, again while others save it meanwhile. change may be
// called several times. Where the outcome of saving is unknown, Update returns the error: the change may
// be stored.
func (s *Set[T]) Update(ctx context.Context, id string, change func(*T) error) (Entity[T], error) {
	for {
		e, err := s.Get(ctx, id)
		if err != nil {
			return e, err
		}
		if err := change(&e.Value); err != nil {
			return e, err
		}
		if is, err := s.idOf(e.Value); err != nil || is != id {
			return e, s.wrap("update", id, errors.Join(err, errID(id, is)))
		}
		e, err = s.Save(ctx, e)
		if !errors.Is(err, ErrConflict) || ctx.Err() != nil {
			return e, err
		}
	}
}

// Delete deletes entities with all of their visits and failures, and returns how many there were. It may
// be repeated.
func (s *Set[T]) Delete(ctx context.Context, ids ...string) (n int, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	if s.external != nil {
		return 0, fmt.Errorf("set %s: Delete is of sets in Redis: delete the entities in their Store, and call Touch", s.name)
	}
	for _, id := range ids {
		there, err := s.calls.Delete(ctx, s.partition(id), id, istage.Any)
		if err != nil {
			return n, s.wrap("delete", id, err)
		}
		if there {
			n++
		}
	}
	return n, nil
}

// Touch has all stages asked about entities. IDs that are not there do no harm. It may be repeated.
func (s *Set[T]) Touch(ctx context.Context, ids ...string) error {
	return s.visitAll(ctx, istage.Touch, istage.In(0), ids)
}

// Visit has a stage visit entities, not before a time by Redis' clock; an earlier visit that waits stays.
// It also ends the wait of a visit that failed. It may be repeated.
func (s *Set[T]) Visit(ctx context.Context, stage string, at time.Time, ids ...string) error {
	if s.by[stage] == nil {
		return fmt.Errorf("set %s: no stage %q; there are %s", s.name, stage, strings.Join(s.names(), ", "))
	}
	return s.visitAll(ctx, stage, istage.At(at), ids)
}

func (s *set) visitAll(ctx context.Context, stage string, due istage.Due, ids []string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	by := map[int][]string{}
	for _, id := range ids {
		n := s.partition(id)
		by[n] = append(by[n], id)
	}
	for n, all := range by {
		for some := range slices.Chunk(all, idsAtOnce) {
			if err := s.calls.Visit(ctx, n, stage, due, some...); err != nil {
				return fmt.Errorf("set %s: visits of partition %d: %w", s.name, n, err)
			}
		}
	}
	return nil
}

// TouchAllOptions configure TouchAll.
type TouchAllOptions struct {
	Rate int                      // entities per second; default 1000
	IDs  iter.Seq2[string, error] // of the Store of an external set, which requires it
}

// TouchAll has all stages asked about every entity, spread over time at a rate, for instance after a new
// stage was deployed. It blocks until all touches are stored, and returns how many. Entities that change
// meanwhile may be touched twice.
func (s *Set[T]) TouchAll(ctx context.Context, o *TouchAllOptions) (n int, err error) {
	if o == nil {
		o = &TouchAllOptions{}
	}
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	rate := cmp.Or(o.Rate, 1000)
	if rate < 0 || rate > 1_000_000 {
		return 0, fmt.Errorf("set %s: TouchAll: Rate %d is not between 1 and 1 000 000", s.name, o.Rate)
	}
	step := time.Second / time.Duration(rate)
	if o.IDs != nil {
		return s.touchIDs(ctx, o.IDs, step)
	}
	if s.external != nil {
		return 0, fmt.Errorf("set %s: TouchAll of an external set needs the IDs of its Store", s.name)
	}
	return s.calls.TouchAll(ctx, s.stream.Meta.Partitions, step)
}

// touchIDs touches IDs as they come, a step apart.
func (s *set) touchIDs(ctx context.Context, ids iter.Seq2[string, error], step time.Duration) (n int, err error) {
	for id, err := range ids {
		if err != nil {
			return n, err
		}
		if err := s.visitAll(ctx, istage.Touch, istage.In(time.Duration(n)*step), []string{id}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
