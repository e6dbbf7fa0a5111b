package entryid

import "testing"

func TestCompare(t *testing.T) {
	ascending := []string{"0-0", "0-9", "0-10", "1-0", "9-18446744073709551615", "10-0", "1700000000000-0", "18446744073709551615-18446744073709551615"}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := Compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("Compare(%s, %s) = %d", a, b, got)
			}
		}
	}
}
