// A send returns where each record is, or an error that says which are in, which are not, and of
// which it is unknown.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// byNumber sends item 10 to partition 1, 27 to 2.
var byNumber = &runnel.Partitioner{Name: "tens", Func: func(key string, _ int) int { return int(key[0] - '0') }}

func tens(app *runnel.App) *runnel.Stream[item] {
	return runnel.NewStream(app, "items", func(i item) string { return fmt.Sprintf("%02d", i.N) },
		&runnel.StreamOptions{Partitions: 4, Partitioner: byNumber})
}

// onServer is an app with the stream of tens on a server of its own.
func onServer(t *testing.T) (*runnel.Stream[item], *redis.Client) {
	srv := redistest.Start(t)
	app := runnel.New("contract", &runnel.Options{RedisURL: srv.URL()})
	t.Cleanup(func() { app.Close() })
	return tens(app), srv.Client(t)
}

func TestSendEventsReturnsWhereEachRecordIs(t *testing.T) {
	s, rdb := onServer(t)
	numbers := []int{10, 20, 11, 30, 21, 12}
	var out []runnel.Outgoing[item]
	for _, n := range numbers {
		out = append(out, runnel.Outgoing[item]{Record: item{n}})
	}
	sent, err := s.SendEvents(t.Context(), out...)
	if err != nil || len(sent) != len(out) {
		t.Fatalf("%v, %v", sent, err)
	}
	last := map[int]string{}
	for i, n := range numbers {
		p := sent[i].Partition
		found := rdb.XRange(t.Context(), fmt.Sprint("__strm:contract.items.", p), sent[i].ID, sent[i].ID).Val()
		var got item
		if p != n/10 || len(found) != 1 || codec.MsgPack.Decode([]byte(found[0].Values["data"].(string)), &got) != nil || got.N != n {
			t.Errorf("record %d: %+v holds %v", i, sent[i], found)
		}
		if sent[i].Duplicate || sent[i].ID <= last[p] {
			t.Errorf("record %d: %+v, the one before it in the partition is %s", i, sent[i], last[p])
		}
		last[p] = sent[i].ID
	}
	if sent, err := s.SendEvents(t.Context()); sent != nil || err != nil {
		t.Errorf("nothing: %v, %v", sent, err)
	}
}

// The first call writes the metadata; a later one costs a request to the
// partition and nothing more.
func TestTheFirstSendWritesTheMetadata(t *testing.T) {
	srv := redistest.Start(t)
	counter := redistest.CountingDialer(nil)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Dialer: counter.Dial})
	defer rdb.Close()
	app := runnel.New("contract", &runnel.Options{Redis: rdb})
	defer app.Close()
	s := tens(app)
	if n := counter.Total(); n != 0 {
		t.Errorf("%d requests before the first use", n)
	}
	if err := s.Send(t.Context(), items(10)...); err != nil {
		t.Fatal(err)
	}
	if n := srv.Client(t).Exists(t.Context(), "__meta:contract.items").Val(); n != 1 {
		t.Error("there is no metadata")
	}
	counter.Reset()
	if err := s.Send(t.Context(), items(11)...); err != nil {
		t.Fatal(err)
	}
	if got := counter.ByName(); counter.Total() != 1 || got["EVALSHA"] != 1 {
		t.Errorf("the second Send cost %v", got)
	}
}

func TestARecordThatCannotBeEncodedFailsTheCallBeforeAnythingIsSent(t *testing.T) {
	srv := redistest.Start(t)
	app := runnel.New("contract", &runnel.Options{RedisURL: srv.URL()})
	defer app.Close()
	s := runnel.NewStream(app, "things", func(any) string { return "" }, &runnel.StreamOptions{Codec: codec.JSON})
	err := s.Send(t.Context(), 1, make(chan int), 3)
	if err == nil || !strings.Contains(err.Error(), "stream things: encode record 1: ") {
		t.Errorf("Send: %v", err)
	}
	wild := runnel.NewStream(app, "wild", func(any) string { return "k" }, &runnel.StreamOptions{
		Partitioner: &runnel.Partitioner{Name: "wild", Func: func(_ string, n int) int { return n }}})
	if err = wild.Send(t.Context(), 1); err == nil || !strings.Contains(err.Error(), `partitioner wild: partition 16 of 16 for key "k"`) {
		t.Errorf("Send: %v", err)
	}
	if keys := srv.Client(t).Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("something was sent: %q", keys)
	}
}

// answers answer each Append by its partition.
type answers struct {
	appview.Sender
	by map[int]store.Appended
}

func (a *answers) EnsureMeta(_ context.Context, _ string, m store.Meta) (store.Meta, error) {
	return m, nil
}

func (a *answers) Append(_ context.Context, as []store.Append) []store.Appended {
	out := make([]store.Appended, len(as))
	for i := range as {
		out[i] = a.by[as[i].Partition]
	}
	return out
}

