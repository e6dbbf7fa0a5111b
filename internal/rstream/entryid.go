package rstream

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// CompareIDs compares two entry IDs, ms-seq, by text: 64 bits fit no double and
// need no parsing.
func CompareIDs(a, b string) int {
	am, as := cutID(a)
	bm, bs := cutID(b)
	return cmp.Or(compareDigits(am, bm), compareDigits(as, bs))
}

func cutID(id string) (ms, seq string) {
	ms, seq, ok := strings.Cut(id, "-")
	if !ok {
		seq = "0"
	}
	return ms, seq
}

func compareDigits(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// TimeOfID is when the server made an entry ID, to the millisecond.
func TimeOfID(id string) time.Time {
	ms, _ := cutID(id)
	n, _ := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n).UTC()
}
