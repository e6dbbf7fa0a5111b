package store

import "errors"

// ErrNotTried is the error of a record behind a failed one of the same call and partition.
var ErrNotTried = errors.New("not tried: a record before it failed")

// Sent is the result of one record: where it was appended, or why it was not.
type Sent struct {
	Partition int
	ID        string // of an entry, or a DelayedID; "" where the record was not appended
	Duplicate bool   // it was sent before, as ID
	Err       error
	Unknown   bool // it may have been appended all the same, or is appended and not replicated
}

// A Sorter sorts the records of one call by destination, and the results of Append by record. It
// is not for concurrent use.
type Sorter struct {
	stream  string
	self    bool
	records []outgoing          // by index
	places  []place             // in the order of their first records
	at      map[destination]int // but the first
}

// An outgoing is a record of a Sorter.
type outgoing struct {
	fields []string
	id     string
	due    *Due
	place  int // its number, from 1; 0: the record is not sent
}

// A destination is a partition, or its due queue.
type destination struct {
	partition int
	delayed   bool
}

// A place is one Append of a Sorter.
type place struct {
	destination
	records int
}

// NewSorter returns a Sorter for n records of a stream. self: one of its processors sends them.
func NewSorter(stream string, n int, self bool) Sorter {
	return Sorter{stream: stream, self: self, records: make([]outgoing, n)}
}

// Add adds record i with an ID or "", to be sent at once unless due is given. Records are added at
// most once, and in order within a partition; one that is not added is not sent.
func (o *Sorter) Add(i, partition int, fields []string, id string, due *Due) {
	d := destination{partition, due != nil}
	j, ok := 0, len(o.places) > 0 && o.places[0].destination == d // as of a call with one record
	if !ok {
		j, ok = o.at[d]
	}
	if !ok {
		j = len(o.places)
		o.places = append(o.places, place{destination: d})
		if j == 1 {
			o.at = map[destination]int{}
		}
		if j > 0 {
			o.at[d] = j
		}
	}
	o.places[j].records++
	o.records[i] = outgoing{fields, id, due, j + 1}
}

// Appends returns the records by destination, for Producer.Append.
func (o *Sorter) Appends() []Append {
	appends, records := make([]Append, len(o.places)), make([][]string, len(o.records))
	for j, p := range o.places {
		appends[j] = Append{Stream: o.stream, Partition: p.partition, Self: o.self, Records: records[:0:p.records]}
		records = records[p.records:]
	}
	for _, r := range o.records {
		if r.place > 0 {
			appends[r.place-1].Add(r.fields, r.id, r.due)
		}
	}
	return appends
}

// Results returns the results of all records from those of Appends, zero for one not added.
func (o *Sorter) Results(done []Appended) []Sent {
	results := make([]Sent, len(o.records))
	for j := range o.places {
		o.places[j].records = 0
	}
	for i, r := range o.records {
		if r.place > 0 {
			p := &o.places[r.place-1]
			results[i] = done[r.place-1].Record(p.records)
			results[i].Partition = p.partition
			p.records++
		}
	}
	return results
}

// Record returns the result of the k-th record, but for its partition.
func (a *Appended) Record(k int) (s Sent) {
	switch n := len(a.IDs); {
	case k < n:
		s.ID, s.Duplicate = a.IDs[k], a.Duplicate != nil && a.Duplicate[k]
		if k >= n-a.Weak {
			s.Err, s.Unknown = a.Err, true
		}
	case a.Weak == 0 && (k == n || a.Unknown || errors.Is(a.Err, ErrStreamFull)):
		s.Err, s.Unknown = a.Err, a.Unknown
	default:
		s.Err = ErrNotTried
	}
	return s
}
