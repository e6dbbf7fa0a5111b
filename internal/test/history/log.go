package history

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Log takes the records of one worker. Its methods may be called concurrently.
type Log struct {
	worker string
	sink   *sink
}

// sink is where the logs of one file, or of one simulation, end up.
type sink struct {
	now  func() int64
	file *os.File // nil for a log in memory
	path string   // where a log in memory goes at Close, if anywhere

	mu      sync.Mutex
	records []Record // of a log in memory
}

// Open opens a log that appends to a file of its own, which it creates. Two processes must not share one.
func Open(path, worker string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	return &Log{worker: worker, sink: &sink{now: monotonic, file: f}}, nil
}

// Memory makes a log in memory whose times are those of time.Now, so that it works in fake time. As makes the logs of
// the simulated workers from it.
func Memory() *Log {
	return &Log{sink: &sink{now: func() int64 { return time.Now().UnixNano() }}}
}

// Late makes a log that Close writes to a file: for a process that must make no system calls meanwhile, and is not killed.
func Late(path, worker string) *Log {
	return &Log{worker: worker, sink: &sink{now: monotonic, path: path}}
}

// As returns a log into the same place under another worker's name.
func (l *Log) As(worker string) *Log { return &Log{worker: worker, sink: l.sink} }

// Close closes the file. A log in memory needs none.
func (l *Log) Close() error {
	switch {
	case l.sink.file != nil:
		return l.sink.file.Close()
	case l.sink.path == "":
		return nil
	}
	var lines []byte
	for _, r := range l.Records() {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("write history: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(l.sink.path, lines, 0o644); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// Records returns what a log in memory holds: a copy. One in a file is read by Read.
func (l *Log) Records() []Record {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	return slices.Clone(l.sink.records)
}

// Write appends a record with the present time, and with the log's worker unless it names one or is a fault, which may
// be meant for all. The record is in the hands of the system when Write returns. A record that Check could not judge is
// an error.
func (l *Log) Write(r Record) error {
	if r.Worker == "" && r.Kind != Fault {
		r.Worker = l.worker
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return l.sink.write(r)
}

func (s *sink) write(r Record) error {
	// Before the lock: a process may be stopped while others write.
	r.At = s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		r.IDs, r.Keys, r.Seqs, r.Attempts = slices.Clone(r.IDs), slices.Clone(r.Keys), slices.Clone(r.Seqs), slices.Clone(r.Attempts)
		s.records = append(s.records, r)
		return nil
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = s.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// Sent records that an event was accepted under this entry ID.
func (l *Log) Sent(stream string, partition int, id, key string, seq int64) error {
	return l.Write(Record{
		Kind: Sent, Stream: stream, Partition: partition, IDs: []string{id}, Keys: []string{key}, Seqs: []int64{seq},
		Producer: l.worker,
	})
}

// Unknown records that an event may or may not have been appended.
func (l *Log) Unknown(stream, key string, seq int64) error {
	return l.Write(Record{Kind: Unknown, Stream: stream, Keys: []string{key}, Seqs: []int64{seq}, Producer: l.worker})
}

// Refused records that an event was certainly not appended.
func (l *Log) Refused(stream, key string, seq int64) error {
	return l.Write(Record{Kind: Refused, Stream: stream, Keys: []string{key}, Seqs: []int64{seq}, Producer: l.worker})
}

// Fault records that a fault is about to happen to a worker, or to all if worker is empty.
func (l *Log) Fault(worker, fault string) error {
	return l.Write(Record{Kind: Fault, Worker: worker, Fault: fault})
}

// Note records free text.
func (l *Log) Note(text string) error { return l.Write(Record{Kind: Note, Text: text}) }

// Iteration is one that has begun and not yet ended.
type Iteration struct {
	log *Log
	rec Record
}

// Begin writes that an iteration begins; r names its executor, stream, processor, partition, epoch, IDs, keys and seqs.
func (l *Log) Begin(r Record) (*Iteration, error) {
	r.Kind = Begin
	if err := l.Write(r); err != nil {
		return nil, err
	}
	return &Iteration{log: l, rec: r}, nil
}

// Complete writes that the iteration ended and its events are to be acked: all of them, or those with these IDs.
func (i *Iteration) Complete(ids ...string) error { return i.end(false, ids) }

// Fail writes that the iteration ended and none of its events is to be acked.
func (i *Iteration) Fail() error { return i.end(true, nil) }

func (i *Iteration) end(failed bool, ids []string) error {
	r := i.rec
	r.Kind, r.Failed, r.Keys, r.Seqs = End, failed, nil, nil
	if len(ids) > 0 {
		r.IDs = ids
	}
	return i.log.Write(r)
}

// Read reads the logs of several processes. A last line that kill -9 cut short is left out; any other line that is no
// record is an error that names its file and line.
func Read(paths ...string) ([]Record, error) {
	var all []Record
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		records, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("read history: %s:%w", path, err)
		}
		all = append(all, records...)
	}
	return all, nil
}
