package delivery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"
)

// An Event is an entry of a log. Its payload is a JSON object.
type Event struct {
	Log     string
	ID      ID
	Payload string
}

// compareEvents orders events by arrival, those of one log by number.
func compareEvents(a, b Event) int {
	if a.Log == b.Log {
		return a.ID.Compare(b.ID)
	}
	return cmp.Or(cmp.Compare(a.ID.MS, b.ID.MS), strings.Compare(a.Log, b.Log))
}

// Open is what is stored of a batch that has begun and is not settled.
type Open struct {
	No      int64           `json:"n"`
	Attempt int             `json:"a"`           // attempts begun
	Until   int64           `json:"u,omitempty"` // no other attempt before, ms since 1970
	Members map[string]Runs `json:"m"`           // by log
}

// Size returns how many events the batch has.
func (o *Open) Size() (n int64) {
	for _, members := range o.Members {
		n += members.count(1, mostNumber)
	}
	return n
}

// A Batch is an open batch with its events, which nobody changes. It belongs to whoever has it from Next until Done, Fail,
// Halve or Undo.
type Batch struct {
	*Open
	Events []Event // by arrival
}

func newBatch(no int64, events []Event) *Batch {
	members := map[string]Runs{}
	for _, some := range chunks(events) {
		runs := members[some[0].Log]
		for _, e := range some {
			runs = runs.add(e.ID.N)
		}
		members[some[0].Log] = runs
	}
	return &Batch{&Open{No: no, Members: members}, events}
}

// chunks returns what follows each other of one log.
func chunks(events []Event) (all [][]Event) {
	begin := 0
	for i := range events {
		if i+1 == len(events) || events[i+1].Log != events[i].Log {
			all, begin = append(all, events[begin:i+1]), i+1
		}
	}
	return all
}

// complete reports whether all members are loaded.
func (b *Batch) complete() bool {
	n := int64(len(b.Events))
	for _, members := range b.Members {
		n -= members.count(0, members.last())
	}
	return n == 0
}

// Body returns the payloads as a JSON array.
func (b *Batch) Body() []byte {
	payloads := make([]string, len(b.Events))
	for i, e := range b.Events {
		payloads[i] = e.Payload
	}
	return []byte("[" + strings.Join(payloads, ",") + "]")
}

// Key returns "msg_" and 26 characters that stand for the seeds and the content. All attempts have the same key, whoever
// makes them. Equal keys of equal seeds mean equal content, also after a failover that made the server forget a batch:
// what is appended later under the same numbers has later times, the last one in any case.
func (b *Batch) Key(seeds ...string) string {
	last := map[string]ID{}
	for _, some := range chunks(b.Events) {
		last[some[0].Log] = some[len(some)-1].ID
	}
	text, _ := json.Marshal([]any{seeds, b.Members, last}) // texts and numbers, those of a map by name
	sum := sha256.Sum256(text)
	return "msg_" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])[:26]
}
