package runnel

import (
	"fmt"
	"time"
)

// Durability is how many replicas must have confirmed a write before it counts as done.
// Redis replicates asynchronously: a write that a replica did not confirm is lost when
// that replica becomes the master. Waiting costs a round trip between Redis and its
// replicas, within the request. The zero value does not wait, and costs nothing.
//
// Three kinds of writes wait for replicas: what Send appends, the ownership of a
// partition when it begins, and the claim of a due time of a durable task. No function is
// called before its ownership or claim is replicated. A replica that confirms a write has
// all earlier ones as well. Acks do not wait: events whose acks are lost in a failover
// are processed again. docs/reliability.md says what may be lost, and how many replicas
// to choose.
type Durability struct {
	// MinReplicas is how many replicas must confirm. RUNNEL_MIN_REPLICAS; default 0.
	// While fewer are connected, sends fail and no partition gets a new owner; owned
	// partitions are still processed.
	MinReplicas int
	// Timeout is how long the confirmations may take; a deadline of the context may be
	// sooner. It should be shorter than Lease. RUNNEL_REPLICATION_TIMEOUT; default 1 s, 1
	// ms to 30 s.
	Timeout time.Duration
}

// ErrNotReplicated is the error of a record that was appended and not confirmed by
// Durability.MinReplicas replicas within Durability.Timeout. The record will be
// processed, unless a failover loses it. A record sent again with the same
// Outgoing.DedupID, within StreamOptions.DedupWindow, is appended only if the first one
// was lost; a nil error then means that it is replicated. A record sent again without an
// ID is a second event if the first one was not lost.
var ErrNotReplicated error

const (
	maxReplicas               = 1000
	minReplicationTimeout     = time.Millisecond
	maxReplicationTimeout     = 30 * time.Second
	defaultReplicationTimeout = time.Second
)

func (d Durability) check() error {
	switch {
	case d.MinReplicas < 0 || d.MinReplicas > maxReplicas:
		return fmt.Errorf("MinReplicas %d is not between 0 and %d", d.MinReplicas, maxReplicas)
	case d.Timeout != 0 && (d.Timeout < minReplicationTimeout || d.Timeout > maxReplicationTimeout):
		return fmt.Errorf("Timeout %v is not between %v and %v", d.Timeout, minReplicationTimeout, maxReplicationTimeout)
	}
	return nil
}

func parseReplicationTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < minReplicationTimeout || d > maxReplicationTimeout {
		return 0, fmt.Errorf("not a duration between %v and %v", minReplicationTimeout, maxReplicationTimeout)
	}
	return d, nil
}
