package exact

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// A Mark is the record of all streams: an event, or what was emitted for one.
type Mark struct {
	Key   string `json:"key"`
	N     int64  `json:"n"`
	From  string `json:"from,omitempty"` // the event that it was emitted for
	Nth   int    `json:"nth,omitempty"`  // of the outputs of that event, from 0
	Nonce uint64 `json:"nonce,omitempty"`
	Chain uint64 `json:"chain,omitempty"` // of the row of its key, behind that event
	Of    *Mark  `json:"of,omitempty"`    // that event, where its stream is trimmed
}

// An Entry is a mark in a stream.
type Entry struct {
	Partition int
	ID        string
	Mark      Mark
}

// Event names an entry among all of its stream.
func (e Entry) Event() string { return EventID(e.Partition, e.ID) }

// EventID names an entry of a partition.
func EventID(partition int, id string) string { return fmt.Sprintf("%d-%s", partition, id) }

// outputs returns how many marks are emitted for an event.
func outputs(n int64) int {
	if n%4 == 0 {
		return 2
	}
	return 1
}

// Outputs returns what an execution emits for an event, which has made the row of its key this one.
func (e Entry) Outputs(nonce uint64, row Row) (out []Mark) {
	for nth := range outputs(e.Mark.N) {
		out = append(out, Mark{Key: e.Mark.Key, N: e.Mark.N, From: e.Event(), Nth: nth, Nonce: nonce, Chain: row.Chain})
	}
	return out
}

// All is the key of the row of a partition.
const All = "all"

// A Row is what a processor has counted.
type Row struct {
	Sum   int64  `json:"sum"`
	Count int64  `json:"count"`
	Chain uint64 `json:"chain"` // over events and nonces in their order
	Mix   uint64 `json:"mix"`   // over them in any order
	Until int64  `json:"until,omitempty"`
}

// Add returns the row after an execution over an event. until is when it ends, in ms; 0: it stays.
func (r Row) Add(e Entry, nonce, until uint64) Row {
	h := fnv.New64a()
	h.Write([]byte(e.Event()))
	h.Write(binary.BigEndian.AppendUint64(nil, nonce))
	one := h.Sum64()
	h.Write(binary.BigEndian.AppendUint64(nil, r.Chain))
	return Row{Sum: r.Sum + e.Mark.N, Count: r.Count + 1, Chain: h.Sum64(), Mix: r.Mix + one, Until: int64(until)}
}
