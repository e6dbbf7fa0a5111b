package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

var partitionHeads = []head{
	{"PARTITION", 0, false}, {"OWNER", 5, true}, {"EPOCH", 10, false}, {"DONE/S", 3, false}, {"LAG", 1, false}, {"AGE", 2, false},
	{"PENDING", 6, false}, {"PARKED", 7, false}, {"DEAD", 8, false}, {"LOST", 9, false}, {"STATE", 4, true},
}

// partitionRows are the partitions of a processor, by its place in the sample.
func partitionRows(sample *inspect.Sample, stream, processor int, now time.Time) []topRow {
	p := &sample.App.Streams[stream].Processors[processor]
	rates := sample.Rates[stream].Processors[processor].Partitions
	rows := make([]topRow, len(p.Partitions))
	for i := range p.Partitions {
		s := &p.Partitions[i]
		r := topRow{
			id: strconv.Itoa(s.Partition), stream: p.Stream, processor: p.Processor, partition: s.Partition,
			lag: s.Lag, age: s.Age, rate: orNone(rates[i]),
			cells: []string{
				strconv.Itoa(s.Partition), ownerOf(s), number(s.Epoch), rateOf(rates[i]), words.AtLeast(s.Lag, s.LagMore), ageOf(s.Age, s.Oldest != ""),
				known(s.Pending, "-"), number(s.Parked), number(s.Dead), number(s.Lost), partitionState(s, now),
			},
			mood: partitionMood(s), detail: partitionDetail(sample.App, p, s, now),
		}
		if s.Err != "" { // the numbers are unknown, not zero
			for c := 1; c < len(r.cells)-1; c++ {
				r.cells[c] = "?"
			}
		}
		rows[i] = r
	}
	return rows
}

// partitionState is the state of a partition, with the reason.
func partitionState(s *inspect.PartitionState, now time.Time) string {
	state := s.State(now)
	switch {
	case s.Err != "":
		return words.Summary(s.Err)
	case s.Quarantine != nil && s.Held != "":
		return state + ", " + heldWord(s.Held) + ": " + words.Summary(s.Quarantine.Reason)
	case s.Quarantine != nil:
		return state + ": " + words.Summary(s.Quarantine.Reason)
	case s.Held != "" && s.RunningSince != nil:
		return state + ", running for " + words.Short(now.Sub(*s.RunningSince))
	}
	return state
}

func heldWord(kind string) string {
	if kind == "block" {
		return "blocked"
	}
	return "paused"
}

func partitionMood(s *inspect.PartitionState) mood {
	switch {
	case s.Err != "" || s.Quarantine != nil || s.Dead > 0 || s.Lost > 0 || s.Forgotten != nil:
		return bad
	case s.Held != "" || s.NotReading != nil || s.RunningSince != nil || s.Executor == "" || s.Parked > 0:
		return odd
	}
	return calm
}

func partitionDetail(a *inspect.AppState, p *inspect.ProcessorState, s *inspect.PartitionState, now time.Time) (out []string) {
	if s.Err != "" {
		return []string{s.Err}
	}
	if q := s.Quarantine; q != nil {
		out = append(out, fmt.Sprintf("quarantined since %s by worker %s, at event %s: %s", q.At.Format(time.RFC3339), words.Dash(q.Worker), words.Dash(q.Event), words.Reason(q.Event, q.Reason)))
	}
	if s.Held != "" {
		for _, r := range a.Rules {
			if of, err := rules.ParseScope(r.Scope); err == nil && of.Covers(p.Stream, p.Processor, s.Partition) {
				out = append(out, ruleText(r))
			}
		}
	}
	if f := s.Forgotten; f != nil {
		out = append(out, fmt.Sprintf("at %s Redis had forgotten events: %s", f.At.Format(time.RFC3339), f.Text))
	}
	if s.RunningSince != nil {
		out = append(out, fmt.Sprintf("its function has been running since %s, for %s", s.RunningSince.Format(time.RFC3339), words.Short(now.Sub(*s.RunningSince))))
	}
	return append(out, fmt.Sprintf("executor %s, lease %s, length %d, acked to %s, end %s", words.Dash(s.Executor), leaseOf(s), s.Length, words.Dash(s.Floor), words.Dash(s.End)))
}

var memberHeads = []head{
	{"WORKER", 0, true}, {"EXECUTOR", 5, true}, {"HEARTBEAT", 1, true}, {"JOINED", 7, false}, {"ASSIGNED", 2, true},
	{"OWNED", 3, true}, {"PINNED", 8, true}, {"DRAINED", 6, false}, {"RUNNING", 4, true},
}

// memberRows are the members of a processor.
func memberRows(p *inspect.ProcessorState, now time.Time) []topRow {
	rows := make([]topRow, 0, len(p.Members))
	for _, m := range membersOf(p) {
		r := topRow{
			id: m.Executor, stream: p.Stream, processor: p.Processor, partition: -1,
			cells: []string{
				m.Worker, m.Executor, beatOf(m.MemberState), words.Short(now.Sub(m.JoinedAt)) + " ago", rangesOf(m.Assigned),
				rangesOf(m.Owned), rangesOf(m.Pinned), words.Ago(now, m.Drained), runningOf(m.Running, now),
			},
			detail: []string{fmt.Sprintf("assigned %s; owned %s", rangesOf(m.Assigned), rangesOf(m.Owned))},
		}
		switch {
		case !m.Alive:
			r.mood = bad
		case m.Drained != nil || len(m.Running) > 0 || !slices.Equal(m.Assigned, m.Owned):
			r.mood = odd
		}
		rows = append(rows, r)
	}
	return rows
}

func rangesOf(partitions []int) string {
	if len(partitions) == 0 {
		return "-"
	}
	return rebalance.Ranges(partitions)
}

// runningOf names the partitions whose function has been running for a long time, the longest first.
func runningOf(running map[int]time.Time, now time.Time) string {
	numbers := slices.SortedFunc(maps.Keys(running), func(a, b int) int { return running[a].Compare(running[b]) })
	var out []string
	for _, n := range numbers {
		out = append(out, fmt.Sprintf("%d for %s", n, words.Short(now.Sub(running[n]))))
	}
	return words.Dash(strings.Join(out, ", "))
}
