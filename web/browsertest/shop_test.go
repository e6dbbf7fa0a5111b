package browsertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/web"
)

const token = "correct horse battery"

// evil is a payload that acts if taken for HTML.
const evil = `<img src="https://example.com/x" onerror="alert(1)"><script>alert(2)</script>`

type order struct {
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
	Note     string  `json:"note,omitempty"`
}

// A shop is an app with several processors, its workers, and a dashboard.
type shop struct {
	t       *testing.T
	redis   *redistest.Server
	app     *runnel.App // of the sender and the dashboard
	streams streams
	client  *store.Client
	url     string // of the dashboard
	pace    time.Duration
}

type streams struct {
	orders, payments, mails *runnel.Stream[order]
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (s *shop) letters() *admin.DeadLetters {
	return admin.New(s.app).DeadLetters("orders", "invoices")
}

// register declares the app as each of its workers does.
func (s *shop) register(worker string) (*runnel.App, streams) {
	app := runnel.New("shop", &runnel.Options{RedisURL: s.redis.URL(), WorkerName: worker, Logger: discard()})
	key := func(o order) string { return o.Customer }
	st := streams{
		runnel.NewStream(app, "orders", key, &runnel.StreamOptions{Partitions: 16, KeyField: "customer"}),
		runnel.NewStream(app, "payments", key, &runnel.StreamOptions{Partitions: 8, KeyField: "customer"}),
		runnel.NewStream(app, "mails", key, &runnel.StreamOptions{Partitions: 4, KeyField: "customer", Codec: codec.JSON}),
	}
	fails := func(_ context.Context, _ *runnel.Event, o order) error {
		if o.Note == "panic" {
			panic("out of paper")
		}
		if o.Note == "poison" || o.Note == evil {
			return errors.New("no such customer: " + o.Note)
		}
		return nil
	}
	st.orders.Process("printer", runnel.Each(func(ctx context.Context, _ *runnel.Event, _ order) error {
		select {
		case <-time.After(s.pace):
		case <-ctx.Done():
		}
		return nil
	}), &runnel.ProcessorOptions{Prefetch: 8})
	st.orders.Process("invoices", runnel.Each(fails), &runnel.ProcessorOptions{
		Retry: &runnel.Retry{Max: 2, Order: runnel.OrderKey, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}})
	st.orders.Process("statistics", runnel.Each(fails), &runnel.ProcessorOptions{
		Retry: &runnel.Retry{Max: 9, Order: runnel.OrderKey, MinBackoff: time.Hour, MaxBackoff: time.Hour}})
	st.payments.Process("pay", runnel.Each(fails), &runnel.ProcessorOptions{OnError: runnel.Quarantine})
	st.mails.Process("postman", runnel.Each(func(context.Context, *runnel.Event, order) error { return nil }), nil)
	return app, st
}

func newShop(t *testing.T) *shop {
	t.Helper()
	if _, ok := program(); !ok {
		t.Skip(missing)
	}
	s := &shop{t: t, redis: redistest.Start(t), pace: 60 * time.Millisecond}
	s.app, s.streams = s.register("dashboard")
	t.Cleanup(func() { s.app.Close() })
	var err error
	s.client, err = store.Open(redisconn.Options{URL: s.redis.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	s.must(err)
	t.Cleanup(func() { s.client.Close() })
	server := httptest.NewServer(web.Handler(s.app, &web.Options{Every: 500 * time.Millisecond, AllowActions: true, Token: token}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// work starts a worker, which ends with the test or by the returned function.
func (s *shop) work(name string) (end func()) {
	s.t.Helper()
	app, _ := s.register(name)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := app.Run(ctx); err != nil {
			s.t.Errorf("worker %s: %v", name, err)
		}
	})
	end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		app.Close()
	})
	s.t.Cleanup(end)
	s.eventually("worker "+name+" to be ready", func() bool { return app.Ready() == nil })
	return end
}

func (s *shop) eventually(what string, is func() bool) {
	s.t.Helper()
	redistest.Eventually(s.t, what, is, func() string {
		var totals strings.Builder
		for _, st := range s.state().Streams {
			for _, p := range st.Processors {
				fmt.Fprintf(&totals, "%s/%s: %+v\n", p.Stream, p.Processor, p.Totals)
			}
		}
		return totals.String()
	})
}

// state is the ground truth, without the dashboard.
func (s *shop) state() *inspect.AppState {
	s.t.Helper()
	a, err := inspect.App(s.t.Context(), s.client, "", 1000)
	s.must(err)
	return a
}

func (s *shop) processor(stream, name string) inspect.ProcessorState {
	s.t.Helper()
	p, err := inspect.Processor(s.t.Context(), s.client, stream, name, 1000)
	s.must(err)
	return *p
}

// fill makes something of everything: dead letters, parked and delayed events, a paused processor
// that is behind, a quarantined partition.
func (s *shop) fill() {
	s.t.Helper()
	ctx := s.t.Context()
	_, err := s.client.SetRule(ctx, rules.Rule{Kind: rules.Pause, Scope: rules.Processor("mails", "postman"), Who: "ada@desk", Why: "no stamps"}, 0)
	s.must(err)
	s.must(inspect.AwaitRules(ctx, s.client, rules.Processor("mails", "postman"), "", nil)) // or some mails might still go out
	for i := range 40 {
		s.must(s.streams.orders.Send(ctx, order{Customer: fmt.Sprint("customer ", i), Amount: float64(i)}))
		s.must(s.streams.mails.Send(ctx, order{Customer: fmt.Sprint("reader ", i)}))
		s.must(s.streams.payments.Send(ctx, order{Customer: fmt.Sprint("payer ", i)}))
	}
	s.must(s.streams.orders.Send(ctx, order{Customer: "eve", Note: evil}, order{Customer: evil, Note: "hello"}, order{Customer: "mallory", Note: "poison"}))
	s.must(s.streams.payments.Send(ctx, order{Customer: "mallory", Note: "poison"}))
	for i := range 3 {
		_, err := s.streams.orders.SendAfter(ctx, time.Duration(i+1)*time.Hour, order{Customer: "ada", Amount: float64(i)})
		s.must(err)
	}
}

// settled waits until all that can be is processed, and no partition is about to move.
func (s *shop) settled() {
	s.t.Helper()
	s.eventually("the app to settle", func() bool {
		parked := s.processor("orders", "statistics")
		return s.processor("orders", "printer").Totals.Lag == 0 && s.processor("orders", "invoices").Totals.Dead == 2 &&
			parked.Totals.Parked == 2 && parked.Totals.Lag == 0 && s.processor("payments", "pay").Totals.Quarantined == 1 &&
			s.processor("orders", "invoices").Totals.Lag == 0 && s.processor("payments", "pay").Totals.Lag == 1 && s.shared()
	})
}

// shared reports whether every partition is owned as assigned, and every worker has some.
func (s *shop) shared() bool {
	for _, st := range s.state().Streams {
		for _, p := range st.Processors {
			for _, m := range p.Members {
				if len(m.Assigned) == 0 {
					return false
				}
				for _, n := range m.Assigned {
					if p.Partitions[n].Executor != m.Executor {
						return false
					}
				}
			}
			if p.Totals.Owned < len(p.Partitions) {
				return false
			}
		}
	}
	return true
}

// many registers a processor with this many partitions, which no worker runs.
func (s *shop) many(partitions int) {
	s.t.Helper()
	_, err := s.client.EnsureMeta(s.t.Context(), "big", store.Meta{
		Partitions: partitions, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: []string{"reader"}})
	s.must(err)
}

func entryOf(s *shop, stream string, partition int) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: s.client.Keys().Partition(stream, partition), Values: []any{"data", "{}"}}
}
