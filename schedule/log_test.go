package schedule

import (
	"slices"
	"strings"
	"testing"
)

// Lines end where they say so, and where they are too long, however they are written.
func TestLinesOfARun(t *testing.T) {
	long := strings.Repeat("x", logLine)
	for _, writes := range [][]string{
		{"a\r\n" + long + "yz\nb\n\nc"},
		{"a\r", "\n" + long[:logLine-1], "xy", "z\nb", "\n", "\n", "c"},
	} {
		l := newRunLog(nil, &run{})
		l.begun = true // nothing stores them
		close(l.done)
		w := lineWriter{l, "stdout"}
		for _, text := range writes {
			if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		l.close()
		var got []string
		for _, line := range l.take() {
			got = append(got, line.Text)
		}
		if want := []string{"a", long, "yz", "b", "", "c"}; !slices.Equal(got, want) {
			t.Errorf("%.20q, want %.20q", got, want)
		}
	}
}
