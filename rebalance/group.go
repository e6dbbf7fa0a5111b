package rebalance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// groupVersion is the "v" of the JSON that this package reads and writes.
const groupVersion = 1

// maxPartitions is far above any sensible number.
const maxPartitions = 1 << 20

// maxStored bounds what is parsed, in bytes: three times a membership of 65 536
// partitions that are all pinned to workers with long names.
const maxStored = 16 << 20

// ErrInvalid is returned by Parse, wrapped, for a value that is no membership.
var ErrInvalid = errors.New("invalid membership")

// A versionError is returned if a stored membership has a version that this program does
// not know, most likely because a newer one wrote it.
type versionError struct{ Version int }

// Error names both versions.
func (e *versionError) Error() string {
	return fmt.Sprintf("membership has version %d, this program knows %d: was it written by a newer one?", e.Version, groupVersion)
}

// A Group is the membership of one processor: who its members are and which partitions each is
// assigned. It is a value: its methods change nothing and share nothing with what they return.
type Group struct {
	Generation int64               // number of changes so far
	Partitions int                 // how many partitions the stream has
	Executors  map[string]Executor // by executor ID

	// Requests of operators, by the names of workers, which they outlive.
	Pins    map[int]string       // partition to its worker
	Cordons map[string]time.Time // workers that get only pinned partitions, and since when; to the millisecond, in UTC
	Gone    map[string]time.Time // workers of these that are no members, and since when that is known; likewise

	// Python has the executors, by ID, of a membership that Python's runnel stored. They are
	// no members, and Encode omits them.
	Python map[string]Executor
}

// An Executor is one member as the membership knows it.
type Executor struct {
	Worker     string        // name of the worker it runs in
	JoinedAt   time.Time     // kept to the millisecond
	Expiry     time.Duration // of its locks and its heartbeat, kept to the millisecond, at least one
	Partitions []int         // its assignment, ascending
}

type groupJSON struct {
	Version    int                     `json:"v"`
	Generation int64                   `json:"generation"`
	Partitions int                     `json:"partitions"`
	Executors  map[string]executorJSON `json:"executors"`
	Pins       map[int]string          `json:"pins,omitempty"`
	Cordons    map[string]int64        `json:"cordons,omitempty"` // ms
	Gone       map[string]int64        `json:"gone,omitempty"`    // ms
}

type executorJSON struct {
	Worker     string `json:"worker"`
	JoinedAt   int64  `json:"joined_at"`
	ExpiryMS   int64  `json:"expiry_ms"`
	Partitions []int  `json:"partitions"`
}

