// Package webhook is an event bus over HTTP: events of topics are posted to subscribers in batches, in order and at least once.
//
// By file:
//
//	receive.go  Receive, Batch, Event: the receiver's end
//	sign.go     signatures after Standard Webhooks 1.0.0, and their secrets
//	request.go  one exchange with a receiver, and what its answer means
//	trouble.go  what went wrong in an exchange, in words that show no secret
//	address.go  which callbacks and addresses are allowed
//	seal.go     secrets as they are stored
package webhook
