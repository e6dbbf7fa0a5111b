// Package webhook is an event bus over HTTP: events of topics are posted to subscribers in batches, in order and at least once.
//
// By file:
//
//	bus.go         Options, New
//	publish.go     Publish; stream.go: topics as streams, for processors in Go
//	topics.go      topics, who publishes to them
//	subscribe.go   subscriptions, pauses, secrets
//	deliver.go     the processor of a delivery partition
//	owner.go       its owner: a loop over what other goroutines post to its mailbox.go
//	subscriber.go  a subscriber as the owner knows it; send.go: its batches and their answers
//	saver.go       states are stored, before a request begins and behind its answer
//	feed.go        what was published, read once for all subscribers of a worker
//	holds.go       what subscribers still need of the logs
//	memory.go      what the leader drops if memory is short
//	places.go      how many requests there are at once
//	counts.go      metrics
//	commands.go    commands that change something; serve.go: those that serve and listen
//	receive.go     Receive, Batch, Event: the receiver's end
//	sign.go        signatures after Standard Webhooks 1.0.0, and their secrets
//	request.go     one exchange with a receiver, and what became of it, in words that show no secret
//	address.go     which callbacks and addresses are allowed
//	seal.go        secrets as they are stored
//	server.go      the HTTP API: paths, methods, panics, audit, refusals; auth.go: who asks
//	routes.go      what it does; body.go: what it reads
//	tokens.go      its tokens; recent.go: what a process has looked up a moment ago
//	subscribers.go subscribers as they are now, also over HTTP
package webhook
