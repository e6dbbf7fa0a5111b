package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestReply(t *testing.T) {
	const entries = "*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$4\r\ndata\r\n$1\r\nx\r\n*2\r\n$3\r\n2-0\r\n*4\r\n$4\r\ndata\r\n$0\r\n\r\n$1\r\nk\r\n$1\r\nv\r\n"
	for _, tt := range []struct {
		name, raw string
		want      []string
	}{
		{"RESP3", "%1\r\n$1\r\na\r\n" + entries, []string{"a 1-0 x", "a 2-0 "}},
		{"RESP2", "*1\r\n*2\r\n$1\r\na\r\n" + entries, []string{"a 1-0 x", "a 2-0 "}},
		{"two streams", "%2\r\n$1\r\na\r\n" + entries + "$1\r\nb\r\n*0\r\n", []string{"a 1-0 x", "a 2-0 "}},
		{"nothing, RESP3", "_\r\n", nil},
		{"nothing, RESP2", "*-1\r\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			err := readReply([]byte(tt.raw), func(log, id, value string) { got = append(got, fmt.Sprint(log, " ", id, " ", value)) })
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	for _, raw := range []string{"", "%1\r\n", "%1\r\n$1\r\na\r\n*1\r\n*3\r\n", "$1\r\na\r\n", "%1\r\n$9\r\na\r\n", "%x\r\n", "*1\r\n*2\r\n$1\r\na\r\n" + entries[:40]} {
		if err := readReply([]byte(raw), func(string, string, string) {}); !errors.Is(err, errReply) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}
