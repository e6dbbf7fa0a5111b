package cli

import (
	"bytes"
	"io"
	"testing"

	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzLines splits any text into its lines that are not empty: in order, none twice.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\n\n {\"a\":1} \r\n\xef\xbb\xbf3"), 10)
	f.Add([]byte("\n\n\n"), 1)
	f.Add([]byte("123456789012345678901"), 16)
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		if limit < 1 || limit > 1<<16 {
			return
		}
		l := newLineReader(bytes.NewReader(data), "x")
		l.max = limit
		whole := bytes.Split(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
		for last := 0; ; {
			got, err := l.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.number <= last || got.number > len(whole) {
				t.Fatalf("line %d after %d, of %d", got.number, last, len(whole))
			}
			last = got.number
			if got.err == nil && !bytes.Equal(got.json, bytes.TrimSpace(whole[got.number-1])) {
				t.Fatalf("line %d is %q, want %q", got.number, got.json, whole[got.number-1])
			}
		}
	})
}
