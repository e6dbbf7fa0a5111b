package conformance_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/rebalance"
)

const pyExecutor = "iqzhn8WjQjSLPZZU3iBIAA"

// A pyProcessor is the processor "printer" of the stream orders of app shop, as Python's runnel
// stores it.
type pyProcessor struct {
	t   *testing.T
	rdb *redis.Client
	ids []string // of the entries of partition 5
}

// newPyProcessor returns one that has read 4 of 6 entries of partition 5, and acked 2.
func newPyProcessor(t *testing.T, rdb *redis.Client) *pyProcessor {
	p := &pyProcessor{t: t, rdb: rdb}
	ctx, key := t.Context(), "__strm:shop.orders.5"
	p.must(rdb.XGroupCreateMkStream(ctx, key, "printer", "0").Err())
	for n := range 6 {
		id, err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []any{"data", `{"order_id":"a","count":` + string(rune('0'+n)) + `}`}}).Result()
		p.must(err)
		p.ids = append(p.ids, id)
	}
	p.must(rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "printer", Consumer: "1", Streams: []string{key, ">"}, Count: 4}).Err())
	p.must(rdb.XAck(ctx, key, "printer", p.ids[0], p.ids[1]).Err())
	return p
}

func (p *pyProcessor) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// run stores the keys of a running worker. Its locks and its heartbeat live for that long after it
// was killed.
func (p *pyProcessor) run(life time.Duration) {
	ctx := p.t.Context()
	p.must(p.rdb.Set(ctx, "__memb:shop.orders.printer", `{"`+pyExecutor+`": {"joined_at": "2026-11-23T02:48:55.296746", "partitions": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]}}`, 0).Err())
	p.must(p.rdb.Set(ctx, "__beat:shop.orders.printer."+pyExecutor, "beat", life).Err())
	p.must(p.rdb.Set(ctx, "__lock:shop.orders.printer.5", pyExecutor, life).Err())
	p.must(p.rdb.XAdd(ctx, &redis.XAddArgs{Stream: "__ctrl:shop.orders.printer", Values: []any{"reason", "join", "executor_ids", `["` + pyExecutor + `"]`}}).Err())
}

// stop acts as its SIGTERM.
func (p *pyProcessor) stop() {
	ctx := p.t.Context()
	p.must(p.rdb.Del(ctx, "__lock:shop.orders.printer.5").Err())
	p.must(p.rdb.Set(ctx, "__memb:shop.orders.printer", `{}`, 0).Err())
	p.must(p.rdb.XAdd(ctx, &redis.XAddArgs{Stream: "__ctrl:shop.orders.printer", Values: []any{"reason", "leave", "executor_ids", `["` + pyExecutor + `"]`}}).Err())
}

// Whether Python's worker was stopped or killed, its processor continues at its position.
func TestPythonProcessorGoesOnInGo(t *testing.T) {
	for name, end := range map[string]func(p *pyProcessor){
		"stopped": func(p *pyProcessor) { p.run(time.Minute); p.stop() },
		"killed":  func(p *pyProcessor) { p.run(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			p := newPyProcessor(t, srv.Client(t))
			end(p)
			for p.rdb.Exists(t.Context(), "__lock:shop.orders.printer.5").Val() > 0 {
				time.Sleep(time.Millisecond)
			}
			app, s := pyApp(t, srv, codec.JSON)
			got := collect(t, app, s, 4)
			for i, o := range got {
				if o.Count != i+2 {
					t.Errorf("got %+v, want the orders 2 to 5", got)
					break
				}
			}
		})
	}
}

// everything returns the contents of all keys of a server.
func everything(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		all[key] = rdb.Dump(t.Context(), key).Val()
	}
	return all
}

// While Python's worker runs the processor, a worker of the same name is refused and leaves no
// trace in any stream of the app.
func TestPythonProcessorThatLivesIsLeftAlone(t *testing.T) {
	srv := redistest.Start(t)
	p := newPyProcessor(t, srv.Client(t))
	p.run(time.Minute)
	before := everything(t, p.rdb)
	app, s := pyApp(t, srv, codec.JSON)
	other := runnel.NewStream(app, "a-stream-that-is-checked-first", func(o pyOrder) string { return o.OrderID }, nil)
	nothing := func(context.Context, *runnel.Events[pyOrder]) error { return nil }
	s.Process("printer", nothing, nil)
	other.Process("other", nothing, nil)
	err := app.Run(t.Context())
	var python *rebalance.PythonError
	if !errors.As(err, &python) || !strings.Contains(err.Error(), "stream orders: processor printer: ") || !strings.Contains(err.Error(), pyExecutor) {
		t.Errorf("%v, want a refusal that names the stream, the processor and the executor", err)
	}
	if after := everything(t, p.rdb); !maps.Equal(before, after) {
		t.Errorf("the refused start changed something: %d keys, then %d", len(before), len(after))
	}
}
