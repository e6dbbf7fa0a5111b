// Package examples holds one program per feature, and some by what they are for. Each but
// telemetry runs without any set-up:
//
//	go run ./examples/basic worker --dev
//
//	basic        the smallest app: a stream, a processor, a sender
//	batch        many events per iteration
//	handler      a function per event or per batch instead of a loop
//	middleware   around every iteration: one's own, retries, a timeout
//	retry        events that failed are attempted again, in the order of their key
//	deadletter   events that cannot be processed go to a stream of their own
//	delayed      events for later, and taken back before
//	rules        a processor is paused while something is worked on
//	timer        background tasks on every worker, or on the leader only
//	codec        compressed, native Redis fields, and a codec of one's own
//	ownmain      in a main of one's own, with an HTTP server and a shared Redis client
//	listings     entities, and stages that run over each of them until nothing is left to do
//	nightly      jobs at logical times, whose tasks wait for each other
//	webhook      a bus that tells others over HTTP what has changed
//	receiver     the other end of one, which does nothing twice
//	reconcile    the same for entities in a store of one's own
//	layout       an app over several packages
//	testing      a processor, and its tests without Redis
//
// By use, each with a test that shows what it promises:
//
//	totals       a running total of each customer, in a table, which counts each order once
//	dedupe       each payment is passed on once, by its ID
//	sessions     clicks of a user without a longer pause, as one record
//	join         records of two streams that belong together
//	telemetry    the mean of each device, in Redis: it survives crashes, and counts nothing twice
//	outbox       into a database that refuses the late write of a former owner, by the epoch
//	fanout       one event causes several sends, none of them twice
package examples
