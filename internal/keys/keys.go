// Package keys names every Redis key of the framework; nothing else builds one.
//
// A standalone name reads `__strm:example.orders.3`. A cluster name carries a hash tag,
// `__strm:{example.3}.orders`: the tag of partition 3 is the same for every stream of the
// app, so that co-partitioned streams share slots, and keys outside of partitions carry
// the tag of the app, `{example}`.
//
// Names cannot collide: an app, a processor and an executor ID have no dot, and
// where a stream's name, which may have dots, stands between two of them, both
// of its neighbours are free of dots.
package keys

import (
	"strconv"
	"strings"
)

// Layouts are ways to name keys, as they stand in the metadata.
const (
	Standalone = "standalone" // plain names
	Cluster    = "cluster"    // names with hash tags
)

// Keys names the keys of one app. The zero value names nothing.
type Keys struct {
	App    string
	Layout string // Standalone or Cluster
}

// Partition is the Redis stream that holds partition n of a stream.
func (k Keys) Partition(stream string, n int) string { return k.partitioned("strm", n, stream) }

// Once holds for a while the result of an ID that was sent to partition n of a stream. An
// ID may be any text; the colon ends the name of the stream, which has none.
func (k Keys) Once(stream string, n int, id string) string {
	return k.partitioned("id", n, stream) + ":" + id
}

// A DueQueue names the keys of a due queue; see internal/delayqueue.
type DueQueue struct{ Due, Versions, Data, Sequence string }

// Delayed are the keys of the delayed events of partition n of a stream.
func (k Keys) Delayed(stream string, n int) DueQueue {
	return DueQueue{
		Due: k.partitioned("due", n, stream), Versions: k.partitioned("duever", n, stream),
		Data: k.partitioned("duedata", n, stream), Sequence: k.partitioned("dueseq", n, stream),
	}
}

// Lock is the lock of a partition for one processor.
func (k Keys) Lock(stream, processor string, n int) string {
	return k.partitioned("lock", n, stream, processor)
}

// Ownership is the hash of a partition's epoch, ownership and checkpoint.
func (k Keys) Ownership(stream, processor string, n int) string {
	return k.partitioned("own", n, stream, processor)
}

// Parked is the hash of a partition's parked events: entry ID to fields.
func (k Keys) Parked(stream, processor string, n int) string {
	return k.partitioned("parked", n, stream, processor)
}

// Retry is the hash of the states of parked events: entry ID to JSON.
func (k Keys) Retry(stream, processor string, n int) string {
	return k.partitioned("retry", n, stream, processor)
}

// Dead is the stream of a partition's dead letters.
func (k Keys) Dead(stream, processor string, n int) string {
	return k.partitioned("dead", n, stream, processor)
}

// Membership is the JSON value with the members of a processor.
func (k Keys) Membership(stream, processor string) string {
	return k.shared("memb", stream, processor)
}

// Control is the control stream of a processor.
func (k Keys) Control(stream, processor string) string { return k.shared("ctrl", stream, processor) }

// AppControl is the control stream of the app as a whole.
func (k Keys) AppControl() string { return k.shared("ctrl") }

// Rules is the hash of the app's pauses, and of copies of the blocks.
func (k Keys) Rules() string { return k.shared("rules") }

// Blocks is the hash of the app's blocks.
func (k Keys) Blocks() string { return k.shared("block") }

// Audit is the stream of the actions of operators from the dashboard.
func (k Keys) Audit() string { return k.shared("audit") }

// Tasks is the hash with the last due times of the app's durable tasks.
func (k Keys) Tasks() string { return k.shared("task") }

// AdminLock protects changes of a processor's membership.
func (k Keys) AdminLock(stream, processor string) string {
	return k.shared("lock", stream, processor, "admin")
}

// Beat is the heartbeat of an executor.
func (k Keys) Beat(stream, processor, executor string) string {
	return k.shared("beat", stream, processor, executor)
}

// Leader is the leader's lock.
func (k Keys) Leader() string { return k.shared("leader") }

// OldLeader is the leader's lock of older versions, and of Python's runnel.
func (k Keys) OldLeader() string { return k.shared("lead") }

// Meta is the JSON value with the metadata of a stream.
func (k Keys) Meta(stream string) string { return k.shared("meta", stream) }

// Streams is the hash that has a field for each of the app's streams.
func (k Keys) Streams() string { return k.shared("meta") }

// Other names the keys of the app under the other layout.
func (k Keys) Other() Keys {
	if k.Layout == Cluster {
		return Keys{k.App, Standalone}
	}
	return Keys{k.App, Cluster}
}

// Pattern is a glob, as rules of ACL and SCAN have them, that matches one of the app's
// keys and all others of its kind, and no key of another app.
func (k Keys) Pattern(key string) string {
	kind, rest, _ := strings.Cut(key, ":")
	if app, _, ok := strings.Cut(rest, "."); ok {
		return kind + ":" + app + ".*"
	}
	return key
}

func (k Keys) partitioned(kind string, n int, names ...string) string {
	rest := strings.Join(names, ".")
	if k.Layout == Cluster {
		return "__" + kind + ":{" + k.App + "." + strconv.Itoa(n) + "}." + rest
	}
	return "__" + kind + ":" + k.App + "." + rest + "." + strconv.Itoa(n)
}

func (k Keys) shared(kind string, names ...string) string {
	app := k.App
	if k.Layout == Cluster {
		app = "{" + app + "}"
	}
	return "__" + kind + ":" + strings.Join(append([]string{app}, names...), ".")
}
