package runnelotel_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	runnelotel "github.com/runnel-go/runnel/otel"
)

// bookkeeping is an app that makes a bill of each order, and sends the baggage of each printed bill
// to told.
func bookkeeping(o *runnel.Options, told chan<- baggage.Baggage) (*runnel.App, *runnel.Stream[order]) {
	app := runnel.New("shop", o)
	orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 4})
	bills := runnel.NewStream(app, "bills", customer, &runnel.StreamOptions{Partitions: 1})
	orders.Process("bill", func(_ context.Context, events *runnel.Events[order]) error {
		for o := range events.Records() {
			if err := bills.Send(events.Context(), o); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	bills.Process("print", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Raw() {
			told <- baggage.FromContext(events.Context())
		}
		return nil
	}, nil)
	return app, orders
}

func TestOneTraceThroughTwoStreams(t *testing.T) {
	srv, s := redistest.Start(t), record(t)
	opts := s.options()
	opts.Attributes = []attribute.KeyValue{attribute.String("server.address", "redis.example")}
	told := make(chan baggage.Baggage, 1)
	app, orders := bookkeeping(runnelotel.Instrument(quiet(srv), opts), told)
	work(t, app)

	ctx, root := s.begin("checkout")
	tenant, _ := baggage.NewMember("tenant", "acme")
	all, _ := baggage.New(tenant)
	sent, err := orders.SendEvents(baggage.ContextWithBaggage(ctx, all), runnel.Outgoing[order]{Record: order{"ada", 5}})
	if err != nil {
		t.Fatal(err)
	}
	root.End()
	if got := (<-told).Member("tenant").Value(); got != "acme" {
		t.Errorf("the baggage has tenant %q", got)
	}
	redistest.Eventually(t, "all spans have ended", func() bool { return len(s.recorder.Ended()) == 5 })

	chain := []string{"checkout", "send orders", "process orders", "send bills", "process bills"}
	for i, name := range chain[1:] {
		span, kind := s.one(name), trace.SpanKindProducer
		if i%2 == 1 {
			kind = trace.SpanKindConsumer
			wantLinks(t, span, s.one(chain[i]).SpanContext())
		}
		wantChild(t, span, s.one(chain[i]))
		wantStatus(t, span, "", "")
		if span.SpanKind() != kind {
			t.Errorf("%s is of kind %v, want %v", name, span.SpanKind(), kind)
		}
		wantAttributes(t, span, map[string]string{"messaging.system": "runnel", "messaging.batch.message_count": "", "server.address": "redis.example"})
	}
	partition := strconv.Itoa(sent[0].Partition)
	wantAttributes(t, s.one("send orders"), map[string]string{
		"messaging.destination.name": "orders", "messaging.destination.partition.id": partition, "messaging.message.id": sent[0].ID,
		"messaging.operation.name": "send", "messaging.operation.type": "send", "runnel.sent": "1",
		"runnel.duplicates": "", "runnel.refused": "", "runnel.unknown": "",
	})
	processed := s.one("process orders")
	wantAttributes(t, processed, map[string]string{
		"messaging.destination.name": "orders", "messaging.destination.partition.id": partition, "messaging.message.id": sent[0].ID,
		"messaging.operation.name": "process", "messaging.operation.type": "process", "messaging.consumer.group.name": "bill",
		"runnel.attempt": "1", "runnel.redelivered": "",
	})
	if epoch := attributes(processed.Attributes())["runnel.epoch"]; len(epoch) < 13 {
		t.Errorf("the epoch is %q", epoch)
	}
}

// A batch has links to the spans that sent its events, and no parent.
func TestABatchHasLinks(t *testing.T) {
	srv, s := redistest.Start(t), record(t)
	app := runnel.New("shop", runnelotel.Instrument(quiet(srv), s.options()))
	orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1})
	copies := runnel.NewStream(app, "copies", customer, nil)
	orders.Process("p", runnel.EachBatch(4, time.Minute, func(ctx context.Context, _ []*runnel.Event, records []order) error {
		return copies.Send(ctx, records...)
	}), nil)
	for _, records := range [][]order{{{"a", 1}}, {{"b", 1}, {"c", 1}}} {
		if err := orders.Send(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
	}
	bare := &redis.XAddArgs{Stream: "__strm:shop.orders.0", Values: []any{"json", `{"customer":"d"}`}}
	id := srv.Client(t).XAdd(t.Context(), bare)
	if id.Err() != nil {
		t.Fatal(id.Err())
	}
	work(t, app)
	redistest.Eventually(t, "the batch is done", func() bool { return len(s.all("process orders")) == 1 })

	sent, batch := s.want("send orders", 2), s.one("process orders")
	wantRoot(t, batch)
	wantLinks(t, batch, sent[0].SpanContext(), sent[1].SpanContext())
	wantAttributes(t, batch, map[string]string{"messaging.batch.message_count": "4", "messaging.message.id": "", "runnel.attempt": "1"})
	wantAttributes(t, sent[0], map[string]string{"messaging.batch.message_count": ""})
	wantAttributes(t, sent[1], map[string]string{"messaging.batch.message_count": "2", "runnel.sent": "2", "messaging.message.id": ""})
	first, second := attributes(batch.Links()[0].Attributes), attributes(batch.Links()[1].Attributes)
	if first["messaging.message.id"] != attributes(sent[0].Attributes())["messaging.message.id"] || second["messaging.batch.message_count"] != "2" {
		t.Errorf("links %v and %v", first, second)
	}
	wantChild(t, s.one("send copies"), batch)
}

