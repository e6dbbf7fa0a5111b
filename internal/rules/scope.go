package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Scope is the part of an app that a rule covers: the app, a stream, a processor, or
// one of a processor's partitions. The zero Scope covers nothing.
type Scope struct {
	level             level
	stream, processor string
	partition         int
}

type level int

const (
	app level = iota + 1
	stream
	processor
	partition
)

// App is everything of the app.
func App() Scope { return Scope{level: app} }

// Stream is all processors of a stream.
func Stream(name string) Scope { return Scope{level: stream, stream: name} }

// Processor is a processor in all of its partitions.
func Processor(streamName, name string) Scope {
	return Scope{level: processor, stream: streamName, processor: name}
}

// Partition is one partition of a processor.
func Partition(streamName, name string, n int) Scope {
	return Scope{level: partition, stream: streamName, processor: name, partition: n}
}

// String is the scope as it is stored: app, stream:orders,
// processor:orders/printer, or partition:orders/printer/3.
func (s Scope) String() string {
	switch s.level {
	case app:
		return "app"
	case stream:
		return "stream:" + s.stream
	case processor:
		return "processor:" + s.stream + "/" + s.processor
	case partition:
		return fmt.Sprintf("partition:%s/%s/%d", s.stream, s.processor, s.partition)
	}
	return "none"
}

// ParseScope is the inverse of String.
func ParseScope(text string) (Scope, error) {
	if text == "app" {
		return App(), nil
	}
	kind, rest, _ := strings.Cut(text, ":")
	names := strings.Split(rest, "/")
	if slices.Contains(names, "") {
		return Scope{}, fmt.Errorf("scope %q: an empty name", text)
	}
	switch {
	case kind == "stream" && len(names) == 1:
		return Stream(names[0]), nil
	case kind == "processor" && len(names) == 2:
		return Processor(names[0], names[1]), nil
	case kind == "partition" && len(names) == 3:
		n, err := strconv.Atoi(names[2])
		if err == nil && n >= 0 && strconv.Itoa(n) == names[2] {
			return Partition(names[0], names[1], n), nil
		}
	}
	return Scope{}, fmt.Errorf("scope %q is neither app, stream:…, processor:…/… nor partition:…/…/…", text)
}

// Covers reports whether the scope includes a partition of a processor.
func (s Scope) Covers(streamName, name string, n int) bool {
	return s.level != 0 && s.Includes(streamName, name) && (s.level < partition || s.partition == n)
}

// Includes reports whether the scope covers a processor or one of its partitions.
func (s Scope) Includes(streamName, name string) bool {
	return s.level != 0 && (s.level < stream || s.stream == streamName) && (s.level < processor || s.processor == name)
}

// StreamName is the stream of the scope, "" for the app.
func (s Scope) StreamName() string { return s.stream }

// ProcessorName is the processor of the scope, "" for an app or a stream.
func (s Scope) ProcessorName() string { return s.processor }

// PartitionNumber is the partition of the scope; ok is false if the scope is wider.
func (s Scope) PartitionNumber() (n int, ok bool) { return s.partition, s.level == partition }

// Contains reports whether the scope covers everything that another one does.
func (s Scope) Contains(other Scope) bool {
	return s.level != 0 && s.level <= other.level && (s.level < stream || s.stream == other.stream) &&
		(s.level < processor || s.processor == other.processor) && (s.level < partition || s.partition == other.partition)
}

// Check returns what is wrong with the scope.
func (s Scope) Check() error {
	switch {
	case s.level == 0:
		return errors.New("no scope: say what it is about")
	case s.level >= stream && !dotted.MatchString(s.stream):
		return fmt.Errorf("%q is no name of a stream", s.stream)
	case s.level >= processor && !plain.MatchString(s.processor):
		return fmt.Errorf("%q is no name of a processor", s.processor)
	case s.level == partition && s.partition < 0:
		return fmt.Errorf("partition %d is negative", s.partition)
	}
	return nil
}

var (
	plain  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	dotted = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)
