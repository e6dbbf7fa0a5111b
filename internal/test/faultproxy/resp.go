package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

const (
	bufferSize = 64 << 10
	headSize   = 16 << 10
)

var errProtocol = errors.New("not RESP")

// request is one request of a client: its beginning in memory, the rest still to be read.
type request struct {
	head    []byte
	name    string // upper case; empty for what Redis does not answer, such as an empty line
	partial int64  // bytes left of the bulk string that did not fit into head
	items   int    // bulk strings after it
}

// readRequest reads as much of the next request as fits into headSize. On errProtocol head holds what was read.
func readRequest(r *bufio.Reader) (*request, error) {
	q := &request{}
	line, err := q.line(r)
	if err != nil {
		return q, err
	}
	if line[0] != '*' {
		if words := bytes.Fields(line); len(words) > 0 {
			q.name = strings.ToUpper(string(words[0]))
		}
		return q, nil
	}
	n, err := count(line)
	if err != nil {
		return q, err
	}
	for i := range n {
		if line, err = q.line(r); err != nil {
			return q, err
		}
		size, err := count(line)
		if line[0] != '$' || err != nil || size < 0 {
			return q, errProtocol
		}
		if len(q.head)+size > headSize {
			q.partial, q.items = int64(size)+2, n-i-1
			return q, nil
		}
		at := len(q.head)
		q.head = append(q.head, make([]byte, size+2)...)
		if _, err := io.ReadFull(r, q.head[at:]); err != nil {
			return q, err
		}
		if i == 0 {
			q.name = strings.ToUpper(string(q.head[at : at+size]))
		}
	}
	return q, nil
}

func (q *request) line(r *bufio.Reader) ([]byte, error) {
	at := len(q.head)
	line, err := r.ReadSlice('\n')
	q.head = append(q.head, line...)
	if errors.Is(err, bufio.ErrBufferFull) {
		err = errProtocol
	}
	return q.head[at:], err
}

// writeTo writes the whole request, reading on from r where head ends.
func (q *request) writeTo(w io.Writer, r *bufio.Reader) error {
	if _, err := w.Write(q.head); err != nil {
		return err
	}
	if err := copyBytes(w, r, q.partial); err != nil {
		return err
	}
	return copyFrames(w, r, q.items)
}

// copyFrames copies that many complete RESP values, of version 2 or 3 and however nested.
func copyFrames(w io.Writer, r *bufio.Reader, frames int) error {
	for frames > 0 {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		parts, size, err := measure(line)
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		if err := copyBytes(w, r, size); err != nil {
			return err
		}
		frames += parts - 1
	}
	return nil
}

// copyBytes is io.CopyN without w's ReadFrom: filling w's buffer from a reader that flushes w would corrupt it.
func copyBytes(w io.Writer, r *bufio.Reader, n int64) error {
	for n > 0 {
		if _, err := r.Peek(1); err != nil {
			return err
		}
		piece, _ := r.Peek(int(min(n, int64(r.Buffered()))))
		if _, err := w.Write(piece); err != nil {
			return err
		}
		_, _ = r.Discard(len(piece))
		n -= int64(len(piece))
	}
	return nil
}

// readLine is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	line, err = r.ReadBytes('\n')
	return append(long, line...), err
}

// measure returns how many values a header line announces and how many bytes follow it directly.
func measure(line []byte) (parts int, size int64, err error) {
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return 0, 0, nil
	}
	n, err := count(line)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case n < 0: // null, in RESP2
		return 0, 0, nil
	case line[0] == '$' || line[0] == '!' || line[0] == '=':
		return 0, int64(n) + 2, nil
	case line[0] == '*' || line[0] == '~' || line[0] == '>':
		return n, 0, nil
	case line[0] == '%':
		return 2 * n, 0, nil
	case line[0] == '|': // attributes stand before the value they belong to
		return 2*n + 1, 0, nil
	}
	return 0, 0, errProtocol
}

func count(line []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
	if err != nil {
		return 0, errProtocol
	}
	return n, nil
}
