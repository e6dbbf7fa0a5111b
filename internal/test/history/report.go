package history

import (
	"fmt"
	"math"
	"strings"
)

// Class is the rule that a violation breaks; see the package's documentation.
type Class string

const (
	ClassLoss     Class = "loss"
	ClassOrder    Class = "order"
	ClassFIFO     Class = "fifo"
	ClassOwner    Class = "owner"
	ClassRepeat   Class = "repeat"
	ClassResend   Class = "resend"
	ClassRefused  Class = "refused"
	ClassHold     Class = "hold"
	ClassEarly    Class = "early"
	ClassAttempts Class = "attempts"
	ClassRecord   Class = "record"
	ClassOnce     Class = "once"
)

// Violation is a broken rule, with its place and its records.
type Violation struct {
	Class   Class
	Where   string // stream, processor and partition
	What    string
	Records []Record
}

// at is when the rule was broken.
func (v Violation) at() int64 {
	if len(v.Records) == 0 {
		return math.MaxInt64
	}
	return v.Records[len(v.Records)-1].At
}

// String is several lines: the explanation, then the records.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s", v.Class, v.Where, v.What)
	for _, r := range v.Records {
		b.WriteString("\n      " + r.String())
	}
	return b.String()
}

// String is one line.
func (r Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d.%06ds %s", r.At/1e9, r.At%1e9/1e3, r.Kind)
	add := func(name string, value any, present bool) {
		if present {
			fmt.Fprintf(&b, " %s=%v", name, value)
		}
	}
	add("worker", r.Worker, r.Worker != "")
	add("executor", r.Executor, r.Executor != "")
	add("fault", r.Fault, r.Fault != "")
	add("partition", r.Partition, r.Kind != Fault && r.Kind != Note)
	add("epoch", r.Epoch, r.Epoch != 0)
	add("ids", r.IDs, len(r.IDs) > 0)
	add("keys", r.Keys, len(r.Keys) > 0)
	add("seqs", r.Seqs, len(r.Seqs) > 0)
	add("failed", r.Failed, r.Failed)
	add("text", r.Text, r.Text != "")
	return b.String()
}

// maxPrinted bounds how many violations Report.String explains, about as many of each class.
const maxPrinted = 20

// Report is the verdict on a history.
type Report struct {
	OK         bool
	Violations []Violation

	Events     int // sent, or found appended
	Completed  int // completions, repeats among them, over all processors
	Dead       int // dead letters, over all processors
	Dropped    int // events that made room for others before they were completed, over all processors
	Holds      int // times in which nothing might begin at some places
	Repeats    int // completions that were repeats and allowed
	Resends    int // entries beyond the first of the same key and seq, allowed
	Once       int // events of Atomic processors, which count once
	Excused    int // events that a flush took away
	Vanished   int // events that a failover took before they were completed
	Lost       int // of these, those whose senders had been told that they were in; see Options.Some
	Delayed    int // events sent for later
	Looks      int // at who the accepted owner of a place is
	Leftovers  int // iterations of what a wipe took, by owners that had read it before; or of a server whose place another one had taken; or begun before a stop and written after it
	Unfinished int // iterations that began and never ended
	Clean      int // handovers
	Unclean    int // handovers
	Epochs     int // ownerships under which at least one iteration ran
	Faults     int
}

// String is a summary for a test's log, with an explanation of the first violations of each class.
func (r *Report) String() string {
	var b strings.Builder
	verdict := "history is correct"
	if !r.OK {
		verdict = fmt.Sprintf("history has %d violations", len(r.Violations))
	}
	fmt.Fprintf(&b, "%s: %d events, %d completed (%d allowed repeats), %d resends, %d excused by a flush, %d gone with a failover (%d that were confirmed), "+
		"%d dead letters, %d dropped, %d delayed, %d holds, %d unfinished iterations, %d leftovers, %d epochs, %d looks at owners, handovers %d clean %d unclean, %d events counted once, %d faults",
		verdict, r.Events, r.Completed, r.Repeats, r.Resends, r.Excused, r.Vanished, r.Lost, r.Dead, r.Dropped, r.Delayed, r.Holds, r.Unfinished, r.Leftovers, r.Epochs, r.Looks, r.Clean, r.Unclean, r.Once, r.Faults)
	printed := 0
	explained := map[Class]int{}
	for _, v := range r.Violations {
		explained[v.Class] = 0
	}
	for _, v := range r.Violations {
		if explained[v.Class] < max(1, maxPrinted/len(explained)) {
			explained[v.Class]++
			printed++
			b.WriteString("\n  " + v.String())
		}
	}
	if more := len(r.Violations) - printed; more > 0 {
		fmt.Fprintf(&b, "\n  … and %d more", more)
	}
	return b.String()
}
