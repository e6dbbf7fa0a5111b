package exact

import (
	"fmt"
	"strconv"
	"strings"
)

// Order is what stays in the order of the events.
type Order int

const (
	InPartition Order = iota // all of a partition
	InKey                    // the events of a key
	InNone                   // nothing
)

// A Stage is what is found of a processor at rest.
type Stage struct {
	Name    string
	Events  [][]Entry        // of each partition of its stream
	Outputs [][]Entry        // of each partition of the stream that it emits to
	Keys    []map[string]Row // of each partition: by key
	Parts   []map[string]Row // and the one under All
	Skipped map[string]bool  // events that are to have left nothing: dead letters, ignored ones
	Order   Order
	TTL     int64 // of rows by key, in ms; 0: they stay

	Ends    [][]Entry            // of each partition of the stream to which all stages emit when a row ends
	Pause   int64                // of the rows of that table, in ms; 0: there is none
	Batches bool                 // several events may have had one time
	Target  func(key string) int // the partition of Ends
}

// A Verdict is what Judge has found.
type Verdict struct {
	Events, Skipped, Outputs, Rows, Ends int
	Faults                               []string
}

// String tells the numbers, and the first faults.
func (v *Verdict) String() string {
	s := fmt.Sprintf("%d events, %d of them skipped, %d outputs, %d rows, %d ends, %d faults", v.Events, v.Skipped, v.Outputs, v.Rows, v.Ends, len(v.Faults))
	return strings.Join(append([]string{s}, v.Faults[:min(len(v.Faults), 20)]...), "\n")
}

func (v *Verdict) fault(format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
}

// Judge compares what is found with the events.
func (s Stage) Judge() *Verdict {
	v := &Verdict{}
	executions := s.judgeOutputs(v)
	for p, events := range s.Events {
		s.judgeRows(v, p, events, executions)
	}
	if s.Pause > 0 {
		s.judgeEnds(v)
	}
	return v
}

// judgeOutputs checks that each event has its outputs, each once, of one execution and in the order of the events. It
// returns one output of each.
func (s Stage) judgeOutputs(v *Verdict) (executions map[string]Mark) {
	known, at := map[string]Mark{}, map[string]int{}
	for _, events := range s.Events {
		v.Events += len(events)
		for i, e := range events {
			known[e.Event()], at[e.Event()] = e.Mark, i
		}
	}
	executions = map[string]Mark{}
	found := map[string]int{} // by event and number
	for _, outs := range s.Outputs {
		last := map[string]int{} // position of the last event, by lane
		v.Outputs += len(outs)
		for _, o := range outs {
			m := o.Mark
			of, there := known[m.From]
			switch one, seen := executions[m.From]; {
			case !there:
				v.fault("%s: output %s is of event %s, which is not there", s.Name, o.Event(), m.From)
				continue
			case s.Skipped[m.From]:
				v.fault("%s: output %s is of event %s, which is to have none", s.Name, o.Event(), m.From)
			case seen && (one.Nonce != m.Nonce || one.Chain != m.Chain):
				v.fault("%s: outputs of event %s are of several executions", s.Name, m.From)
			}
			executions[m.From] = m
			found[fmt.Sprint(m.From, " ", m.Nth)]++
			if m.Key != of.Key || m.N != of.N {
				v.fault("%s: output %s is not that of event %s", s.Name, o.Event(), m.From)
			}
			lane, place := s.lane(m), 2*at[m.From]+m.Nth
			if before, ok := last[lane]; ok && place <= before && s.Order != InNone {
				v.fault("%s: output %s of event %s stands behind one of a later event", s.Name, o.Event(), m.From)
			}
			last[lane] = place
		}
	}
	for event, m := range known {
		if s.Skipped[event] {
			v.Skipped++
			continue
		}
		for nth := range outputs(m.N) {
			if n := found[fmt.Sprint(event, " ", nth)]; n != 1 {
				v.fault("%s: output %d of event %s is there %d times", s.Name, nth, event, n)
			}
		}
	}
	return executions
}

// lane names what an output stands in order with.
func (s Stage) lane(m Mark) string {
	partition, _, _ := strings.Cut(m.From, "-")
	if s.Order == InKey {
		return partition + " " + m.Key
	}
	return partition
}

// judgeRows compares the rows of a partition with the fold over its events, and what each execution has found with the fold up to there.
func (s Stage) judgeRows(v *Verdict, p int, events []Entry, executions map[string]Mark) {
	keys, all, now := map[string]Row{}, Row{}, int64(0)
	for _, e := range events {
		if s.Skipped[e.Event()] {
			continue
		}
		one := executions[e.Event()]
		nonce := one.Nonce
		all = all.Add(e, nonce, 0)
		before, until := keys[e.Mark.Key], int64(0)
		if s.TTL > 0 {
			now = timeOf(e.ID)
			until = now + s.TTL
			if before.Until <= now {
				before = Row{}
			}
		}
		row := before.Add(e, nonce, uint64(until))
		keys[e.Mark.Key] = row
		if one.Chain != row.Chain && s.Order != InNone {
			v.fault("%s: event %s has made another row of %s than %+v", s.Name, e.Event(), e.Mark.Key, row)
		}
	}
	now += s.Pause // when the last row of the other table has ended
	v.Rows += len(s.Keys[p])
	for key, want := range keys {
		got, there := s.Keys[p][key]
		if ended := s.TTL > 0 && want.Until <= now; !there && ended {
			continue // removed
		}
		if s.key(got) != s.key(want) {
			v.fault("%s: partition %d: the row of %s is %+v, want %+v", s.Name, p, key, got, want)
		}
	}
	for key, got := range s.Keys[p] {
		if _, ok := keys[key]; !ok {
			v.fault("%s: partition %d: the row of %s is %+v, want none", s.Name, p, key, got)
		}
	}
	if got := s.Parts[p][All]; s.part(got) != s.part(all) {
		v.fault("%s: partition %d: its row is %+v, want %+v", s.Name, p, got, all)
	}
}

// key returns what must be equal of a row by key, and part of that of a partition.
func (s Stage) key(r Row) Row {
	if s.Order == InNone {
		r.Chain = 0
	}
	return r
}

func (s Stage) part(r Row) Row {
	if s.Order != InPartition {
		r.Chain = 0
	}
	return r
}

// timeOf returns when an entry was appended, in ms.
func timeOf(id string) int64 {
	ms, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(ms, 10, 64) // else 0
	return n
}
