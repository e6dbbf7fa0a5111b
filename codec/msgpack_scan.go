package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errPackShort = errors.New("msgpack: unexpected end")
	errPackTail  = errors.New("msgpack: data after the value")
	errPackDeep  = fmt.Errorf("msgpack: nested deeper than %d", maxDepth)
)

// scanMsgPack checks that data is one MessagePack value, and returns what may be
// given to the decoder: data itself, or a copy. takes is an upper bound of the bytes that
// the record takes.
//
// The decoder allocates what a header announces, up to 2^32 elements for five
// bytes, and recurses as deep as the data goes; either ends the process. After the
// scan each announced element is known to be there.
//
// It also reads an extension where a map is expected as if its body were the map's
// header. For a timestamp of 8 bytes that may be any header, and from there on it
// would read what was never scanned. So these are written anew in 12 bytes, which
// begin with nanoseconds and therefore with no header of a map; other extensions
// are refused.
func scanMsgPack(data []byte, w weights) (checked []byte, takes int64, err error) {
	s := packScan{data: data, weights: w, takes: int64(len(data))}
	var room [32]int
	open := append(room[:0], 1) // values that are still to come, at each depth
	for len(open) > 0 {
		top := len(open) - 1
		if open[top] == 0 {
			open = open[:top]
			continue
		}
		open[top]--
		n, err := s.value()
		if err != nil {
			return nil, s.takes, err
		}
		if n == 0 {
			continue
		}
		if len(open) == maxDepth {
			return nil, s.takes, errPackDeep
		}
		open = append(open, n)
	}
	if s.pos < len(data) {
		return nil, s.takes, errPackTail
	}
	if s.out != nil {
		return append(s.out, data[s.copied:]...), s.takes, nil
	}
	return data, s.takes, nil
}

type packScan struct {
	weights
	takes  int64
	data   []byte
	pos    int
	out    []byte // what replaces data[:copied]
	copied int
}

// value passes over a value, or over the header of a map or an array; then it
// returns how many values follow.
func (s *packScan) value() (values int, err error) {
	c, err := s.uint(1)
	if err != nil {
		return 0, err
	}
	switch {
	case c <= 0x7f || c >= 0xe0:
		return 0, nil
	case c <= 0x8f:
		return s.mapOf(c & 0x0f), nil
	case c <= 0x9f:
		return s.arrayOf(c & 0x0f), nil
	case c <= 0xbf:
		return 0, s.skip(c & 0x1f)
	}
	switch c {
	case 0xc0, 0xc2, 0xc3: // nil, false, true
		return 0, nil
	case 0xc4, 0xc5, 0xc6: // bin
		return 0, s.skipSized(1 << (c - 0xc4))
	case 0xd9, 0xda, 0xdb: // str
		return 0, s.skipSized(1 << (c - 0xd9))
	case 0xca: // float 32
		return 0, s.skip(4)
	case 0xcb: // float 64
		return 0, s.skip(8)
	case 0xcc, 0xcd, 0xce, 0xcf: // uint
		return 0, s.skip(1 << (c - 0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3: // int
		return 0, s.skip(1 << (c - 0xd0))
	case 0xdc, 0xdd: // array
		n, err := s.uint(2 << (c - 0xdc))
		return s.arrayOf(n), err
	case 0xde, 0xdf: // map
		n, err := s.uint(2 << (c - 0xde))
		return s.mapOf(n), err
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext
		return 0, s.extension(s.pos-1, 1<<(c-0xd4))
	case 0xc7, 0xc8, 0xc9: // ext
		start := s.pos - 1
		n, err := s.uint(1 << (c - 0xc7))
		if err != nil {
			return 0, err
		}
		return 0, s.extension(start, n)
	}
	return 0, fmt.Errorf("msgpack: invalid code %#x", c)
}

// arrayOf and mapOf note what n elements or members take, and return how many values follow.
func (s *packScan) arrayOf(n int) int {
	s.takes += int64(n) * s.element
	return n
}

func (s *packScan) mapOf(n int) int {
	s.takes += int64(n)*s.member + s.object
	return 2 * n
}

// extension passes over the type and the n bytes of an extension that began at start.
func (s *packScan) extension(start, n int) error {
	kind, err := s.uint(1)
	if err != nil {
		return err
	}
	body := s.pos
	if err := s.skip(n); err != nil {
		return err
	}
	if int8(kind) != -1 {
		return fmt.Errorf("msgpack: extension type %d is not supported", int8(kind))
	}
	sec, nsec := uint64(0), uint64(0)
	switch b := s.data[body:]; n {
	case 4:
		sec = uint64(binary.BigEndian.Uint32(b))
	case 8:
		v := binary.BigEndian.Uint64(b)
		nsec, sec = v>>34, v&(1<<34-1)
	case 12:
		nsec, sec = uint64(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint64(b[4:])
	default:
		return fmt.Errorf("msgpack: timestamp of %d bytes", n)
	}
	if nsec >= 1e9 {
		return fmt.Errorf("msgpack: timestamp with %d nanoseconds", nsec)
	}
	if startsMap(s.data[body]) {
		s.out = append(s.out, s.data[s.copied:start]...)
		s.out = append(s.out, 0xc7, 12, 0xff)
		s.out = binary.BigEndian.AppendUint32(s.out, uint32(nsec))
		s.out = binary.BigEndian.AppendUint64(s.out, sec)
		s.copied = s.pos
	}
	return nil
}

// startsMap reports whether the decoder takes c for the header of a map.
func startsMap(c byte) bool {
	return c >= 0x80 && c <= 0x8f || c == 0xc0 || c == 0xde || c == 0xdf
}

// uint reads n bytes, at most 4, as a number, twice of which fits an int of 32 bits.
// No payload has as many bytes.
func (s *packScan) uint(n int) (int, error) {
	if n > len(s.data)-s.pos {
		return 0, errPackShort
	}
	v := uint32(0)
	for _, b := range s.data[s.pos : s.pos+n] {
		v = v<<8 | uint32(b)
	}
	s.pos += n
	if v >= 1<<30 {
		return 0, errPackShort
	}
	return int(v), nil
}

func (s *packScan) skip(n int) error {
	if n > len(s.data)-s.pos {
		return errPackShort
	}
	s.pos += n
	return nil
}

func (s *packScan) skipSized(lengthBytes int) error {
	n, err := s.uint(lengthBytes)
	if err != nil {
		return err
	}
	return s.skip(n)
}
