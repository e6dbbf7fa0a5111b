package webhook

import iwebhook "github.com/runnel-go/runnel/internal/webhook"

// Calls returns what is in Redis of a bus.
func (b *Bus) Calls() *iwebhook.Bus {
	if err := b.begin(); err != nil {
		panic(err)
	}
	return b.calls
}

// PartitionOf returns the delivery partition of a subscriber.
func (b *Bus) PartitionOf(subscriber string) int {
	b.Calls()
	return b.partition(subscriber)
}