func TestASendErrorSaysWhatIsInOutOrUnknown(t *testing.T) {
	app := runnel.New("contract", nil)
	s := tens(app)
	broken := errors.New("connection lost")
	appview.Of(app).Intercept(&answers{by: map[int]store.Appended{
		1: {IDs: []string{"1-0", "2-0"}},
		2: {IDs: []string{"1-0"}, Err: errBad},
		3: {IDs: []string{"1-0"}, Err: broken, Unknown: true},
	}})
	var out []runnel.Outgoing[item]
	for _, n := range []int{30, 20, 10, 31, 21, 11, 22, 32} {
		out = append(out, runnel.Outgoing[item]{Record: item{n}})
	}
	sent, err := s.SendEvents(t.Context(), out...)
	var se *runnel.SendError
	if !errors.As(err, &se) || se.Stream != "items" {
		t.Fatalf("got %v", err)
	}
	want := []runnel.SendFailure{
		{Index: 3, Partition: 3, Err: broken, Unknown: true},
		{Index: 4, Partition: 2, Err: errBad},
		{Index: 6, Partition: 2, Err: runnel.ErrNotTried},
		{Index: 7, Partition: 3, Err: broken, Unknown: true},
	}
	if !slices.Equal(se.Failed, want) {
		t.Errorf("failed %+v, want %+v", se.Failed, want)
	}
	in := []runnel.Sent{{Partition: 3, ID: "1-0"}, {Partition: 2, ID: "1-0"}, {Partition: 1, ID: "1-0"}, {}, {}, {Partition: 1, ID: "2-0"}, {}, {}}
	if !slices.Equal(sent, in) {
		t.Errorf("sent %+v, want %+v", sent, in)
	}
	if !errors.Is(err, errBad) || !errors.Is(err, broken) || !errors.Is(err, runnel.ErrNotTried) {
		t.Errorf("the chain of %v lacks some", err)
	}
	if want := "stream items: send to partition 3: connection lost (record 3; 2 not sent, 2 unknown)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// What fails in one partition stops nothing in the others, and nothing later of
// the call is appended to it.
func TestAfterAFailureNothingLaterGoesToThatPartition(t *testing.T) {
	s, rdb := onServer(t)
	if err := rdb.Set(t.Context(), "__strm:contract.items.2", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var se *runnel.SendError
	if err := s.Send(t.Context(), items(20, 10, 21, 11)...); !errors.As(err, &se) || len(se.Failed) != 2 {
		t.Fatalf("Send: %v", err)
	}
	first, second := se.Failed[0], se.Failed[1]
	if first.Index != 0 || first.Unknown || !strings.Contains(first.Err.Error(), "WRONGTYPE") ||
		second.Index != 2 || second.Unknown || !errors.Is(second.Err, runnel.ErrNotTried) {
		t.Errorf("failed %+v", se.Failed)
	}
	if n := rdb.XLen(t.Context(), "__strm:contract.items.1").Val(); n != 2 {
		t.Errorf("%d records are in partition 1", n)
	}
}

type order struct {
	Customer string `json:"customer"`
	Seq      int    `json:"seq"`
}

func TestSendToHandledEvent(t *testing.T) {
	srv := redistest.Start(t)
	app := runnel.New("shop", &runnel.Options{RedisURL: srv.URL()})
	defer app.Close()
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Customer }, nil)
	var mu sync.Mutex
	got := map[string][]int{}
	n := 0
	ctx, cancel := context.WithCancel(t.Context())
	orders.Process("printer", func(ctx context.Context, events *runnel.Events[order]) error {
		for o := range events.Records() {
			mu.Lock()
			got[o.Customer] = append(got[o.Customer], o.Seq)
			if n++; n == 5000 {
				cancel()
			}
			mu.Unlock()
		}
		return nil
	}, nil)
	var recs []order
	for i := range 5000 {
		recs = append(recs, order{fmt.Sprint("c", i%50), i})
	}
	if err := orders.Send(t.Context(), recs...); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := app.Run(ctx); err != nil {
		t.Fatal(err)
	}
	t.Log("took", time.Since(began))
	for c, seqs := range got {
		for i := 1; i < len(seqs); i++ {
			if seqs[i] <= seqs[i-1] {
				t.Errorf("%s: %d after %d", c, seqs[i], seqs[i-1])
			}
		}
	}
	rdb := srv.Client(t)
	for p := range 16 {
		key := fmt.Sprint("__strm:shop.orders.", p)
		for _, g := range rdb.XInfoGroups(t.Context(), key).Val() {
			if g.Pending != 0 || g.Lag != 0 {
				t.Errorf("%s: group %s has pending %d, lag %d after a clean drain", key, g.Name, g.Pending, g.Lag)
			}
		}
	}
}
