package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const (
	positionAbout = "A backlog of 100-byte payloads in 16 partitions, processed by one process, that reads by position or by group. By hand is " +
		"a loop of XREAD that stores one position for each partition and read, in a goroutine of its own; the best of its variants is the counterpart."
	positionAOFAbout = "The same on a server that writes an append-only file and syncs it every second, with the bytes that are written there."
)

var fileColumn = Column{"file", "file bytes/event", 1}

func planPosition(ctx context.Context, b *Bench) (*Plan, error) { return b.positions(ctx, 1.5, 0.75) }

func planPositionAOF(ctx context.Context, b *Bench) (*Plan, error) {
	p, err := b.positions(ctx, 2, 0)
	if err != nil {
		return nil, err
	}
	for i := range p.Sides {
		p.Sides[i].Before, p.Sides[i].Run = shortenAOF, b.withFile
	}
	p.Columns = append(p.Columns, fileColumn)
	p.Claims = append(p.Claims, ratio("file", "by position", "by group", atMost(0.01)))
	return p, nil
}

// positions compares the ways to read: by position at least so many times as fast as by group, and as by hand, 0 for
// no bar.
func (b *Bench) positions(ctx context.Context, group, hand float64) (*Plan, error) {
	t := b.packed()
	if err := fill(ctx, b.rdb, t); err != nil {
		return nil, err
	}
	best, notes, err := b.best(ctx, "by hand", positionSides(t, []int{1, 2}, []int{64, 256}))
	if err != nil {
		return nil, err
	}
	return &Plan{
		Sides: []Side{{Name: "by group", Task: t.runnel("raw")}, {Name: "by position", Task: t.runnel("position")}, best},
		Claims: []Claim{
			ratio("rate", "by position", "by group", atLeast(group)),
			ratio("rate", "by position", "by hand", barOf(hand)),
			ratio("server", "by position", "by group", atMost(0.25)),
			ratio("server", "by hand", "by group", stats.Bar{}),
		},
		Columns: []Column{rateColumn, cpuColumn, serverColumn},
		Notes:   notes,
	}, nil
}

// positionSides are the loops by hand that read by position, of which the best is compared.
func positionSides(t Task, readers, counts []int) (out []Side) {
	for _, t.Readers = range readers {
		for _, t.Count = range counts {
			if t.ahead(t.Count) > 0 {
				t.Role, t.Pool = "plain-position", 2*t.Readers+10
				out = append(out, Side{Name: fmt.Sprintf("by hand, %d readers, COUNT %d", t.Readers, t.Count), Task: t})
			}
		}
	}
	return out
}

func barOf(least float64) stats.Bar {
	if least == 0 {
		return stats.Bar{}
	}
	return atLeast(least)
}

// withFile runs a side, and tells by how many bytes for each event the append-only file has grown.
func (b *Bench) withFile(ctx context.Context, t Task) (Result, error) {
	size := func() float64 {
		n, _ := strconv.ParseFloat(b.rdb.InfoMap(ctx, "persistence").Item("Persistence", "aof_current_size"), 64)
		return n
	}
	before := size()
	r, err := runChild(ctx, t)
	if err == nil {
		r[fileColumn.Figure] = (size() - before) / float64(t.Events)
	}
	return r, err
}
