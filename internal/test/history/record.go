package history

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of a record; see the package documentation.
type Kind string

const (
	Sent     Kind = "sent"
	Appended Kind = "appended"
	Unknown  Kind = "unknown"
	Refused  Kind = "refused"
	Begin    Kind = "begin"
	End      Kind = "end"
	Dead     Kind = "dead"
	Dropped  Kind = "dropped"
	Held     Kind = "held"
	Freed    Kind = "freed"
	Delayed  Kind = "delayed"
	Recalled Kind = "recalled"
	Owned    Kind = "owned"
	Rest     Kind = "rest"
	Wiped    Kind = "wiped"
	Fault    Kind = "fault"
	Note     Kind = "note"
)

// The kinds of faults, for Record.Fault.
const (
	Kill     = "kill"
	Stop     = "stop"
	Cut      = "cut"
	Flush    = "flush"
	Failover = "failover"
	Split    = "split"
	Settled  = "settled"
	Lost     = "lost"
	Term     = "term"
	Cont     = "cont"
	Join     = "join"
	Wipe     = "wipe"
	Silence  = "silence"
	Down     = "down"
	Slow     = "slow"
	Scripts  = "scripts"
	Clock    = "clock"
	Full     = "full"
)

// unclean reports which faults excuse repeats.
var unclean = map[string]bool{
	Kill: true, Stop: true, Cut: true, Flush: true, Failover: true, Lost: true,
	Split: true, Wipe: true, Silence: true, Down: true,
	Term: false, Cont: false, Settled: false, Join: false, Slow: false, Scripts: false, Clock: false, Full: false,
}

// Record is one line of a log. IDs, Keys and Seqs run parallel; unknown and refused records have no IDs, and an end
// needs neither keys nor seqs.
type Record struct {
	Kind      Kind     `json:"kind"`
	At        int64    `json:"at"` // nanoseconds since some moment that all processes of the machine share
	Worker    string   `json:"worker,omitempty"`
	Executor  string   `json:"executor,omitempty"`
	Stream    string   `json:"stream,omitempty"`
	Processor string   `json:"processor,omitempty"`
	Partition int      `json:"partition"`
	Epoch     int64    `json:"epoch,omitempty"`
	IDs       []string `json:"ids,omitempty"`
	Keys      []string `json:"keys,omitempty"`
	Seqs      []int64  `json:"seqs,omitempty"`
	Attempts  []int    `json:"attempts,omitempty"` // of a begin, beside IDs, or none
	Due       int64    `json:"due,omitempty"`      // of an appended entry, or a delayed event: when it is due, in ms, by Redis' clock
	Count     int      `json:"count,omitempty"`    // of dropped; of owned, how many owners are accepted
	Producer  string   `json:"producer,omitempty"`
	Failed    bool     `json:"failed,omitempty"`
	Fault     string   `json:"fault,omitempty"`
	Text      string   `json:"text,omitempty"`
}

// check returns why a record cannot be checked.
func (r *Record) check() error {
	switch r.Kind {
	case Sent, Appended, Begin, Dead:
		if len(r.IDs) == 0 || len(r.IDs) != len(r.Keys) || len(r.IDs) != len(r.Seqs) {
			return fmt.Errorf("%s: %d ids, %d keys, %d seqs", r.Kind, len(r.IDs), len(r.Keys), len(r.Seqs))
		}
		if r.Attempts != nil && len(r.Attempts) != len(r.IDs) {
			return fmt.Errorf("%s: %d ids, %d attempts", r.Kind, len(r.IDs), len(r.Attempts))
		}
	case End:
		if len(r.IDs) == 0 {
			return fmt.Errorf("end without ids")
		}
	case Wiped, Rest:
		if len(r.IDs) != 1 {
			return fmt.Errorf("%s: %d ids", r.Kind, len(r.IDs))
		}
	case Unknown, Refused, Delayed, Recalled:
		if len(r.Keys) == 0 || len(r.Keys) != len(r.Seqs) {
			return fmt.Errorf("%s: %d keys, %d seqs", r.Kind, len(r.Keys), len(r.Seqs))
		}
	case Fault:
		if _, known := unclean[r.Fault]; !known {
			return fmt.Errorf("unknown fault %q", r.Fault)
		}
	case Note, Held, Freed, Dropped, Owned:
	default:
		return fmt.Errorf("unknown kind %q", r.Kind)
	}
	for _, id := range r.IDs {
		if _, err := parseID(id); err != nil {
			return err
		}
	}
	return nil
}

// entryID is a Redis entry ID: two numbers that no float64 can hold.
type entryID struct{ ms, seq uint64 }

func parseID(s string) (entryID, error) {
	ms, seq, _ := strings.Cut(s, "-")
	m, msErr := strconv.ParseUint(ms, 10, 64)
	n, seqErr := strconv.ParseUint(seq, 10, 64)
	if msErr != nil || seqErr != nil {
		return entryID{}, fmt.Errorf("entry ID %q", s)
	}
	return entryID{m, n}, nil
}

func (a entryID) compare(b entryID) int {
	return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(a.seq, b.seq))
}

func (a entryID) String() string { return fmt.Sprintf("%d-%d", a.ms, a.seq) }
