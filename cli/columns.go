package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

// A column of the table of partitions in `status`.
type column struct {
	title string
	wide  bool // only in wide output
	of    func(s *inspect.PartitionState, now time.Time) string
	total func(t *inspect.Totals) string // nil: none
}

var columns = []column{
	{"PARTITION", false,
		func(s *inspect.PartitionState, _ time.Time) string { return strconv.Itoa(s.Partition) },
		func(*inspect.Totals) string { return "total" }},
	{"OWNER", false,
		func(s *inspect.PartitionState, _ time.Time) string { return ownerOf(s) },
		func(t *inspect.Totals) string { return fmt.Sprint(t.Owned, " owned") }},
	{"EXECUTOR", true,
		func(s *inspect.PartitionState, _ time.Time) string { return words.Dash(s.Executor) }, nil},
	{"LEASE", false,
		func(s *inspect.PartitionState, _ time.Time) string { return leaseOf(s) }, nil},
	{"EPOCH", false,
		func(s *inspect.PartitionState, _ time.Time) string { return number(s.Epoch) }, nil},
	{"PENDING", false,
		func(s *inspect.PartitionState, _ time.Time) string { return number(s.Pending) },
		func(t *inspect.Totals) string { return number(t.Pending) }},
	{"LAG", false,
		func(s *inspect.PartitionState, _ time.Time) string { return words.AtLeast(s.Lag, s.LagMore) },
		func(t *inspect.Totals) string { return words.AtLeast(t.Lag, t.LagMore) }},
	{"AGE", false,
		func(s *inspect.PartitionState, _ time.Time) string { return ageOf(s.Age, s.Oldest != "") },
		func(t *inspect.Totals) string { return ageOf(t.Age, t.Lag > 0) }},
	{"DELAYED", false,
		func(s *inspect.PartitionState, _ time.Time) string { return number(s.Delayed) },
		func(t *inspect.Totals) string { return number(t.Delayed) }},
	{"PARKED", false,
		func(s *inspect.PartitionState, _ time.Time) string { return number(s.Parked) },
		func(t *inspect.Totals) string { return number(t.Parked) }},
	{"RETRYING", true,
		func(s *inspect.PartitionState, _ time.Time) string { return counted(s.Retrying) },
		func(t *inspect.Totals) string { return counted(t.Retrying) }},
	{"DEAD", false,
		func(s *inspect.PartitionState, _ time.Time) string { return number(s.Dead) },
		func(t *inspect.Totals) string { return number(t.Dead) }},
	{"LOST", false,
		func(s *inspect.PartitionState, _ time.Time) string { return number(s.Lost) },
		func(t *inspect.Totals) string { return number(t.Lost) }},
	{"LENGTH", true,
		func(s *inspect.PartitionState, _ time.Time) string { return number(s.Length) },
		func(t *inspect.Totals) string { return number(t.Length) }},
	{"ACKED TO", false,
		func(s *inspect.PartitionState, _ time.Time) string { return s.Floor }, nil},
	{"END", false,
		func(s *inspect.PartitionState, _ time.Time) string { return s.End }, nil},
	{"GROUP", true,
		func(s *inspect.PartitionState, _ time.Time) string { return words.Dash(s.Group) }, nil},
	{"STATE", false, (*inspect.PartitionState).State, nil},
}

// writePartitions writes a row for each partition of a processor, and their sums.
func writePartitions(t table, p *inspect.ProcessorState, wide bool, now time.Time) {
	row := func(cell func(column) string) {
		var cells []string
		for _, c := range columns {
			if wide || !c.wide {
				cells = append(cells, shown(cell(c)))
			}
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	row(func(c column) string { return c.title })
	for i := range p.Partitions {
		s := &p.Partitions[i]
		if s.Err != "" {
			t.row(s.Partition, s.Err)
			continue
		}
		row(func(c column) string { return c.of(s, now) })
	}
	row(func(c column) string {
		if c.total == nil {
			return ""
		}
		return c.total(&p.Totals)
	})
}

// ownerOf is the name of a worker, or of an executor without one: a reset, or a worker that is no
// longer a member.
func ownerOf(s *inspect.PartitionState) string {
	if s.Worker != "" {
		return s.Worker
	}
	return words.Dash(s.Executor)
}

func leaseOf(s *inspect.PartitionState) string {
	if s.Executor == "" {
		return "-"
	}
	return words.Short(time.Duration(s.LockLeft) * time.Millisecond)
}

func ageOf(ms int64, there bool) string {
	if !there {
		return "-"
	}
	return words.Short(time.Duration(ms) * time.Millisecond)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// counted is a number, "?" for a negative one, which was not counted.
func counted(n int64) string {
	if n < 0 {
		return "?"
	}
	return number(n)
}
