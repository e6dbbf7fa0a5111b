package codec

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/runnel-go/runnel/internal/test/tier"
)

var wrappers = map[string]func(Codec) Codec{"gzip": Gzip, "zstd": Zstd, "lz4": LZ4}

func TestCompressedSizes(t *testing.T) {
	tier.Sequential(t)
	for name, wrap := range wrappers {
		c := wrap(MsgPack)
		for _, size := range []int{0, 1, 100, 64<<10 - 1, 64 << 10, 64<<10 + 1, 5 << 20} {
			noise := make([]byte, size)
			rand.Read(noise)
			for _, record := range [][]byte{noise, bytes.Repeat([]byte("a"), size)} {
				data, err := c.Encode(record)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				var got []byte
				if err := c.Decode(data, &got); err != nil || !bytes.Equal(got, record) {
					t.Errorf("%s of %d bytes: %v, got %d bytes", name, size, err, len(got))
				}
			}
			data, err := c.Encode(bytes.Repeat([]byte("a"), size))
			if err != nil || size >= 64<<10 && len(data) > size/50 {
				t.Errorf("%s: %d equal bytes became %d, %v", name, size, len(data), err)
			}
		}
	}
}

func TestCompressedRefuses(t *testing.T) {
	for name, wrap := range wrappers {
		c := wrap(JSON)
		good, err := c.Encode(strings.Repeat("payload ", 1000))
		if err != nil {
			t.Fatal(err)
		}
		for n := range good {
			if err := c.Decode(good[:n], new(string)); err == nil {
				t.Errorf("%s: %d of %d bytes were accepted", name, n, len(good))
			} else if !strings.Contains(err.Error(), "decode *string: ") {
				t.Errorf("%s: %v does not name the type", name, err)
			}
		}
		for what, data := range map[string]string{"text": "plain text", "json": `"text"`, "zeros": strings.Repeat("\x00", 100), "tail": string(good) + "x"} {
			if err := c.Decode([]byte(data), new(string)); err == nil {
				t.Errorf("%s: %s was accepted", name, what)
			}
		}
		flipped := bytes.Clone(good)
		flipped[len(flipped)-1] ^= 1
		if err := c.Decode(flipped, new(string)); err == nil {
			t.Errorf("%s: a wrong checksum was accepted", name)
		}
		var got string
		if err := c.Decode(good, &got); err != nil || len(got) != 8000 {
			t.Errorf("%s: after errors: %v, %d bytes", name, err, len(got))
		}
	}
}

func TestCompressedLimit(t *testing.T) {
	tier.Sequential(t)
	const limit = 100_000
	for name, wrap := range wrappers {
		c := wrap(JSON).(LimitedCodec)
		atLimit, over, bomb := strings.Repeat("a", limit-2), strings.Repeat("a", limit-1), strings.Repeat("a", 50*limit)
		data, err := c.EncodeLimited(atLimit, limit)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got string
		if takes, err := c.DecodeLimited(data, &got, limit); err != nil || got != atLimit || takes != limit {
			t.Errorf("%s: at the limit: %v, takes %d", name, err, takes)
		}
		for _, record := range []string{over, bomb} {
			if _, err := c.EncodeLimited(record, limit); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: encoded %d bytes: %v", name, len(record), err)
			}
			if data, err = c.Encode(record); err != nil {
				t.Fatal(err)
			}
			got = ""
			if _, err := c.DecodeLimited(data, &got, limit); !errors.Is(err, ErrTooLarge) || got != "" {
				t.Errorf("%s: decoded %d bytes: %v", name, len(record), err)
			}
		}
	}
}

// A header that announces 500 MB allocates nothing of the kind.
func TestZstdHeaderAllocatesNothing(t *testing.T) {
	frame := binary.LittleEndian.AppendUint32(nil, 0xfd2fb528)
	frame = append(frame, 0xa0) // one segment, content size in 4 bytes
	frame = binary.LittleEndian.AppendUint32(frame, 500_000_000)
	frame = append(frame, 0x01, 0x00, 0x00) // the last block, raw, empty
	c := Zstd(JSON)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := c.Decode(frame, new(string))
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("was accepted")
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes allocated for %d", grown, len(frame))
	}
}

func TestCompressedPanics(t *testing.T) {
	for name, wrap := range wrappers {
		for _, of := range []Codec{nil, Fields} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s of %v did not panic", name, of)
					}
				}()
				wrap(of)
			}()
		}
	}
}

// Fake time is how users test: what is pooled must work on both sides of a bubble.
func TestCodecsInBubbles(t *testing.T) {
	codecs := payloadCodecs()
	use := func(codecs []Codec) {
		for _, c := range codecs {
			keeps(t, c, address{"a", 1})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		use(codecs)
		use(payloadCodecs())
	})
	use(codecs)
	synctest.Test(t, func(t *testing.T) { use(codecs) })
}

// pythonJSON as Python's gzip.compress writes it.
const pythonGzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x25\xcc\x31\x0a\x84\x30\x10\x46\xe1\xab\xc8\x5f\x58" +
	"\x85\x65\x4c\x36\x26\x06\xd9\x93\xa4\x89\x1a\x1b\x75\x02\x92\xa9\xc4\xbb\x2b\x6c\xf3\xf8\xaa\x77\x81\xd3\x91" +
	"\x11\x30\xa7\x35\x0a\x51\x1e\x9a\x28\x8b\x37\xcb\xdb\x4c\xd4\x8c\xd3\xaf\x8d\x80\x42\x3a\x8a\x70\x45\xe8\x3e" +
	"\x56\x61\xfe\x7b\xd0\xda\x18\xa7\xc9\xf4\xde\x7e\x9d\xb3\x9e\x9c\x42\xd9\x10\xea\x29\x59\x81\x0b\xbf\x67\x96" +
	"\x7d\xbf\x1f\x10\x55\xfb\xf8\x67\x00\x00\x00"

func TestGzipFromPython(t *testing.T) {
	var got fromPython
	if err := Gzip(JSON).Decode([]byte(pythonGzip), &got); err != nil || got != wantPython {
		t.Errorf("got %+v, %v", got, err)
	}
}
