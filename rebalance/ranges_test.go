package rebalance

import "testing"

func TestRanges(t *testing.T) {
	for _, tt := range []struct {
		of   []int
		want string
	}{
		{nil, "none"},
		{[]int{7}, "7"},
		{[]int{0, 1}, "0-1"},
		{[]int{5, 3, 4, 9, 1, 4}, "1 3-5 9"},
		{[]int{0, 2, 4, 6, 7}, "0 2 4 6-7"},
	} {
		before := append([]int(nil), tt.of...)
		if got := Ranges(tt.of); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.of, got, tt.want)
		}
		for i := range before {
			if tt.of[i] != before[i] {
				t.Errorf("%v was changed to %v", before, tt.of)
			}
		}
	}
}
