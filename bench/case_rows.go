package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/bench/internal/stats"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
)

const rowsAbout = "A worker takes over a partition whose table has 1 000 000 rows, which it loads while it processes 200 events per second, half of " +
	"them of rows that it has, and the others of any. The figures are the longest time from the send of an event of a row that it has to its function, " +
	"and the longest command that the server has run meanwhile, as its slow log tells. The side without a table shows what of the first is the machine's."

const (
	tableRows  = 1_000_000
	rowsRate   = 200
	rowsLength = 8 * time.Second // that a measurement takes, and the load less
)

// planRows measures what a load of rows costs others.
func planRows(_ context.Context, b *Bench) (*Plan, error) {
	t := Task{Role: "runnel-rows", Stream: "kept", Codec: "msgpack", Partitions: 1, Rate: rowsRate, Length: rowsLength, Events: b.scale(tableRows, tableRows/10)}
	with := t
	with.Loop = "rows"
	return &Plan{
		Sides:  []Side{{Name: "a table", Task: with, Before: fillTable}, {Name: "no table", Task: t}},
		Rounds: b.scale(5, 1),
		Claims: []Claim{
			figure("longest wait of an event of a loaded row", "a table", "longest", "ms", atMost(50)),
			figure("longest command of the server", "a table", "slowest", "ms", atMost(20)),
			figure("longest wait of an event, no table", "no table", "longest", "ms", stats.Bar{}),
		},
		Columns: []Column{{"first", "first event ms", 1}, {"longest", "longest wait ms", 1}, {"slowest", "longest command ms", 1}},
	}, nil
}

// fillTable gives the table of a run its rows.
func fillTable(ctx context.Context, b *Bench, t *Task) error {
	row, err := codec.MsgPack.Encode(1.0)
	if err != nil {
		return err
	}
	const each = 1000
	key, p := keys.MustKind("rows").Key(keyNames, t.Stream, t.Run, "", 0), b.rdb.Pipeline()
	for i := 0; i < t.Events; i += each {
		var flat []any
		for n := i; n < min(i+each, t.Events); n++ {
			flat = append(flat, rowOf(n), row)
		}
		p.HSet(ctx, key, flat...)
		if _, err := p.Exec(ctx); err != nil {
			return fmt.Errorf("fill the table: %w", err)
		}
	}
	return nil
}

func rowOf(n int) string { return fmt.Sprint("row-", n) }

// runnelRows processes events that it sends while it loads the rows of the task's table, if it has one.
func runnelRows(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	app, began := newApp(t), time.Now()
	defer app.Close()
	stream := t.stream(app)
	opts := processorOf(t, runnel.StartEnd)
	opts.Reads = runnel.ByPosition
	table := runnel.NewTable[float64](stream, t.Run, &runnel.TableOptions{Local: true})
	if t.Loop != "" {
		opts.Tables = []runnel.State{table}
	}
	var mu sync.Mutex
	var waits []float64
	var first time.Duration
	loaded := map[string]bool{}
	stream.Process(t.Run, runnel.Each(func(ctx context.Context, _ *runnel.Event, o Order) error {
		at := time.Since(began)
		if t.Loop != "" {
			table.Rows(ctx).Update(o.Customer, func(sum float64) float64 { return sum + 1 })
		}
		mu.Lock()
		defer mu.Unlock()
		if first == 0 {
			first = at
		} else if loaded[o.Customer] {
			waits = append(waits, 1000*(at.Seconds()-o.Amount))
		}
		loaded[o.Customer] = true
		return nil
	}), opts)
	if err := errors.Join(rdb.ConfigSet(ctx, "slowlog-log-slower-than", "500").Err(), rdb.SlowLogReset(ctx).Err()); err != nil {
		return nil, err
	}
	send := func(ctx context.Context) error {
		tick := time.NewTicker(time.Second / time.Duration(t.Rate))
		defer tick.Stop()
		for n := 0; time.Since(began) < t.Length; n++ {
			o := Order{Customer: rowOf(n % 100), Amount: time.Since(began).Seconds()}
			if n%2 == 1 {
				o.Customer = rowOf(rand.IntN(t.Events))
			}
			if err := stream.Send(ctx, o); err != nil {
				return err
			}
			<-tick.C
		}
		return nil
	}
	if err := runUntil(ctx, app, send); err != nil {
		return nil, err
	}
	slow, err := slowest(ctx, rdb)
	if err == nil && len(waits) == 0 {
		err = errors.New("no event of a loaded row was handled")
	}
	if err != nil {
		return nil, err
	}
	return Result{"first": float64(first.Milliseconds()), "longest": slices.Max(waits), "slowest": float64(slow.Microseconds()) / 1e3}, forget(ctx, t)
}

// slowest is the longest command in the server's slow log.
func slowest(ctx context.Context, rdb *redis.Client) (longest time.Duration, err error) {
	logs, err := rdb.SlowLogGet(ctx, -1).Result()
	for _, l := range logs {
		longest = max(longest, l.Duration)
	}
	return longest, err
}
