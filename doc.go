// Package runnel processes streams of events on Redis: partitioned, in order per
// key, at least once.
//
// A Stream of T has partitions, which are Redis streams; the key of a record
// chooses one. A processor is a function that ranges over the events of one
// partition. Workers, as many processes as one likes, share out the partitions,
// and take over those of a worker that died.
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
// # Map of the code
//
//	app.go          App, New, Run            options.go, env.go   settings
//	stream.go       Stream[T]                send.go, sendhook.go key, partition, append
//	processor.go    Process, policies        consume.go, batch.go the loop, middleware and ack
//	retry.go        Retry, Dead, Drop
//	events.go       Events[T], Batches[T]    event.go             Event, Batch, Handler, Middleware
//	codec*.go       MsgPack, JSON, Fields    compress.go          Gzip, Zstd, LZ4
//	partitioner*.go from key to partition    task.go              Task, Every, Cron
//	rebalance       who gets which partition, and the protocol of a member
//	internal/worker the goroutines of a worker; internal/rstream its commands and scripts
//
// docs/design.md in the repository says how it works and why.
package runnel
