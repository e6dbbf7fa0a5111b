package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	linesPerBatch = 1000
	bytesPerBatch = 1 << 20   // a longer line goes alone
	maxLine       = 512 << 20 // Redis takes no longer value
	readBuffer    = 256 << 10
)

// A line of a file that is not empty.
type line struct {
	file   string
	number int
	json   []byte
	err    error // why the line cannot be used
}

// A batch is lines to send together, or an error that ended the reading.
type batch struct {
	lines []line
	err   error
}

// lineReader reads the lines of one file, each into memory of its own.
type lineReader struct {
	r      *bufio.Reader
	file   string
	number int
	max    int
}

func newLineReader(r io.Reader, file string) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBuffer), file: file, max: maxLine}
}

// next returns the next line that is not empty, io.EOF after the last.
func (l *lineReader) next() (line, error) {
	for {
		text, tooLong, err := l.read()
		if err != nil {
			return line{}, err
		}
		l.number++
		if l.number == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		text = bytes.TrimSpace(text)
		if tooLong {
			return line{l.file, l.number, nil, fmt.Errorf("longer than %d MB, which is more than Redis takes", l.max>>20)}, nil
		}
		if len(text) > 0 {
			return line{l.file, l.number, text, nil}, nil
		}
	}
}

// read returns one line. It keeps nothing of one that is too long.
func (l *lineReader) read() (text []byte, tooLong bool, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		if len(text)+len(part) > l.max+1 {
			text, tooLong = nil, true
		}
		if !tooLong {
			text = append(text, part...)
		}
		switch {
		case err == nil:
			return text, tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(text) > 0 || tooLong):
			return text, tooLong, nil
		default:
			return nil, false, err
		}
	}
}

// array reports whether the file begins with "[". It consumes nothing, and waits for the first
// character other than space.
func (l *lineReader) array() bool {
	for n := 1; n <= 4096; n++ {
		text, err := l.r.Peek(n)
		text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
		if len(text) > 0 && !bytes.HasPrefix([]byte("\ufeff"), text) || err != nil {
			return err == nil && text[0] == '['
		}
	}
	return false
}

func dashFile(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// waiting reports whether the next line has not been read ahead, so that reading it may block.
func (l *lineReader) waiting() bool {
	ahead, _ := l.r.Peek(l.r.Buffered())
	return bytes.IndexByte(ahead, '\n') < 0
}

// readBatches sends the lines of all files to out, in order, until the last line or until ctx ends.
// It passes on the lines that have arrived without waiting for more. Unless records may be arrays, it
// refuses a file that is an array by the first character, since the array may be one line of any length.
func readBatches(ctx context.Context, files []string, arrays bool, stdin io.Reader, out chan<- batch) {
	defer close(out)
	pass := func(b batch) bool {
		if len(b.lines) == 0 && b.err == nil {
			return true
		}
		select {
		case out <- b:
			return b.err == nil
		case <-ctx.Done():
			return false
		}
	}
	for _, file := range files {
		if !readFile(file, arrays, stdin, pass) {
			return
		}
	}
}

func readFile(file string, arrays bool, stdin io.Reader, pass func(batch) bool) bool {
	r := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return pass(batch{err: err})
		}
		defer f.Close()
		r = f
	}
	lines := newLineReader(r, file)
	if !arrays && lines.array() {
		return pass(batch{err: fmt.Errorf("%s: this is a JSON array, and a record per line is needed: `jq -c '.[]'` makes lines of it; nothing of it was sent", dashFile(file))})
	}
	var b batch
	for size := 0; ; {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			return pass(b)
		}
		if err != nil {
			b.err = fmt.Errorf("%s: behind line %d: %w", file, lines.number, err)
			return pass(b)
		}
		if len(b.lines) > 0 && size+len(l.json) > bytesPerBatch {
			if !pass(b) {
				return false
			}
			b, size = batch{}, 0
		}
		b.lines, size = append(b.lines, l), size+len(l.json)
		if len(b.lines) == linesPerBatch || lines.waiting() {
			if !pass(b) {
				return false
			}
			b, size = batch{}, 0
		}
	}
}
