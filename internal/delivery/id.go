package delivery

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An ID is the ID of an entry of a numbered log: when it was appended, and which entry of the log it is, from 1 on.
type ID struct{ MS, N int64 }

const mostNumber = 1 << 62 // sums of two do not overflow

// ParseID is the inverse of String. An ID that no numbered log has is an error.
func ParseID(text string) (ID, error) {
	ms, n, cut := strings.Cut(text, "-")
	id := ID{number(ms), number(n)}
	if !cut || id.MS < 0 || id.N < 0 {
		return ID{}, fmt.Errorf("entry ID %q: not <ms>-<n>", text)
	}
	return id, nil
}

// number returns a number as strconv writes it, from 0 to mostNumber; -1 if the text is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > mostNumber || text[0] == '+' || text[0] == '-' || text[0] == '0' && len(text) > 1 {
		return -1
	}
	return n
}

// String returns "<ms>-<n>".
func (id ID) String() string { return string(id.append(nil)) }

func (id ID) append(to []byte) []byte {
	return strconv.AppendInt(append(strconv.AppendInt(to, id.MS, 10), '-'), id.N, 10)
}

// Compare returns -1, 0 or 1 for an ID before, equal to or behind another one of the same log.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.MS, other.MS), cmp.Compare(id.N, other.N))
}

// MarshalText returns the ID's text.
func (id ID) MarshalText() ([]byte, error) { return id.append(nil), nil }

// UnmarshalText parses the ID's text.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// Runs are ascending numbers of entries. Their text is "101-150,153".
type Runs []Run

// A Run is the numbers from First to Last.
type Run struct{ First, Last int64 }

// add returns the numbers with one behind them.
func (r Runs) add(n int64) Runs {
	if last := len(r) - 1; last >= 0 && r[last].Last == n-1 {
		r[last].Last = n
		return r
	}
	return append(r, Run{n, n})
}

func (r Runs) has(n int64) bool { return r.count(n, n) == 1 }

// count returns how many numbers lie from one to another, both included.
func (r Runs) count(from, to int64) (n int64) {
	for _, run := range r {
		n += max(0, min(run.Last, to)-max(run.First, from)+1)
	}
	return n
}

// last returns the largest number, 0 if there is none.
func (r Runs) last() int64 {
	if len(r) == 0 {
		return 0
	}
	return r[len(r)-1].Last
}

func (r Runs) append(to []byte) []byte {
	for i, run := range r {
		if i > 0 {
			to = append(to, ',')
		}
		to = strconv.AppendInt(to, run.First, 10)
		if run.Last > run.First {
			to = strconv.AppendInt(append(to, '-'), run.Last, 10)
		}
	}
	return to
}

// MarshalText returns the text of the runs.
func (r Runs) MarshalText() ([]byte, error) { return r.append(nil), nil }

// UnmarshalText parses the text of runs: of at least one, ascending, none touching the one before.
func (r *Runs) UnmarshalText(text []byte) error {
	*r = nil
	for one := range strings.SplitSeq(string(text), ",") {
		first, last, cut := strings.Cut(one, "-")
		run := Run{number(first), number(first)}
		if cut {
			run.Last = number(last)
		}
		if run.First < 1 || run.Last < run.First || cut && run.Last == run.First || len(*r) > 0 && run.First <= r.last()+1 {
			return fmt.Errorf("numbers %q: not ascending runs as in 101-150,153", text)
		}
		*r = append(*r, run)
	}
	*r = slices.Clip(*r)
	return nil
}
