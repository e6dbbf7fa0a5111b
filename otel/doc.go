// Package runnelotel makes OpenTelemetry traces of what is sent and processed.
//
//	app := runnel.New("shop", runnelotel.Instrument(&runnel.Options{}, nil))
//
// A call of Send is a span of the kind producer, "send orders". Its context travels
// in the headers of the events, in the form of the propagator. An iteration of a
// processor's loop is a span of the kind consumer, "process orders": over one event
// a child of the span that sent it, over a batch a span with a link to each of those.
// What the function does with the context of its iteration belongs to that span:
// Events.Context in a loop, the argument ctx in Each and EachBatch. So one trace
// shows an event's way through all streams.
//
// A span of an iteration covers the middleware inside and the function, and neither
// the wait for events nor the ack. An event that a runnel.Retry attempts again has a
// span for each attempt, in the same trace; middleware.RetryInPlace stands inside, so all its
// calls are one span.
//
// The exporter, its sampler and its resource are the program's: see
// docs/operating.md in the repository of Runnel.
//
// # Attributes
//
// Attributes are those of the semantic conventions for messaging where these have one:
// messaging.system is "runnel", the destination is the stream, the consumer group the
// processor, the message's ID the entry ID. Runnel adds
//
//	runnel.epoch        of the partition's ownership
//	runnel.attempt      number of the attempt, of a batch the largest
//	runnel.redelivered  true if an earlier owner may have begun an event; else left out
//	runnel.failed       of a batch that failed: how many of its events
//	runnel.sent         of a call of Send: how many records were appended or delayed
//	runnel.duplicates   … had been sent before under their ID; 0 is left out
//	runnel.refused      … were not sent; 0 is left out
//	runnel.unknown      … may have been appended; 0 is left out
//
// The attribute error.type is panic, decode, timeout, lost, released, shutdown,
// not_consumed, stream_full, canceled, deadline_exceeded, or else the type of the
// error in Go, without its wrappers.
package runnelotel
