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
// fault to the next iteration there, of whichever owner.
func gaps(records []history.Record) string {
	records = slices.Clone(records)
	sort.SliceStable(records, func(i, j int) bool { return records[i].At < records[j].At })
	owner := map[int]string{}             // by partition
	hurt := map[int]history.Record{}      // by partition, what its owner suffered since it last began anything
	waits := map[string][]time.Duration{} // by fault
	for _, r := range records {
		switch r.Kind {
		case history.Fault:
			for p, w := range owner {
				if w == r.Worker {
					hurt[p] = r
				}
			}
		case history.Begin:
			if f, ok := hurt[r.Partition]; ok {
				waits[f.Fault] = append(waits[f.Fault], time.Duration(r.At-f.At))
				delete(hurt, r.Partition)
			}
			owner[r.Partition] = r.Worker
		}
	}
	var b strings.Builder
	b.WriteString("from a fault to the partition's next iteration:")
	for _, fault := range []string{history.Kill, history.Stop, history.Term, history.Cut} {
		w := waits[fault]
		if len(w) == 0 {
			continue
		}
		slices.Sort(w)
		fmt.Fprintf(&b, "\n  %-5s %3d partitions, median %v, largest %v", fault, len(w), w[len(w)/2].Round(time.Millisecond), w[len(w)-1].Round(time.Millisecond))
	}
	return b.String()
}