// Concurrent sends and partitions do not mix their traces.
func TestConcurrentTraces(t *testing.T) {
	const senders, each = 8, 10
	srv, s := redistest.Start(t), record(t)
	app := runnel.New("shop", runnelotel.Instrument(quiet(srv), s.options()))
	orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 4})
	orders.Process("p", nothing, nil)
	work(t, app)
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for range each {
				if err := orders.Send(t.Context(), order{strconv.Itoa(i), 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	redistest.Eventually(t, "all are processed", func() bool { return len(s.all("process orders")) == senders*each })
	sent := map[trace.SpanID]string{}
	for _, span := range s.want("send orders", senders*each) {
		sent[span.SpanContext().SpanID()] = attributes(span.Attributes())["messaging.message.id"] + attributes(span.Attributes())["messaging.destination.partition.id"]
	}
	for _, span := range s.all("process orders") {
		a := attributes(span.Attributes())
		if id := a["messaging.message.id"] + a["messaging.destination.partition.id"]; sent[span.Parent().SpanID()] != id {
			t.Errorf("the parent of %s sent %q", id, sent[span.Parent().SpanID()])
		}
	}
}

// Each attempt is a span of the same trace, even of a delayed event.
func TestRetriesAndDelaysStayInTheTrace(t *testing.T) {
	srv, s := redistest.Start(t), record(t)
	app := runnel.New("shop", runnelotel.Instrument(quiet(srv), s.options()))
	orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1})
	orders.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, _ order) error {
		if e.Attempt < 3 {
			return errors.New("no ink")
		}
		return nil
	}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 5, MinBackoff: time.Millisecond}})
	work(t, app)
	sent, err := orders.SendAfter(t.Context(), 50*time.Millisecond, order{"ada", 1})
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "there were three attempts", func() bool { return len(s.all("process orders")) == 3 })
	wantAttributes(t, s.one("send orders"), map[string]string{"messaging.message.id": sent[0].ID, "runnel.sent": "1"})
	for i, span := range s.want("process orders", 3) {
		wantChild(t, span, s.one("send orders"))
		wantAttributes(t, span, map[string]string{"runnel.attempt": []string{"1", "2", "3"}[i]})
		if i < 2 {
			wantStatus(t, span, "no ink", "*errors.errorString")
		} else {
			wantStatus(t, span, "", "")
		}
	}
}
