package faultproxy

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCopyFramesTakesOneValue(t *testing.T) {
	values := []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123456789012345678901234567890\r\n",
		"$0\r\n\r\n", "$5\r\na\r\nb\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "=7\r\ntxt:a\r\n\r\n", "!3\r\nERR\r\n",
		"*2\r\n*2\r\n$1\r\nx\r\n*0\r\n:1\r\n", "%2\r\n+a\r\n*1\r\n:1\r\n+b\r\n%0\r\n", "~1\r\n:1\r\n",
		">2\r\n+message\r\n+x\r\n", "|1\r\n+ttl\r\n:9\r\n*1\r\n|1\r\n+a\r\n+b\r\n:5\r\n",
		"+" + strings.Repeat("long ", bufferSize) + "\r\n",
	}
	for _, want := range values {
		t.Run(want[:min(len(want), 20)], func(t *testing.T) {
			var got bytes.Buffer
			r := bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(want+"+next\r\n")), bufferSize)
			if err := copyFrames(&got, r, 1); err != nil {
				t.Fatal(err)
			}
			if got.String() != want {
				t.Errorf("copied %d bytes %.60q, want %d", got.Len(), got.String(), len(want))
			}
			if rest, _ := r.ReadString('\n'); rest != "+next\r\n" {
				t.Errorf("next value %q, want +next", rest)
			}
		})
	}
}

func TestCopyFramesRefusesWhatIsNotRESP(t *testing.T) {
	for _, data := range []string{"hello\r\n", "$x\r\n", "*1.5\r\n", "\r\n", "$5\r\nab"} {
		if err := copyFrames(&bytes.Buffer{}, bufio.NewReader(strings.NewReader(data)), 1); err == nil {
			t.Errorf("%q was taken for a value", data)
		}
	}
}
