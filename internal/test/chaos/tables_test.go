//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/exact"
)

// marksParts, foldsParts and endsParts are partitions of the stream of marks, and of those that its processor emits to.
const marksParts, foldsParts, endsParts = 5, 3, 2

// markPause is the pause in a key's marks behind which its row of visits ends.
const markPause = 300 * time.Millisecond

// roundVariable tells a worker the round: each has streams of its own.
const roundVariable = "RUNNEL_CHAOS_NUMBER"

// marked are the streams and tables of a processor that counts each mark once, beside the stream of the app.
type marked struct {
	marks, folds, ends  *runnel.Stream[exact.Mark]
	keys, parts, visits *runnel.Table[exact.Row]
}

func declareMarks(app *runnel.App, round string) *marked {
	stream := func(name string, parts int) *runnel.Stream[exact.Mark] {
		return runnel.NewStream(app, name+round, func(m exact.Mark) string { return m.Key },
			&runnel.StreamOptions{Partitions: parts, MaxLen: 1 << 40, Codec: codec.JSON})
	}
	m := &marked{marks: stream("marks", marksParts), folds: stream("folds", foldsParts), ends: stream("ends", endsParts)}
	m.keys = runnel.NewTable[exact.Row](m.marks, "keys", &runnel.TableOptions{Codec: codec.JSON})
	m.parts = runnel.NewTable[exact.Row](m.marks, "parts", &runnel.TableOptions{Codec: codec.JSON, Local: true})
	m.visits = runnel.NewTable[exact.Row](m.marks, "visits", &runnel.TableOptions{Codec: codec.JSON, TTL: markPause})
	return m
}

// process declares the processor. What ends its process charges events of other partitions a crash: these have many attempts.
func (m *marked) process() {
	m.visits.OnExpire(func(ctx context.Context, key string, row exact.Row) error {
		return m.ends.Emit(ctx, exact.EndOf("fold", runnel.XXHash.Func(key, marksParts), key, row, m.visits.Rows(ctx).Now().UnixMilli()))
	})
	m.marks.Process("fold", runnel.Each(func(ctx context.Context, e *runnel.Event, mark exact.Mark) error {
		one, nonce := exact.Entry{Partition: e.Partition, ID: e.ID, Mark: mark}, rand.Uint64()
		add := func(r exact.Row) exact.Row { return r.Add(one, nonce, 0) }
		row := m.keys.Rows(ctx).Update(mark.Key, add)
		m.parts.Rows(ctx).Update(exact.All, add)
		m.visits.Rows(ctx).Update(mark.Key, func(r exact.Row) exact.Row { return r.Visit(mark, 0) })
		dawdle(ctx)
		return m.folds.Emit(ctx, one.Outputs(nonce, row)...)
	}), &runnel.ProcessorOptions{
		Tables: []runnel.State{m.keys, m.parts, m.visits},
		Retry:  &runnel.Retry{Max: 1000, MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, Order: runnel.OrderPartition},
	})
}

func processMarks(app *runnel.App) { declareMarks(app, os.Getenv(roundVariable)).process() }

// A marker sends marks, and judges what became of them.
type marker struct {
	*scene
	*marked
	torn atomic.Bool // a part of a cluster has forgotten all: what is elsewhere has no source any more
	sent atomic.Int64
}

// mark begins to send marks until stop is called; end closes its app.
func (s *scene) mark() (m *marker, stop, end func()) {
	app, _, end := declare(s.sends.way, "marker")
	m = &marker{scene: s, marked: declareMarks(app, strconv.Itoa(s.round))}
	ctx, cancel := context.WithCancel(s.t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		for n := int64(1); ctx.Err() == nil; n++ {
			short, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			if m.marks.Send(short, exact.Mark{Key: fmt.Sprint("k", rand.IntN(100)), N: n}) == nil {
				m.sent.Add(1)
			}
			done()
			<-time.After(rand.N(20 * time.Millisecond))
		}
	})
	return m, func() {
		cancel()
		sending.Wait()
	}, end
}

// left says which partition of marks is not at rest, "" for none.
func (m *marker) left() (out string) {
	ctx, rdb, stream := m.t.Context(), m.topo.client(), m.marks.Name()
	for p := range marksParts {
		key := m.scene.keys.Partition(stream, p)
		last, err1 := rdb.XRevRangeN(ctx, key, "+", "-", 1).Result()
		parked, err2 := rdb.HLen(ctx, m.scene.keys.Parked(stream, "fold", p)).Result()
		boxed, err3 := rdb.XLen(ctx, keys.MustKind("out").Key(m.scene.keys, stream, "fold", "", p)).Result()
		committed := rdb.HGet(ctx, m.scene.keys.Ownership(stream, "fold", p), "floor").Val()
		open, err4 := rdb.HLen(ctx, keys.MustKind("rows").Key(m.scene.keys, stream, "visits", "", p)).Result()
		if err := errors.Join(err1, err2, err3, err4); err != nil || parked+boxed+open > 0 || len(last) > 0 && last[0].ID != committed {
			out += fmt.Sprintln(key, last, "committed", committed, "parked", parked, "in the outbox", boxed, "rows that have not ended", open, err)
		}
	}
	return out
}

// rest returns what is found of marks: each was counted once, in rows and in what was emitted. It is nothing that can be
// judged after a part of a cluster has forgotten all.
func (m *marker) rest() (all []exact.Stage) {
	ctx, rdb := m.t.Context(), m.topo.client()
	each := func(n int, key func(p int) string) (all []string) {
		for p := range n {
			all = append(all, key(p))
		}
		return all
	}
	entries := func(stream string, n int) [][]exact.Entry {
		all, err := exact.Entries(ctx, rdb, each(n, func(p int) string { return m.scene.keys.Partition(stream, p) }))
		if err != nil {
			m.t.Error(err)
		}
		return all
	}
	rows := func(table string) []map[string]exact.Row {
		all, err := exact.Rows(ctx, rdb, each(marksParts, func(p int) string {
			return keys.MustKind("rows").Key(m.scene.keys, m.marks.Name(), table, "", p)
		}))
		if err != nil {
			m.t.Error(err)
		}
		return all
	}
	found := exact.Stage{
		Name: "fold", Events: entries(m.marks.Name(), marksParts), Outputs: entries(m.folds.Name(), foldsParts),
		Keys: rows("keys"), Parts: rows("parts"),
		Ends: entries(m.ends.Name(), endsParts), Pause: markPause.Milliseconds(), Target: func(key string) int { return runnel.XXHash.Func(key, endsParts) },
	}
	if m.torn.Load() {
		return nil
	}
	return append(all, found)
}
