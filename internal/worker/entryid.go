package worker

import "strings"

// compareIDs compares two entry IDs, ms-seq, by text: 64 bits fit no double and
// need no parsing.
func compareIDs(a, b string) int {
	const ms = 13 // digits of a time of these years
	if len(a) == len(b) && len(a) > ms && a[ms] == '-' && b[ms] == '-' {
		return strings.Compare(a, b)
	}
	am, as := cutID(a)
	bm, bs := cutID(b)
	if c := compareDigits(am, bm); c != 0 {
		return c
	}
	return compareDigits(as, bs)
}

func cutID(id string) (ms, seq string) {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '-' {
			return id[:i], id[i+1:]
		}
	}
	return id, "0"
}

func compareDigits(a, b string) int {
	switch {
	case len(a) != len(b):
		return len(a) - len(b)
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
