// Outbox carries what happens to shipments from a stream to a database, which refuses the late
// write of a worker that has lost the partition: the epoch is the fencing token.
//
//	go run ./examples/outbox worker --dev
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Shipment struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// errFenced is what a former owner gets, once a later one has written the row.
var errFenced = errors.New("a later owner has written it")

// A database holds the status of each shipment.
type database interface {
	// write sets the status of a shipment. It returns errFenced where the row was written under
	// a larger epoch. In SQL, where no affected row means errFenced:
	//
	//	INSERT INTO shipments (id, status, epoch) VALUES ($1, $2, $3)
	//	ON CONFLICT (id) DO UPDATE SET status = $2, epoch = $3
	//	 WHERE shipments.epoch <= $3
	write(ctx context.Context, s Shipment, epoch int64) error
}

// register adds the stream of shipments to app, and the processor that writes them to db.
func register(app *runnel.App, db database) *runnel.Stream[Shipment] {
	shipments := runnel.NewStream(app, "shipments", func(s Shipment) string { return s.ID }, nil)
	shipments.Process("outbox", func(owned context.Context, events *runnel.Events[Shipment]) error {
		for event, shipment := range events.All() {
			if err := db.write(events.Context(), shipment, event.Epoch); err != nil {
				return fmt.Errorf("shipment %s: %w", shipment.ID, err)
			}
			fmt.Printf("shipment %s is %s\n", shipment.ID, shipment.Status)
		}
		return nil
	}, &runnel.ProcessorOptions{Lease: 5 * time.Second, Retry: &runnel.Retry{Max: 10}})
	return shipments
}

// A row is one of the table.
type row struct {
	status string
	epoch  int64
}

// table is a database in memory: one of SQL does the same, and lasts.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

func (t *table) write(_ context.Context, s Shipment, epoch int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[s.ID].epoch > epoch {
		return errFenced
	}
	t.rows[s.ID] = row{s.Status, epoch}
	return nil
}

func main() {
	app := runnel.New("depot", nil)
	shipments := register(app, &table{rows: map[string]row{}})
	app.Every("depot", time.Second, func(ctx context.Context) error {
		id := time.Now().Format("15:04:05")
		return shipments.Send(ctx, Shipment{id, "packed"}, Shipment{id, "sent"})
	}, nil)
	cli.Run(app)
}
