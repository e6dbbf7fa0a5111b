package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

// partitionTitles are the columns of the table of partitions in `status`.
var partitionTitles = []string{
	"PARTITION", "OWNER", "EXECUTOR", "LEASE", "EPOCH", "PENDING", "LAG", "AGE", "DELAYED",
	"PARKED", "RETRYING", "DEAD", "LOST", outTitle, "LENGTH", "ACKED TO", "END", "GROUP", "STATE",
}

// outTitle is the column of what waits in outboxes; only where something does.
const outTitle = "OUT"

// wideTitles are the columns that only wide output has.
var wideTitles = []string{"EXECUTOR", "RETRYING", "LENGTH", "GROUP"}

func partitionCells(p *inspect.ProcessorState, s *inspect.PartitionState, now time.Time) []string {
	return []string{
		strconv.Itoa(s.Partition), ownerOf(s), words.Dash(s.Executor), leaseOf(s), number(s.Epoch), known(s.Pending, "-"),
		words.AtLeast(s.Lag, s.LagMore), ageOf(s.Age, s.Oldest != ""), number(s.Delayed),
		number(s.Parked), known(s.Retrying, "?"), number(s.Dead), number(s.Lost), number(p.Outboxes[s.Partition]), number(s.Length),
		s.Floor, s.End, words.Dash(s.Group), s.State(now),
	}
}

func totalCells(t *inspect.Totals) []string {
	return []string{
		"total", fmt.Sprint(t.Owned, " owned"), "", "", "", known(t.Pending, "-"),
		words.AtLeast(t.Lag, t.LagMore), ageOf(t.Age, t.Lag > 0), number(t.Delayed),
		number(t.Parked), known(t.Retrying, "?"), number(t.Dead), number(t.Lost), number(t.Outputs), number(t.Length), "", "", "", "",
	}
}

// writePartitions writes a row for each partition of a processor, and their sums.
func writePartitions(t table, p *inspect.ProcessorState, wide bool, now time.Time) {
	row := func(cells []string) {
		var out []string
		for i, cell := range cells {
			if title := partitionTitles[i]; title == outTitle && p.Totals.Outputs == 0 || !wide && slices.Contains(wideTitles, title) {
				continue
			}
			out = append(out, shown(cell))
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(out, "\t"), "\t"))
	}
	row(partitionTitles)
	for i := range p.Partitions {
		if s := &p.Partitions[i]; s.Err != "" {
			t.row(s.Partition, s.Err)
		} else {
			row(partitionCells(p, s, now))
		}
	}
	row(totalCells(&p.Totals))
}

// insertOut adds the cell of outTitle behind the first n cells of a row, if it is shown.
func insertOut(shown bool, n int, out any, cells ...any) []any {
	if !shown {
		return cells
	}
	return slices.Insert(cells, n, out)
}

// ownerOf is the name of a worker, or of an executor without one: a reset, or a worker that is no
// longer a member.
func ownerOf(s *inspect.PartitionState) string { return words.Dash(cmp.Or(s.Worker, s.Executor)) }

func leaseOf(s *inspect.PartitionState) string { return ageOf(s.LockLeft, s.Executor != "") }

func ageOf(ms int64, there bool) string {
	if !there {
		return "-"
	}
	return words.Short(time.Duration(ms) * time.Millisecond)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// known is a number, or unknown for a negative one.
func known(n int64, unknown string) string {
	if n < 0 {
		return unknown
	}
	return number(n)
}
