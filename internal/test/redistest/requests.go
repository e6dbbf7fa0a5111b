package redistest

import (
	"bytes"
	"strconv"
	"strings"
)

// maxName bounds how much of a command's name is kept.
const maxName = 64

// requestParser finds the commands in a stream of RESP requests that arrives in pieces of any size, without keeping
// their payloads.
type requestParser struct {
	line  []byte // header read so far: "*3" or "$5"
	items int    // bulk strings left in this request
	skip  int    // bytes left of the present bulk string and its CRLF
	named bool   // the first bulk string of this request was seen
	name  []byte
}

// feed takes the next bytes and calls found with the name of each command that has begun, upper case.
func (p *requestParser) feed(b []byte, found func(name string)) {
	for len(b) > 0 {
		if p.skip > 0 {
			b = p.take(b, found)
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			p.line = append(p.line, b...)
			return
		}
		p.line = append(p.line, b[:end]...)
		b = b[end+1:]
		p.header(strings.TrimSuffix(string(p.line), "\r"), found)
		p.line = p.line[:0]
	}
}

func (p *requestParser) take(b []byte, found func(string)) []byte {
	n := min(p.skip, len(b))
	if !p.named {
		p.name = append(p.name, b[:min(n, maxName)]...)
	}
	p.skip -= n
	if p.skip == 0 {
		p.items--
		if !p.named {
			p.named = true
			found(strings.ToUpper(strings.TrimSuffix(string(p.name), "\r\n")))
		}
	}
	return b[n:]
}

func (p *requestParser) header(line string, found func(string)) {
	switch {
	case line == "":
	case line[0] == '$' && p.items > 0:
		n, _ := strconv.Atoi(line[1:])
		p.skip = n + len("\r\n")
	case line[0] == '*':
		p.items, _ = strconv.Atoi(line[1:])
		p.named, p.name = false, p.name[:0]
	default: // an inline command
		found(strings.ToUpper(strings.Fields(line + " ?")[0]))
	}
}
