// Package python has the partitioners of Python's runnel, so that producers in both languages
// keep the order per key.
//
// Python hashes repr(key), which depends on the type of the key, while a key is a string here:
// take Partitioner if the key is a str in Python, IntPartitioner if it is an int. Of 16
// partitions the str 'abc' goes to 1 and the int 1 to 4; the str '1' goes elsewhere.
//
// Python hashes with xxh64 only if its package xxhash is installed, as runnel[fast] does, and
// otherwise with md5. For md5 take the partitioners with MD5: they send both 'abc' and 1 to 11.
// runnel.hashing.default in the Python that sends names its hash.
//
// Which characters repr escapes depends on the version of Unicode. Python and Go agree unless
// a key has a character that was added between their versions.
package python

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/runnel-go/runnel"
)

// The names of the partitioners are stored in the metadata of streams. All are safe for
// concurrent use.
var (
	// Partitioner hashes the key as Python's repr writes a str, with its quotes.
	// Bytes that are not UTF-8 count as what Python's surrogateescape makes of them.
	Partitioner = &runnel.Partitioner{Name: "python-repr-xxh64", Func: pythonStr}

	// IntPartitioner hashes the key as it is, which must be what Python's repr
	// writes: strconv.Itoa for an int. It serves any other type of key whose repr the
	// key function returns.
	IntPartitioner = &runnel.Partitioner{Name: "python-int-xxh64", Func: runnel.XXHash.Func}

	// MD5Partitioner is Partitioner for a Python without xxhash.
	MD5Partitioner = &runnel.Partitioner{Name: "python-repr-md5", Func: func(key string, partitions int) int {
		var room [128]byte
		return moduloMD5(appendRepr(room[:0], key), partitions)
	}}

	// IntMD5Partitioner is IntPartitioner for a Python without xxhash.
	IntMD5Partitioner = &runnel.Partitioner{Name: "python-int-md5", Func: func(key string, partitions int) int {
		var room [128]byte
		return moduloMD5(append(room[:0], key...), partitions)
	}}
)

// moduloMD5 takes the digest as one number, its first byte the highest.
func moduloMD5(repr []byte, partitions int) int {
	digest := md5.Sum(repr)
	high, low := binary.BigEndian.Uint64(digest[:8]), binary.BigEndian.Uint64(digest[8:])
	return int(bits.Rem64(high, low, uint64(partitions)))
}

func pythonStr(key string, partitions int) int {
	var room [128]byte
	return int(xxhash.Sum64(appendRepr(room[:0], key)) % uint64(partitions))
}

// appendRepr appends what repr(s) is in Python 3.
func appendRepr(to []byte, s string) []byte {
	quote := reprQuote(s)
	to = append(to, quote)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			r = 0xdc00 + rune(s[i])
		}
		i += size
		switch {
		case r == rune(quote) || r == '\\':
			to = append(to, '\\', byte(r))
		case r == '\n':
			to = append(to, `\n`...)
		case r == '\r':
			to = append(to, `\r`...)
		case r == '\t':
			to = append(to, `\t`...)
		case unicode.IsPrint(r):
			to = utf8.AppendRune(to, r)
		case r < 0x100:
			to = fmt.Appendf(to, `\x%02x`, r)
		case r < 0x10000:
			to = fmt.Appendf(to, `\u%04x`, r)
		default:
			to = fmt.Appendf(to, `\U%08x`, r)
		}
	}
	return append(to, quote)
}

// reprQuote is ', but for strings that contain ' and no ".
func reprQuote(s string) byte {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return '"'
	}
	return '\''
}
