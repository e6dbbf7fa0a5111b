//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/test/history"
)

// figures sum up what the rounds of a test did.
type figures struct {
	name  string
	seed  uint64
	lasts time.Duration
	sum   history.Report
	count map[string]int
	waits map[string][]time.Duration // from a fault to the next iteration of a partition that it hurt
}

// order is the order of the faults in a table.
var order = []string{
	"kill", "stop", "term", "join", "clock", "cut", "latency", "bandwidth", "half-open", "held-replies", "silence",
	"server-kill", "server-stop", "failover", "switch", "replica-kill", "replicas-stop", "sentinel-stop", "slot", "scripts", "flush", "memory", "disk", history.Lost,
}

// take adds a round.
func (f *figures) take(lasts time.Duration, r *history.Report, records []history.Record) {
	if f.count == nil {
		f.count, f.waits = map[string]int{}, map[string][]time.Duration{}
	}
	f.lasts += lasts
	f.sum.Events += r.Events
	f.sum.Completed += r.Completed
	f.sum.Repeats += r.Repeats
	f.sum.Resends += r.Resends
	f.sum.Excused += r.Excused
	f.sum.Vanished += r.Vanished
	f.sum.Lost += r.Lost
	f.sum.Leftovers += r.Leftovers
	f.sum.Dead += r.Dead
	f.sum.Delayed += r.Delayed
	f.sum.Holds += r.Holds
	f.sum.Clean += r.Clean
	f.sum.Unclean += r.Unclean
	f.sum.Violations = append(f.sum.Violations, r.Violations...)
	f.pauses(records)
}

func nameOf(r history.Record) string {
	name, _, _ := strings.Cut(r.Text, " ")
	return cmp.Or(name, r.Fault)
}

// pauses adds how long partitions paused after each fault: to the next iteration there, of any
// owner.
func (f *figures) pauses(records []history.Record) {
	records = slices.DeleteFunc(records, func(r history.Record) bool { return r.Kind != history.Fault && r.Kind != history.Begin })
	slices.SortStableFunc(records, func(a, b history.Record) int { return cmp.Compare(a.At, b.At) })
	owner := map[int]string{}        // by partition
	hurt := map[int]history.Record{} // by partition, what its owner suffered since it last began anything
	for _, r := range records {
		switch {
		case r.Kind == history.Fault && r.Fault != history.Cont && r.Fault != history.Settled:
			f.count[nameOf(r)]++
			for p, w := range owner {
				if w == r.Worker || r.Worker == "" {
					hurt[p] = r
				}
			}
		case r.Kind == history.Begin:
			if h, ok := hurt[r.Partition]; ok {
				f.waits[nameOf(h)] = append(f.waits[nameOf(h)], time.Duration(r.At-h.At))
				delete(hurt, r.Partition)
			}
			owner[r.Partition] = r.Worker
		}
	}
}

func (f *figures) String() string {
	var b strings.Builder
	b.WriteString("from a fault to the next iteration of each partition that it hurt:")
	for _, name := range order {
		if f.count[name] == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n  %-12s %4d times", name, f.count[name])
		if w := f.waits[name]; len(w) > 0 {
			slices.Sort(w)
			fmt.Fprintf(&b, ", %5d partitions, median %v, largest %v", len(w), w[len(w)/2].Round(time.Millisecond), w[len(w)-1].Round(time.Millisecond))
		}
	}
	return b.String()
}

// all are the figures of the tests that ran.
var all struct {
	mu   sync.Mutex
	list []*figures
}

func (f *figures) add() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.list = append(all.list, f)
}

// tables returns the tables of docs/reliability.md.
func tables() string {
	all.mu.Lock()
	defer all.mu.Unlock()
	var b strings.Builder
	b.WriteString("\n| run | seed | lasted | events | completed | repeated | sent again | taken by flushes | gone with failovers (confirmed) | begun by an old owner | dead letters | delayed | holds | handovers clean, unclean | broken promises |\n" +
		"|---|" + strings.Repeat("--:|", 14) + "\n")
	for _, f := range all.list {
		s := f.sum
		fmt.Fprintf(&b, "| %s | %d | %v | %d | %d | %d | %d | %d | %d (%d) | %d | %d | %d | %d | %d, %d | %d |\n", strings.TrimPrefix(f.name, "Test"), f.seed, f.lasts,
			s.Events, s.Completed, s.Repeats, s.Resends, s.Excused, s.Vanished, s.Lost, s.Leftovers, s.Dead, s.Delayed, s.Holds, s.Clean, s.Unclean, len(s.Violations))
	}
	b.WriteString("\n| fault |")
	for _, f := range all.list {
		fmt.Fprintf(&b, " %s: times, median, largest pause |", strings.TrimPrefix(f.name, "Test"))
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(all.list)) + "\n")
	for _, name := range order {
		fmt.Fprintf(&b, "| %s |", name)
		for _, f := range all.list {
			cell := fmt.Sprint(f.count[name])
			if w := f.waits[name]; len(w) > 0 {
				slices.Sort(w)
				cell += fmt.Sprintf(", %v, %v", w[len(w)/2].Round(time.Millisecond), w[len(w)-1].Round(time.Millisecond))
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}
