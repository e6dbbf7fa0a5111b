package store

import (
	"cmp"
	"fmt"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
)

// A streamKind describes the streams of an extension.
type streamKind struct {
	called    string // with its article
	instead   string // what to do instead of sending events
	internal  bool   // lists hide such streams, and users' processors have no place there
	extension string // whose keys such a stream has beside the core's; see keys.Kind
}

var streamKinds = map[string]streamKind{
	"set":      {"a set", `store entities with Set.Put, visit them with "stage visit"`, true, "stage"},
	"schedule": {"a scheduler", `start runs with Scheduler.Activate or "schedule activate"`, true, "schedule"},
	"bus":      {"a bus", `publish to one of its topics with Bus.Publish or "webhook publish"`, true, "webhook"},
	"topic":    {"a topic", `publish with Bus.Publish or "webhook publish"`, false, "webhook"},
}

// InternalKind reports whether lists hide streams of a kind: only their extension understands the
// entries.
func InternalKind(kind string) bool { return streamKinds[kind].internal }

// CalledKind returns what a stream of a kind is, with its article.
func CalledKind(kind string) string {
	if kind == "" {
		return "an ordinary stream"
	}
	return cmp.Or(streamKinds[kind].called, fmt.Sprintf("of the kind %q, which this release does not know", kind))
}

// Extension returns the extension that has keys of its own for the stream, "" for none.
func (m Meta) Extension() string { return streamKinds[m.Kind].extension }

// Owners returns who has keys of a kind in each partition of the stream: processors, tables, or of an extension
// the parts; "" where all share one key, nothing where there is none.
func (m Meta) Owners(kind keys.Kind) []string {
	switch {
	case kind.Per == keys.PerTable:
		return m.tableNames()
	case kind.Extension == Tables && kind.Per == keys.PerOwner:
		return m.Atomic
	case kind.Extension != "" && kind.Extension != m.Extension():
		return nil
	case kind.Per == keys.PerPartition:
		return []string{""}
	case kind.Per != keys.PerOwner:
		return nil
	case kind.Extension == "":
		return m.Processors
	}
	return m.Parts
}

// version returns the version of new metadata.
func (m Meta) version() int {
	if m.Kind != "" {
		return KindVersion
	}
	return MetaVersion
}

// CheckSend returns a *SendKindError unless events can be sent to the stream.
func (m Meta) CheckSend(stream string) error {
	if m.Kind == "" {
		return nil
	}
	return &SendKindError{stream, m.Kind}
}

// checkAppend says why who takes the stream for one of another kind cannot append to it.
func (m Meta) checkAppend(stream, kind string) error {
	if kind == "" {
		return m.CheckSend(stream)
	}
	return m.checkKind(stream, Meta{Partitions: 1, Kind: kind})
}

// A SendKindError is returned by sends to a stream of an extension, before anything is written.
type SendKindError struct{ Stream, Kind string }

// Error says what the stream is, and what to do instead.
func (e *SendKindError) Error() string {
	return fmt.Sprintf("stream %s is %s: %s", e.Stream, CalledKind(e.Kind), cmp.Or(streamKinds[e.Kind].instead, "send with a release that does"))
}

// kindSetting is the field of a MetaConflictError about the kinds of streams.
const kindSetting = "kind"

// checkKind compares the stored kind of a stream with that of a declaration, which has partitions.
func (m Meta) checkKind(stream string, own Meta) error {
	if own.Partitions > 0 && own.Kind != m.Kind {
		return &MetaConflictError{Stream: stream, Field: kindSetting, Stored: m.Kind, Own: own.Kind}
	}
	return nil
}

func whyKind(stream, stored, own string) string {
	return fmt.Sprintf("stream %s is %s, and for this process it is %s: give one of the two another name; %s", stream, CalledKind(stored), CalledKind(own), help.StreamSettings)
}
