package store

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// ExecutorIDLength is the length of every executor ID.
const ExecutorIDLength = 16

// A Claim is one ownership of one partition by one executor.
type Claim struct {
	Executor string // the executor's ID
	Number   uint64
	Expiry   time.Duration // of its lock; stored by Takeover for others to know
	// Reach is how many entries behind the committed position the owner may begin, if it reads by position;
	// 0: by group. Takeover stores it, too, since Redis does not know what was begun, and Refresh does if it has grown.
	Reach int64
}

// LockValue returns what the lock of the partition holds during the ownership.
func (t Claim) LockValue() string {
	const digits = 16
	b := make([]byte, 0, ExecutorIDLength+1+digits)
	b = append(append(b, t.Executor...), ':')
	number := strconv.FormatUint(t.Number, 10)
	b = append(b, "0000000000000000"[:max(digits-len(number), 0)]...)
	return string(append(b, number...))
}

// NewExecutorID returns a random ID of ExecutorIDLength characters a-z and 2-7.
func NewExecutorID() string {
	var b [ExecutorIDLength * 5 / 8]byte
	rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// GroupName returns the name of an executor's consumer group.
func GroupName(processor, executor string) string { return processor + "@" + executor }

// A Partition is a partition as one processor sees it, with its keys.
type Partition struct {
	Stream, Processor string
	Number            int
	Log, Lock, Own    string // the partition's entries, its lock, its ownership hash
	Parked, Retry     string // parked events: their fields, and their states
	Dead              string // dead letters
	Outbox            string // what its commits emitted to other slots, and has not come there
	Due               string // delayed events by due time, shared by the stream's processors
}

// Partition returns a partition as a processor sees it.
func (c *core) Partition(stream, processor string, partition int) Partition {
	return Partition{
		Stream: stream, Processor: processor, Number: partition,
		Log:  c.keys.Partition(stream, partition),
		Lock: c.keys.Lock(stream, processor, partition),
		Own:  c.keys.Ownership(stream, processor, partition),

		Parked: c.keys.Parked(stream, processor, partition),
		Retry:  c.keys.Retry(stream, processor, partition),
		Dead:   c.keys.Dead(stream, processor, partition),
		Outbox: keys.MustKind("out").Key(c.keys, stream, processor, "", partition),
		Due:    c.dueKeys(stream, partition).Due,
	}
}

// Partitions returns some partitions of a stream as a processor sees them.
func (c *core) Partitions(stream, processor string, numbers []int) []Partition {
	places := make([]Partition, len(numbers))
	for i, n := range numbers {
		places[i] = c.Partition(stream, processor, n)
	}
	return places
}

func (p Partition) keys() []string {
	return []string{p.Log, p.Lock, p.Own, p.Parked, p.Retry, p.Dead, p.Due}
}

func (p Partition) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s partition %d: processor %s: %s: %w", p.Stream, p.Number, p.Processor, op, err)
}

// failed wraps an error of an operation on the partition; for a garbled ownership hash it names key
// and field.
func (p Partition) failed(op string, err error) error {
	if redisconn.ReplyHas(err, "GARBLED ") {
		_, found, _ := strings.Cut(err.Error(), "GARBLED ")
		field, value, _ := strings.Cut(found, " ")
		err = fmt.Errorf("%s: %w: field %s is %q: DEL that key: the next owner finds the position by the consumer group; its quarantine and its count of lost events end with it; %s", p.Own, ErrGarbled, field, value, help.UnreadableKey)
	}
	return p.wrap(op, err)
}
