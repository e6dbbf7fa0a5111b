package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
)

const commitAbout = "A backlog of 100-byte payloads in 16 partitions, processed by one process: each event changes the row of its key in a table of 1 000, " +
	"and emits a record of its size to a stream, or only changes the row, or neither. By hand is a loop of XREAD with a bare script for each partition and " +
	"read, which compares a fence, sets rows, appends records, and moves a position, in a goroutine of its own; it looks at nothing before it writes."

// planCommit compares atomic processors with the loop by hand, and with a processor without state.
func planCommit(ctx context.Context, b *Bench) (*Plan, error) {
	t := b.packed()
	if err := fill(ctx, b.rdb, t); err != nil {
		return nil, err
	}
	side := func(name, role, loop string, count int) Side {
		v := t
		v.Role, v.Loop, v.Count, v.Readers = role, loop, count, 2
		return Side{Name: name, Task: v, Before: forgetOutputs}
	}
	return &Plan{
		Sides: []Side{
			side("row and output", "runnel-commit", "outputs", 0), side("row", "runnel-commit", "rows", 0), side("neither", "runnel-commit", "", 0),
			side("by hand, 64 at a time", "plain-commit", "outputs", 64), side("by hand, one by one", "plain-commit", "outputs", 1),
		},
		Claims: []Claim{
			ratio("rate", "row and output", "by hand, 64 at a time", atLeast(0.75)),
			ratio("rate", "row and output", "by hand, one by one", atLeast(0.5)),
			ratio("rate", "row", "neither", atLeast(0.5)),
		},
		Columns: []Column{rateColumn, cpuColumn, serverColumn},
	}, nil
}

// outputs is the stream that is emitted to.
const outputs = "outputs"

func forgetOutputs(ctx context.Context, b *Bench, t *Task) error {
	var all []string
	for n := range t.Partitions {
		all = append(all, keyNames.Partition(outputs, n))
	}
	return b.rdb.Unlink(ctx, all...).Err()
}

// runnelCommit processes a backlog with a table of its own, as the task wants it: see planCommit.
func runnelCommit(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	m, stream := newMeter(t.Events), t.stream(app)
	emitted := runnel.NewStream(app, outputs, Order.key, &runnel.StreamOptions{Partitions: t.Partitions, MaxLen: endless})
	table := runnel.NewTable[float64](stream, t.Run, &runnel.TableOptions{Local: true}) // the backlog is not placed by key
	opts := processorOf(t, runnel.StartBeginning)
	opts.Reads = runnel.ByPosition
	if t.Loop != "" {
		opts.Tables = []runnel.State{table}
	}
	stream.Process(t.Run, func(owned context.Context, events *runnel.Events[Order]) error {
		var rows *runnel.Rows[float64]
		if t.Loop != "" {
			rows = table.Rows(owned)
		}
		for o := range events.Records() {
			if rows != nil {
				rows.Update(o.Customer, func(sum float64) float64 { return sum + o.Amount })
			}
			if t.Loop == "outputs" {
				if err := emitted.Emit(events.Context(), o); err != nil {
					return err
				}
			}
			m.add(1)
		}
		return nil
	}, opts)
	if err := runUntil(ctx, app, m.wait); err != nil {
		return nil, err
	}
	return m.result(), forget(ctx, t)
}

// commitByHand does in one step what an atomic processor does, and looks at nothing before but a fence.
var commitByHand = redis.NewScript(`
if redis.call('HGET', KEYS[2], 'tenure') ~= ARGV[1] then return redis.error_reply('FENCED') end
for i = 3, #ARGV, 3 do
	redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
	redis.call('XADD', KEYS[4], '*', 'data', ARGV[i + 2])
end
redis.call('HSET', KEYS[2], 'floor', ARGV[2])
return redis.call('XGROUP', 'SETID', KEYS[1], 'by-hand', ARGV[2])`)

// plainCommit is the loop by hand. It keeps its rows in a map for each of its readers.
func plainCommit(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	m, logs := newMeter(t.Events), t.logs()
	m.skip = t.ahead(t.Count)
	var own []string
	for n, log := range logs {
		own = append(own, fmt.Sprint(t.Run, ".own.", n), fmt.Sprint(t.Run, ".rows.", n))
		if err := errors.Join(rdb.XGroupCreate(ctx, log, "by-hand", "0").Err(), rdb.HSet(ctx, own[2*n], "tenure", "me").Err()); err != nil {
			return nil, err
		}
	}
	var readers errgroup.Group
	for r := range t.Readers {
		readers.Go(func() error { return commitOn(ctx, t, rdb, r, own, m) })
	}
	err := readers.Wait()
	for _, log := range logs {
		err = errors.Join(err, rdb.XGroupDestroy(ctx, log, "by-hand").Err())
	}
	return m.result(), errors.Join(err, rdb.Unlink(ctx, own...).Err())
}

// handled decodes an event and adds it to its row, and returns the arguments for both: key, row, and the record anew.
func handled(e redis.XMessage, rows map[string]float64) ([]any, error) {
	var o Order
	data, _ := e.Values[payloadField].(string)
	if err := codec.MsgPack.Decode([]byte(data), &o); err != nil {
		return nil, err
	}
	rows[o.Customer] += o.Amount
	row, err := codec.MsgPack.Encode(rows[o.Customer])
	if err != nil {
		return nil, err
	}
	record, err := codec.MsgPack.Encode(o)
	return []any{o.Customer, row, record}, err
}

// commitOn reads every so many-th partition to its end. A goroutine sends the scripts of a read while the next one is made.
func commitOn(ctx context.Context, t Task, rdb *redis.Client, first int, own []string, m *meter) error {
	type part struct{ log, own, rows, to string }
	after, parts := map[string]string{}, map[string]part{}
	for n, log := range t.logs() {
		if n%t.Readers == first {
			after[log], parts[log] = "0", part{log, own[2*n], own[2*n+1], keyNames.Partition(outputs, n)}
		}
	}
	rows := map[string]float64{}
	reads := make(chan []redis.XStream, ackDepth)
	var store errgroup.Group
	store.Go(func() (failed error) {
		for streams := range reads {
			pipe := rdb.Pipeline()
			for _, s := range streams {
				p := parts[s.Stream]
				args := []any{"me", s.Messages[len(s.Messages)-1].ID}
				for _, e := range s.Messages {
					more, err := handled(e, rows)
					if err != nil {
						return err
					}
					args = append(args, more...)
				}
				commitByHand.Eval(ctx, pipe, []string{p.log, p.own, p.rows, p.to}, args...)
			}
			if _, err := pipe.Exec(ctx); failed == nil {
				failed = err
			}
		}
		return failed
	})
	read := func() error {
		for {
			var logs, ids []string
			for log, id := range after {
				logs, ids = append(logs, log), append(ids, id)
			}
			streams, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: append(logs, ids...), Count: int64(t.Count), Block: -1}).Result()
			if errors.Is(err, redis.Nil) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read: %w", err)
			}
			for _, s := range streams {
				m.add(int64(len(s.Messages)))
				after[s.Stream] = s.Messages[len(s.Messages)-1].ID
			}
			reads <- streams
		}
	}
	err := read()
	close(reads)
	return errors.Join(err, store.Wait())
}
