package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// slow is a database to which the first write of worker a takes ten seconds, for which the worker
// stands still: twice its lease.
type slow struct {
	table
	begun   atomic.Bool
	refused atomic.Int64
}

func (s *slow) write(ctx context.Context, shipment Shipment, epoch int64) error {
	w := runneltest.WorkerOf(ctx)
	if w.Name() == "a" && !s.begun.Swap(true) {
		w.Freeze(10 * time.Second)
	}
	// The write was sent before, and arrives: the end of ctx does not stop it.
	if err := w.Gate(); err != nil {
		return err
	}
	err := s.table.write(ctx, shipment, epoch)
	if errors.Is(err, errFenced) {
		s.refused.Add(1)
	}
	return err
}

func (s *slow) status(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[id].status
}

func TestLateWriteOfAFormerOwnerIsRefused(t *testing.T) {
	db := &slow{table: table{rows: map[string]row{}}}
	build := func(o *runnel.Options) *runnel.App {
		app := runnel.New("depot", o)
		register(app, db)
		return app
	}
	runneltest.Sim(t, build, func(c *runneltest.Cluster) {
		app := runnel.New("depot", c.Options("sender"))
		defer app.Close()
		if err := register(app, db).Send(c.Context(), Shipment{"7", "packed"}, Shipment{"7", "sent"}, Shipment{"7", "delivered"}); err != nil {
			t.Fatal(err)
		}
		c.Start("a")
		c.Wait(db.begun.Load)
		c.Start("b")
		c.Wait(func() bool { return db.status("7") == "delivered" })
		if n := db.refused.Load(); n != 0 {
			t.Errorf("%d writes were refused before the late one", n)
		}
		c.Wait(func() bool { return db.refused.Load() == 1 }) // "packed", from a
		c.Sleep(time.Minute)
		if got := db.status("7"); got != "delivered" || db.refused.Load() != 1 {
			t.Errorf("the shipment is %q after %d refused writes, want delivered after one", got, db.refused.Load())
		}
	})
}
