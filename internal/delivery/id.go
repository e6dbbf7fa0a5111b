package delivery

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// An ID is the ID of an entry of a numbered log: when it was appended, and which entry of the log it is, from 1 on.
type ID struct{ MS, N int64 }

const mostNumber = 1 << 62 // sums of two do not overflow

// ParseID is the inverse of String. An ID that no numbered log has is an error.
func ParseID(text string) (ID, error) {
	var id ID
	ms, n, _ := strings.Cut(text, "-")
	id.MS, _ = strconv.ParseInt(ms, 10, 64)
	id.N, _ = strconv.ParseInt(n, 10, 64)
	var again [2*20 + 1]byte
	if string(id.append(again[:0])) != text || min(id.MS, id.N) < 0 || max(id.MS, id.N) > mostNumber {
		return ID{}, fmt.Errorf("entry ID %q: not <ms>-<n>", text)
	}
	return id, nil
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

// Runs are ascending numbers of entries. No run touches the one before.
type Runs []Run

// A Run is the numbers from First to Last.
type Run struct {
	First int64 `json:"f"`
	Last  int64 `json:"l"`
}

// valid reports whether there are numbers, from 1 to mostNumber.
func (r Runs) valid() bool {
	last := int64(-1)
	for _, run := range r {
		if run.First <= last+1 || run.Last < run.First || run.Last > mostNumber {
			return false
		}
		last = run.Last
	}
	return len(r) > 0
}

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
