package admin

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

// A Filter selects dead letters or parked events; nil, and each zero field, selects all.
type Filter struct {
	Partitions []int
	Key        *string

	// ID is "partition/ID" of an event or its dead letter, or just the ID, which is an
	// *AmbiguousError if several events have it.
	ID    string
	Since time.Time // earliest time of becoming a dead letter; not for parked events
	Error string    // a part of the error or the reason, in any case
	Limit int       // maximum of events, the oldest ones
}

// in returns the filter for a stream: with its partitions, and the ID on its own.
func (f *Filter) in(stream string, m store.Meta) (Filter, error) {
	if f == nil {
		f = &Filter{}
	}
	out := *f
	if n, id, named := entryid.ParseEventID(f.ID); named {
		if len(f.Partitions) > 0 && !slices.Contains(f.Partitions, n) {
			return out, fmt.Errorf("event %s is of partition %d, which is not among %v", f.ID, n, f.Partitions)
		}
		out.ID, out.Partitions = id, []int{n}
	}
	if out.ID != "" && !wholeID.MatchString(out.ID) {
		return out, fmt.Errorf("%q is no ID of an event, such as 3/1767225600000-0 or 1767225600000-0", f.ID)
	}
	var err error
	out.Partitions, err = chosen(stream, m, out.Partitions)
	return out, err
}

var wholeID = regexp.MustCompile(`^[0-9]+-[0-9]+$`)

func (f *Filter) chooses(ids []string, hasKey func(string) bool, err, reason string) bool {
	return (f.ID == "" || slices.Contains(ids, f.ID)) && (f.Key == nil || hasKey(*f.Key)) &&
		(f.Error == "" || contains(err, f.Error) || contains(reason, f.Error))
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func atMost[T any](limit int, list []T) []T {
	if limit > 0 && limit < len(list) {
		return list[:limit]
	}
	return list
}

// An AmbiguousError is returned for an ID without a partition that several events have.
type AmbiguousError struct {
	ID    string
	Names []string // of the events, by partition/ID
}

// Error lists the events.
func (e *AmbiguousError) Error() string {
	names, more := e.Names, ""
	if len(names) > namedAtMost {
		names, more = names[:namedAtMost], fmt.Sprintf(" and %d more", len(names)-namedAtMost)
	}
	return fmt.Sprintf("ID %s is that of %d events: %s%s; say which one, as it is listed", e.ID, len(e.Names), strings.Join(names, ", "), more)
}

// namedAtMost is how many events an error lists.
const namedAtMost = 32

func ambiguous[T any](id string, chosen []T, name func(T) string) error {
	e := &AmbiguousError{ID: id}
	for _, one := range chosen {
		e.Names = append(e.Names, name(one))
	}
	return e
}

// oldest compares events by the time of appending, by the clocks of their IDs.
func oldest(a, b string, inA, inB int) int {
	return cmp.Or(entryid.Compare(a, b), cmp.Compare(inA, inB))
}

// byPartition calls change with the event IDs of each partition, in order of the partitions, until
// one fails. It returns the events whose IDs change returned, within a partition in the order of
// all.
func byPartition[T any](all []T, place func(T) (partition int, id string), change func(partition int, ids []string) ([]string, error)) ([]T, error) {
	ids, events := map[int][]string{}, map[string]T{}
	for _, one := range all {
		n, id := place(one)
		ids[n], events[entryid.EventID(n, id)] = append(ids[n], id), one
	}
	done := []T{}
	for _, n := range slices.Sorted(maps.Keys(ids)) {
		changed, err := change(n, ids[n])
		was := map[string]bool{}
		for _, id := range changed {
			was[id] = true
		}
		for _, id := range ids[n] {
			if was[id] {
				done = append(done, events[entryid.EventID(n, id)])
			}
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func momentOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
