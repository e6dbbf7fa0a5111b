package runnel

import (
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// Durability is how many replicas must have confirmed a write before it counts as
// done. Redis replicates asynchronously: what they did not confirm is lost when one
// of them becomes the master. It costs a round trip between Redis and its replicas,
// within the request. The zero value waits for none, and costs nothing.
//
// Three kinds of writes wait for replicas: what Send appends, the ownership of a partition
// when it begins, and the claim of a due time of a durable task. No function is called before
// its ownership or claim is replicated. A replica confirms all that came before as well. Acks are not waited for: what a failover loses
// of them is processed again. docs/reliability.md says what may be lost, and how
// many replicas to choose.
type Durability struct {
	// MinReplicas is how many replicas must confirm. RUNNEL_MIN_REPLICAS; default 0.
	// While fewer are connected, sends fail and no partition gets a new owner; those
	// that are owned are processed on.
	MinReplicas int
	// Timeout is how long that may take; a deadline of the context may be sooner.
	// It should be shorter than Lease. RUNNEL_REPLICATION_TIMEOUT; default 1 s, 1 ms
	// to 30 s.
	Timeout time.Duration
}

// ErrNotReplicated is the error of a record that is in and was not confirmed by
// Durability.MinReplicas replicas within its Timeout: it is there to be processed, and
// a failover may lose it. Sent with the same Outgoing.DedupID again it is appended only
// if it was lost, within StreamOptions.DedupWindow; nil then says that it is replicated.
// Sent again without an ID it is there twice if it was not lost.
var ErrNotReplicated = redisconn.ErrNotReplicated

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
