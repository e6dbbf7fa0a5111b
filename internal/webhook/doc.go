// Package webhook is what is in Redis of webhook buses: one .lua per script in lua/, and a typed method for each. By file:
//
//	bus.go          Bus: a bus's keys and scripts
//	topics.go       topics, their publishers; their logs' ends
//	subscribers.go  what subscribers want, and how far they have come: read, changed; pauses
//	save.go         how far they have come is saved; calls of many owners share round trips
//	holders.go      who keeps entries of a topic's log; what is removed
//	tokens.go       tokens of the HTTP API
//
// A subscriber lies in one delivery partition. What it wants is written by anybody, how far it has come by the owner of that
// partition alone; a batch begins under the settings that its owner knows, or not at all.
package webhook
