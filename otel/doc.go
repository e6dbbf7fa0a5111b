// Package runnelotel makes OpenTelemetry traces of sending and processing.
//
//	app := runnel.New("shop", runnelotel.Instrument(&runnel.Options{}, nil))
//
// A call of Send is a span of the kind producer, "send orders". Its context travels in the headers of
// the events, in the form of the propagator. An iteration of a processor's loop is a span of the kind
// consumer, "process orders": for one event a child of the span that sent it, for a batch a span with
// links to those. The context of the iteration carries the span: Events.Context in a loop, the
// argument ctx in Each and EachBatch. So one trace shows an event's way through all streams.
//
// A span of an iteration covers the middleware inside and the function, but neither the wait for
// events nor the ack. Each attempt of a runnel.Retry is a span of the same trace. All calls of
// middleware.RetryInPlace, which stands inside, are one span.
//
// The program chooses exporter, sampler and resource: see docs/operating.md in the repository of
// Runnel.
//
// # Attributes
//
// Attributes follow the semantic conventions for messaging: messaging.system is "runnel", the
// destination is the stream, the consumer group the processor, the message's ID the entry ID.
// Runnel adds
//
//	runnel.epoch        of the partition's ownership
//	runnel.attempt      number of the attempt, the largest of a batch
//	runnel.redelivered  true if an earlier owner may have begun an event, else left out
//	runnel.failed       of a failed batch: how many events failed
//	runnel.sent         of a call of Send: how many records were appended or delayed
//	runnel.duplicates   … had been sent before under their ID; 0 is left out
//	runnel.refused      … were not sent; 0 is left out
//	runnel.unknown      … may have been appended; 0 is left out
//
// The attribute error.type is panic, decode, timeout, lost, released, shutdown, not_consumed,
// stream_full, canceled, deadline_exceeded, or else the Go type of the error, without its wrappers.
package runnelotel
