package runnel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

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