// Parse decodes the result of Encode. Empty data is the empty group. A membership that Python's
// runnel stored is a group with nothing but Python. Errors wrap ErrInvalid, unless the version is
// unknown.
func Parse(data []byte) (Group, error) {
	if len(data) == 0 {
		return Group{}, nil
	}
	if len(data) > maxStored {
		return Group{}, fmt.Errorf("%w: it has %d bytes, more than %d", ErrInvalid, len(data), maxStored)
	}
	// The version first: other fields of a newer version need not fit our types.
	var v struct {
		Version *int `json:"v"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return Group{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if v.Version == nil {
		if executors, ok := parsePython(data); ok {
			return Group{Python: executors}, nil
		}
		return Group{}, fmt.Errorf("%w: it has no version", ErrInvalid)
	}
	if *v.Version != groupVersion {
		return Group{}, &versionError{Version: *v.Version}
	}
	var in groupJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return Group{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	return in.group()
}

func (in groupJSON) group() (Group, error) {
	if in.Generation < 0 || in.Partitions < 0 || in.Partitions > maxPartitions {
		return Group{}, fmt.Errorf("%w: generation %d with %d partitions", ErrInvalid, in.Generation, in.Partitions)
	}
	g := Group{Generation: in.Generation, Partitions: in.Partitions, Executors: make(map[string]Executor, len(in.Executors)), Pins: in.Pins}
	var err error
	if g.Cordons, err = momentsOf(in.Cordons, "drained"); err == nil {
		g.Gone, err = momentsOf(in.Gone, "gone")
	}
	if err != nil {
		return Group{}, err
	}
	for p := range in.Pins {
		if p < 0 || p >= in.Partitions {
			return Group{}, fmt.Errorf("%w: a pin of partition %d of %d", ErrInvalid, p, in.Partitions)
		}
	}
	taken := make(map[int]string)
	for _, id := range slices.Sorted(maps.Keys(in.Executors)) {
		e := in.Executors[id]
		if id == "" {
			return Group{}, fmt.Errorf("%w: an executor without ID", ErrInvalid)
		}
		if e.ExpiryMS <= 0 || e.ExpiryMS > math.MaxInt64/int64(time.Millisecond) {
			return Group{}, fmt.Errorf("%w: executor %s has an expiry of %d ms", ErrInvalid, id, e.ExpiryMS)
		}
		if !isMoment(e.JoinedAt) {
			return Group{}, fmt.Errorf("%w: executor %s joined at %d ms", ErrInvalid, id, e.JoinedAt)
		}
		for _, p := range e.Partitions {
			if p < 0 || p >= in.Partitions {
				return Group{}, fmt.Errorf("%w: executor %s has partition %d of %d", ErrInvalid, id, p, in.Partitions)
			}
			if other, ok := taken[p]; ok {
				return Group{}, fmt.Errorf("%w: partition %d is assigned to %s and %s", ErrInvalid, p, other, id)
			}
			taken[p] = id
		}
		g.Executors[id] = Executor{
			Worker:     e.Worker,
			JoinedAt:   time.UnixMilli(e.JoinedAt),
			Expiry:     time.Duration(e.ExpiryMS) * time.Millisecond,
			Partitions: slices.Sorted(slices.Values(e.Partitions)),
		}
	}
	return g, nil
}

// momentsOf returns the moments since when workers have been cordoned or gone.
func momentsOf(millis map[string]int64, what string) (map[string]time.Time, error) {
	var out map[string]time.Time
	for worker, at := range millis {
		if !isMoment(at) {
			return nil, fmt.Errorf("%w: worker %s is %s since %d ms", ErrInvalid, worker, what, at)
		}
		if out == nil {
			out = make(map[string]time.Time, len(millis))
		}
		out[worker] = time.UnixMilli(at).UTC()
	}
	return out, nil
}

func millisOf(moments map[string]time.Time) map[string]int64 {
	var out map[string]int64
	for worker, at := range moments {
		if out == nil {
			out = make(map[string]int64, len(moments))
		}
		out[worker] = at.UnixMilli()
	}
	return out
}

// isMoment reports whether JSON can express a time: the years 1 to 9999.
func isMoment(ms int64) bool { return ms >= -62_135_596_800_000 && ms <= 253_402_300_799_999 }

// Encode returns the group as JSON; equal groups give equal bytes.
func (g Group) Encode() []byte {
	out := groupJSON{
		Version:    groupVersion,
		Generation: g.Generation,
		Partitions: g.Partitions,
		Executors:  make(map[string]executorJSON, len(g.Executors)),
		Pins:       g.Pins,
		Cordons:    millisOf(g.Cordons),
		Gone:       millisOf(g.Gone),
	}
	for id, e := range g.Executors {
		out.Executors[id] = executorJSON{
			Worker:     e.Worker,
			JoinedAt:   e.JoinedAt.UnixMilli(),
			ExpiryMS:   max(1, e.Expiry.Milliseconds()),
			Partitions: append([]int{}, e.Partitions...),
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		panic("rebalance: a group holds only numbers and strings: " + err.Error())
	}
	return data
}

// Join returns the group with one more member, or with a new entry for one that it has. The
// generation is raised and all partitions are assigned afresh; e.Partitions is ignored.
func (g Group) Join(id string, e Executor, partitions int, salt string) Group {
	next := g.without(nil)
	e.Partitions = next.Executors[id].Partitions
	next.Executors[id] = e
	next.Partitions = partitions
	return next.reassigned(salt)
}

// Leave returns the group without these members. The generation is raised and all
// partitions are assigned afresh. A group with none of them is returned unchanged.
func (g Group) Leave(salt string, ids ...string) Group {
	next := g.without(ids)
	if len(next.Executors) == len(g.Executors) {
		return next
	}
	return next.reassigned(salt)
}

// Expiry returns the longest expiry of all members, which bounds the life of their locks and
// heartbeats. It is zero for an empty group.
func (g Group) Expiry() time.Duration {
	var longest time.Duration
	for _, e := range g.Executors {
		longest = max(longest, e.Expiry)
	}
	return longest
}

// IDs returns the IDs of all members, sorted.
func (g Group) IDs() []string { return slices.Sorted(maps.Keys(g.Executors)) }

// without returns a copy that lacks ids. Their partitions have no owner until the next assignment:
// one assignment for a leave and a join moves fewer than two.
func (g Group) without(ids []string) Group {
	next := Group{
		Generation: g.Generation, Partitions: g.Partitions, Executors: make(map[string]Executor, len(g.Executors)+1),
		Pins: maps.Clone(g.Pins), Cordons: maps.Clone(g.Cordons), Gone: maps.Clone(g.Gone),
	}
	for id, e := range g.Executors {
		if !slices.Contains(ids, id) {
			e.Partitions = slices.Clone(e.Partitions)
			next.Executors[id] = e
		}
	}
	return next
}

// reassigned changes its receiver, a fresh copy, and returns it.
func (g Group) reassigned(salt string) Group {
	prev := make(map[string][]int, len(g.Executors))
	members := make([]member, 0, len(g.Executors))
	for _, id := range g.IDs() {
		e := g.Executors[id]
		prev[id] = e.Partitions
		members = append(members, member{ID: id, Worker: e.Worker})
	}
	maps.DeleteFunc(g.Pins, func(p int, _ string) bool { return p >= g.Partitions }) // of an earlier stream of this name
	for id, ps := range assign(prev, members, g.Partitions, salt, g.wishes()) {
		e := g.Executors[id]
		e.Partitions = ps
		g.Executors[id] = e
	}
	g.Generation++
	return g
}
