package cli

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// An owner owns a partition of orders/printer, and has read its events.
type owner struct {
	t       *testing.T
	c       *store.Client
	place   store.Partition
	tenure  store.Claim
	entries []redisconn.Entry
}

// owners sends n orders, of ada, bob, ada, bob, …, each in a millisecond of its own, which orders
// their IDs over both partitions. It returns the owners of the partitions.
func (s *shop) owners(n int) []*owner {
	s.t.Helper()
	for i := range n {
		record := order{Customer: []string{"ada", "bob"}[i%2], Amount: float64(i)}
		sent, err := s.orders.SendEvents(s.t.Context(), runnel.Outgoing[order]{Record: record})
		if err != nil {
			s.t.Fatal(err)
		}
		eventually(s.t, "the next millisecond", func() bool {
			return s.rdb.Time(s.t.Context()).Val().Truncate(time.Millisecond).After(entryid.Time(sent[0].ID))
		})
	}
	c := s.client()
	meta, err := c.EnsureMeta(s.t.Context(), "orders", metaOf("printer"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all []*owner
	for i := range meta.Partitions {
		o := &owner{t: s.t, c: c, place: c.Partition("orders", "printer", i), tenure: store.Claim{Executor: "aaaaaaaaaaaaaaaa", Number: 1}}
		o.must(c.Lock(s.t.Context(), o.place, o.tenure, time.Hour, 0))
		_, err := c.Takeover(s.t.Context(), o.place, o.tenure, "", 0)
		o.must(err)
		r := c.NewReader()
		defer r.Close()
		got, err := r.Read(s.t.Context(), store.GroupName("printer", o.tenure.Executor), "c", []string{o.place.Log}, n, 0)
		o.must(err)
		if len(got) > 0 {
			o.entries = got[0].Entries
		}
		all = append(all, o)
	}
	return all
}

func (o *owner) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// bury makes dead letters of all events; park parks them, the first in its lane for an hour.
func (o *owner) bury(key, text string) {
	o.t.Helper()
	for _, e := range o.entries {
		o.must(o.c.DeadLetter(o.t.Context(), o.place, o.tenure, store.DeadLetter{
			Entry: e, Key: key, Attempts: 3, First: time.Now(), Last: time.Now(), Error: text, Reason: "failed", Epoch: 7,
		}))
	}
}

func (o *owner) park(key string) {
	o.t.Helper()
	for i, e := range o.entries {
		s := store.RetryState{Lane: "k" + key, Key: key}
		if i == 0 {
			s.Attempts, s.Last, s.Error = 2, time.Now().UnixMilli(), "no\nink"
			s.At = time.Now().Add(time.Hour).UnixMilli()
		}
		o.must(o.c.Park(o.t.Context(), o.place, o.tenure, 0, []store.Parking{{Entry: e, State: s}}))
	}
}

var eventID = entryid.EventID

// two is a shop with the orders of ada in one partition and those of bob in another.
func two(t *testing.T, n int) (s *shop, ada, bob *owner) {
	t.Helper()
	s = newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer", Codec: codec.JSON,
		Partitioner: &runnel.Partitioner{Name: "xxh64", Func: func(key string, n int) int { return int(key[0]-'a') % n }}})
	owners := s.owners(n)
	return s, owners[0], owners[1]
}

// failing declares a processor that fails while broken holds, and passes on its events.
func (s *shop) failing(broken *atomic.Bool, opts *runnel.ProcessorOptions) <-chan string {
	calls := make(chan string, 1000)
	s.orders.Process("printer", runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		calls <- o.Customer
		if broken.Load() {
			return errors.New("no ink")
		}
		return nil
	}), opts)
	return calls
}
