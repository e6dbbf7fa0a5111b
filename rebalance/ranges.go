package rebalance

import (
	"slices"
	"strconv"
	"strings"
)

// Ranges formats partitions for people, in ascending order: "0-15 17 20-22", or "none".
func Ranges(partitions []int) string {
	if len(partitions) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(partitions))
	var b strings.Builder
	for len(sorted) > 0 {
		first, last := sorted[0], sorted[0]
		for len(sorted) > 0 && sorted[0] <= last+1 {
			last, sorted = sorted[0], sorted[1:]
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(last))
		}
	}
	return b.String()
}
