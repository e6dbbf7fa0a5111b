package upgrade

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/runnel-go/runnel/internal/test/history"
)

type entry struct {
	partition int
	id        string
}

// A tally summarizes the histories of processes so far. Broken promises are left to the final
// check.
type tally struct {
	offsets map[string]int64    // what was read of each file
	sender  map[entry]string    // who sent it
	done    map[entry][]string  // the workers that completed it, in the order of reading
	failed  map[entry][]string  // those at which it failed
	of      map[string]*process // by name
}

func newTally() *tally {
	return &tally{map[string]int64{}, map[entry]string{}, map[entry][]string{}, map[entry][]string{}, map[string]*process{}}
}

// update reads what has been written since the last time.
func (y *tally) update() error {
	for _, p := range y.of {
		text, err := os.ReadFile(p.history)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		text = text[y.offsets[p.name]:]
		text = text[:bytes.LastIndexByte(text, '\n')+1]
		y.offsets[p.name] += int64(len(text))
		for line := range bytes.Lines(text) {
			var r history.Record
			if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
			y.add(r)
		}
	}
	return nil
}

func (y *tally) add(r history.Record) {
	for _, id := range r.IDs {
		switch e := (entry{r.Partition, id}); {
		case r.Kind == history.Sent:
			y.sender[e] = r.Producer
		case r.Kind == history.End && r.Failed:
			y.failed[e] = append(y.failed[e], r.Worker)
		case r.Kind == history.End:
			y.done[e] = append(y.done[e], r.Worker)
		}
	}
}

// serves reports whether a worker has completed events that each version sent.
func (y *tally) serves(worker *process) bool {
	from := map[string]bool{}
	for e, workers := range y.done {
		if s := y.of[y.sender[e]]; s != nil && slices.Contains(workers, worker.name) {
			from[s.version] = true
		}
	}
	return from[older] && from[newer]
}

// refuses reports whether a version has refused again what it had parked, of each of these senders.
func (y *tally) refuses(version string, senders []*process) bool {
	again := map[string]bool{}
	for e, workers := range y.failed {
		n := 0
		for _, w := range workers {
			if y.of[w].version == version {
				n++
			}
		}
		if n > 1 {
			again[y.sender[e]] = true
		}
	}
	for _, s := range senders {
		if !again[s.name] {
			return false
		}
	}
	return true
}

// undone is how many events of these senders are not completed.
func (y *tally) undone(senders []*process) (n int) {
	for e, name := range y.sender {
		for _, s := range senders {
			if s.name == name && len(y.done[e]) == 0 {
				n++
			}
		}
	}
	return n
}

// repeats is how many events a worker had completed in each partition that another one
// completed again.
func (y *tally) repeats(worker *process) map[int]int {
	again := map[int]int{}
	for e, workers := range y.done {
		if len(workers) > 1 && slices.Contains(workers, worker.name) {
			again[e.partition]++
		}
	}
	return again
}
