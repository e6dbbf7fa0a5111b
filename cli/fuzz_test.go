package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzArrange puts any command line into the order that its parser wants, without loss or
// invention.
func FuzzArrange(f *testing.F) {
	for _, line := range []string{"send orders {} --key x", "--output json status", "processor reset a/b --to -100 -y", "tail -- -x", "--", "status --output", "send --key=", "-"} {
		f.Add(line)
	}
	app := runnel.New("shop", nil)
	f.Cleanup(func() { app.Close() })
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		root := newProgram(app, strings.NewReader(""), io.Discard, io.Discard).root()
		arranged, _, err := arrange(root, args)
		if err != nil {
			return
		}
		want, got := without(args, "--"), without(arranged, "--")
		slices.Sort(want)
		slices.Sort(got)
		asked := append(without(want, "help"), "--help") // help as the first word
		slices.Sort(asked)
		if !slices.Equal(got, want) && !slices.Equal(got, asked) {
			t.Fatalf("%q has become %q", args, arranged)
		}
	})
}

func without(list []string, what string) []string {
	list = slices.Clone(list)
	if i := slices.Index(list, what); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	return list
}

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
