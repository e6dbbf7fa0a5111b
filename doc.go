// Package runnel processes streams of events on Redis: partitioned, in order per
// key, at least once.
//
// A Stream of T has partitions, which are Redis streams; the key of a record chooses one.
// A processor is a function that ranges over the events of one partition. Any number of
// worker processes share the partitions, and take over those of a worker that died.
//
//	app := runnel.New("shop", nil)
//	orders := runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)
//
//	orders.Process("printer", func(owned context.Context, events *runnel.Events[Order]) error {
//		total := map[string]float64{} // this partition's state, for as long as we own it
//		for order := range events.Records() {
//			total[order.Customer] += order.Amount
//		} // acked here, when the loop comes round
//		return nil
//	}, nil)
//
//	err := app.Run(ctx) // a worker, until ctx ends
//
// Package cli makes a command line of an app; package runneltest tests
// processors without Redis; package middleware has retries, dead letters and
// more.
//
// # Guarantees
//
//   - The events of a partition are processed one at a time, in the order in which
//     they were appended; events of one key are in one partition.
//   - An event whose Send returned nil is processed at least once by every
//     processor, as long as Redis keeps it. After a clean handover nothing is
//     repeated; after a crash, what was begun and not yet acked.
//   - A worker that lost a partition can neither read nor ack there, whatever its
//     clock says: the server refuses it. Its function's context ends with ErrLost.
//     For writes to other systems, Event.Epoch is a fencing token.
//   - Nothing is trimmed before every processor has acked it.
//
// # Errors
//
// An error of the function, a panic in it, and a record that cannot be decoded
// pass through the middleware. With a Retry the event is then attempted again,
// and is a dead letter after its last attempt; without one the Policy decides:
// Halt stops the worker, Quarantine stops the partition, Ignore goes on. Mistakes of registration panic;
// everything else is an error that names stream, partition, processor or setting.
//
// # Where to begin
//
//   - cli.Run makes a program of an app: its worker command needs Redis 7.0 or newer, or --dev.
//   - In a loop use Events.Context for whatever takes a context.
//   - Send for events of now, SendAfter and SendAt for later ones, SendEvents for keys and headers
//     of their own and for what may be sent twice (Outgoing.DedupID, Event.SendID).
//   - ProcessorOptions.Retry for what fails; middleware.RetryInPlace for hiccups of milliseconds.
//   - Package runneltest to test all of it, without Redis and in fake time.
//
// In the repository DESIGN.md leads into the code, and docs/design.md says how it works and why.
package runnel
