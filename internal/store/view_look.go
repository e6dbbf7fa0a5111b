package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Bounds for the server time of one script, and of a round trip.
const (
	partitionsPerLook = 128
	placesPerLook     = 128
	groupsPerLook     = 512
	costPerTrip       = 4096 // see look.cost
)

// A look is what one script looks at: places by number, those of one partition together.
type look struct {
	parts          [][]int
	places, groups int // groups of all its partitions, as far as is known
}

// looks divides places into looks, none of which keeps the server for long.
func (c Viewer) looks(ps []Partition) (looks []*look) {
	open := map[int]*look{} // by slot: the one that is not full
	for _, part := range partitionsOf(ps) {
		groups := c.groups(ps[part[0]].Stream, len(part))
		for some := range slices.Chunk(part, placesPerLook) {
			slot := 0
			if c.Clustered() {
				slot = redisconn.Slot(ps[some[0]].Log)
			}
			l := open[slot]
			if l == nil || l.full(len(some), groups) {
				l = &look{}
				open[slot], looks = l, append(looks, l)
			}
			l.parts, l.places, l.groups = append(l.parts, some), l.places+len(some), l.groups+groups
		}
	}
	return looks
}

// full reports whether a partition with so many places and groups is too much for l.
func (l *look) full(places, groups int) bool {
	return len(l.parts) == partitionsPerLook || l.places+places > placesPerLook || l.groups+groups > groupsPerLook
}

// cost returns the server time in units of a group; what belongs to a place takes two.
func (l *look) cost() int { return l.groups + 2*l.places }

// all returns the numbers of the places.
func (l *look) all() []int { return slices.Concat(l.parts...) }

// skip removes the places that were seen.
func (l *look) skip(seen int) {
	l.places -= seen
	for ; seen > 0; l.parts = l.parts[1:] {
		n := min(seen, len(l.parts[0]))
		if l.parts[0] = l.parts[0][n:]; len(l.parts[0]) > 0 {
			return
		}
		seen -= n
	}
}

// inOneTrip is how many of these looks, one at least, may share a round trip.
func inOneTrip(looks []*look) int {
	cost := 0
	for n, l := range looks {
		if cost += l.cost(); n > 0 && cost > costPerTrip {
			return n
		}
	}
	return len(looks)
}

// partitionsOf returns the numbers of the places of each partition.
func partitionsOf(ps []Partition) (parts [][]int) {
	of := map[string]int{}
	for i, p := range ps {
		at, ok := of[p.Log]
		if !ok {
			at = len(parts)
			of[p.Log], parts = at, append(parts, nil)
		}
		parts[at] = append(parts[at], i)
	}
	return parts
}

// groups returns how many consumer groups a partition of a stream has, as far as is known.
func (c Viewer) groups(stream string, atLeast int) int {
	m, _ := c.metas.load(stream)
	return max(1, atLeast, len(m.Processors))
}

func viewCall(ctx context.Context, ps []Partition, l *look) *redisconn.Call {
	keys, args := []string{}, []any{ExecutorIDLength, statesLooked}
	for _, part := range l.parts {
		keys = append(keys, ps[part[0]].Log, ps[part[0]].Due)
		args = append(args, len(part))
		for _, at := range part {
			p := ps[at]
			keys, args = append(keys, p.Lock, p.Own, p.Retry, p.Dead), append(args, p.Processor)
		}
	}
	return redisconn.ScriptCall(ctx, viewScript, keys, args...)
}

// seenBy returns the values of the first places of a look, at least one; a text is an error.
func seenBy(reply *redis.Cmd, l *look) ([]any, error) {
	rows, err := reply.Slice()
	if err != nil {
		return nil, classify(err)
	}
	if len(rows) < 2 || len(rows) > 1+l.places {
		return nil, fmt.Errorf("reply of %d rows, for %d places", len(rows), l.places)
	}
	names, _ := rows[0].([]any)
	for i, row := range rows[1:] {
		if values, ok := row.([]any); ok {
			rows[1+i] = zipped(names, values)
		}
	}
	return rows[1:], nil
}
