//go:build unix

package chaos

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/history"
)

// gaps says how long partitions stood still after each kind of fault: from the
// fault to the first iteration of the next owner.
func gaps(records []history.Record) string {
	records = slices.Clone(records)
	sort.SliceStable(records, func(i, j int) bool { return records[i].At < records[j].At })
	owner := map[int]string{}             // by partition
	hurt := map[string]history.Record{}   // the last fault, by worker
	waits := map[string][]time.Duration{} // by fault
	for _, r := range records {
		switch r.Kind {
		case history.Fault:
			if r.Fault == history.Kill || r.Fault == history.Term || r.Fault == history.Stop {
				hurt[r.Worker] = r
			}
		case history.Begin:
			old := owner[r.Partition]
			if old != r.Worker && old != "" {
				if f, ok := hurt[old]; ok && r.At-f.At < int64(10*time.Second) {
					waits[f.Fault] = append(waits[f.Fault], time.Duration(r.At-f.At))
				}
			}
			owner[r.Partition] = r.Worker
		}
	}
	var b strings.Builder
	b.WriteString("from a fault to the next owner's first iteration:")
	for _, fault := range []string{history.Kill, history.Stop, history.Term} {
		w := waits[fault]
		if len(w) == 0 {
			continue
		}
		slices.Sort(w)
		fmt.Fprintf(&b, "\n  %-5s %3d moves, median %v, largest %v", fault, len(w), w[len(w)/2].Round(time.Millisecond), w[len(w)-1].Round(time.Millisecond))
	}
	return b.String()
}
