package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 3*readBuffer)
	tests := []struct {
		name, text, want string
		max              int
	}{
		{"none", "", "", 0},
		{"no end of line", "a\nb", "1:a 2:b", 0},
		{"empty lines count", "\n\na\n", "3:a", 0},
		{"longer than the buffer", "a\n" + long + "\nb\n", "1:a 2:" + long + " 3:b", 0},
		{"just short enough", "aaaa\nb\n", "1:aaaa 2:b", 4},
		{"too long", "aaaaa\nb\n", "1:! 2:b", 4},
		{"too long at the end", long, "1:!", readBuffer},
		{"too long and buffered", long + "\nb", "1:! 2:b", readBuffer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newLineReader(strings.NewReader(tt.text), "f")
			if tt.max > 0 {
				r.max = tt.max
			}
			var got []string
			for {
				l, err := r.next()
				if errors.Is(err, io.EOF) {
					break
				}
				text := string(l.json)
				if l.err != nil {
					text = "!"
				}
				got = append(got, fmt.Sprintf("%d:%s", l.number, text))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %.200q, want %.200q", s, tt.want)
			}
		})
	}
}
