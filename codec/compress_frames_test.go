package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// logText is about n bytes of text, as JSON, which compresses by about ratio.
func logText(n, ratio int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteByte('"')
	for b.Len() < n-1 {
		if r.IntN(ratio) == 0 {
			fmt.Fprintf(&b, "%08x", r.Uint32())
		} else {
			b.WriteString("customer")
		}
	}
	b.Truncate(max(1, n-1))
	b.WriteByte('"')
	return b.Bytes()
}

// stream compresses data by an encoder that does not know how much will come. It writes pieces
// of step bytes and flushes after each one, if step is not 0.
func stream(t *testing.T, data []byte, step int, w interface {
	Write([]byte) (int, error)
	Flush() error
	Close() error
}) {
	t.Helper()
	for len(data) > 0 && step > 0 {
		n := min(step, len(data))
		if _, err := w.Write(data[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		data = data[n:]
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func zstdFrame(t *testing.T, data []byte, step int, options ...zstd.EOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	stream(t, data, step, w)
	return out.Bytes()
}

func gzipMember(t *testing.T, data []byte, step int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Name, w.Comment, w.Extra = "a.json", "of another program", []byte("extra")
	stream(t, data, step, w)
	return out.Bytes()
}

func lz4Frame(t *testing.T, data []byte, step int, options ...lz4.Option) []byte {
	t.Helper()
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(options...); err != nil {
		t.Fatal(err)
	}
	stream(t, data, step, w)
	return out.Bytes()
}

func mustRead(t *testing.T, what string, c Codec, data, want []byte) {
	t.Helper()
	var got string
	if err := c.Decode(data, &got); err != nil || got != string(want[1:len(want)-1]) {
		t.Errorf("%s: %d bytes for %d: %v, got %d", what, len(data), len(want), err, len(got))
	}
}

// Most encoders of other programs write streams: no size stands in front.
func TestFramesOfAnyEncoderAreRead(t *testing.T) {
	tier.Sequential(t)
	lengths := []int{2, 100, 4500, 128<<10 - 1, 128 << 10, 128<<10 + 1, 256 << 10, 256<<10 + 1, 1 << 20}
	zstded, gzipped, lz4ed := Zstd(JSON), Gzip(JSON), LZ4(JSON)
	for _, n := range lengths {
		for _, ratio := range []int{1, 8, 100, 1 << 30} {
			text := logText(n, ratio)
			name := fmt.Sprintf("%d bytes, ratio %d", n, ratio)
			mustRead(t, "zstd: "+name, zstded, zstdFrame(t, text, 0), text)
			mustRead(t, "zstd, better: "+name, zstded, zstdFrame(t, text, 0, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderCRC(false)), text)
			mustRead(t, "zstd, small window: "+name, zstded, zstdFrame(t, text, 0, zstd.WithWindowSize(4<<10)), text)
			mustRead(t, "zstd, large window: "+name, zstded, zstdFrame(t, text, n/3+1, zstd.WithWindowSize(8<<20)), text)
			mustRead(t, "gzip: "+name, gzipped, gzipMember(t, text, n/2+1), text)
			mustRead(t, "lz4: "+name, lz4ed, lz4Frame(t, text, 0, lz4.BlockSizeOption(lz4.Block4Mb)), text)
			mustRead(t, "lz4, checksums: "+name, lz4ed, lz4Frame(t, text, n/2+1, lz4.BlockChecksumOption(true), lz4.SizeOption(uint64(n))), text)
		}
	}
}

func TestFramesAreConcatenated(t *testing.T) {
	text := logText(300<<10, 50)
	skip := func(magic uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, magic), 5), "notes"...)
	}
	a, b := text[:200<<10], text[200<<10:]
	for _, step := range []int{0, 100} {
		mustRead(t, "zstd", Zstd(JSON), bytes.Join([][]byte{skip(0x184d2a50), zstdFrame(t, a, step), skip(0x184d2a5f), zstdFrame(t, b, step), skip(0x184d2a51)}, nil), text)
		mustRead(t, "gzip", Gzip(JSON), append(gzipMember(t, a, step), gzipMember(t, b, step)...), text)
		mustRead(t, "lz4", LZ4(JSON), bytes.Join([][]byte{skip(0x184d2a50), lz4Frame(t, a, step), skip(0x184d2a51), lz4Frame(t, b, step)}, nil), text)
	}
	whole := Zstd(JSON)
	known, err := whole.Encode(string(a[1:]))
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := whole.Decode(append(skip(0x184d2a5a), known...), &got); err != nil || got != string(a[1:]) {
		t.Errorf("a frame with a size behind one to skip: %v", err)
	}
}

// What programs write of `printf '"%0100000d"' 7`: zstd, and lz4 with linked blocks.
func TestFramesOfTheirPrograms(t *testing.T) {
	want := []byte(fmt.Sprintf(`"%0100000d"`, 7))
	for codec, text := range map[Codec]string{
		Zstd(JSON): programZstd, LZ4(JSON): programLZ4,
	} {
		data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
		if err != nil {
			t.Fatal(err)
		}
		mustRead(t, codec.Name(), codec, data, want)
	}
}

// A frame of many small blocks may announce up to 128 KiB for each.
func TestFramesOfManyBlocksTakeWhatTheyHold(t *testing.T) {
	text := logText(64<<10, 50)
	data := zstdFrame(t, text, 64)
	most, stated, err := zstdSize(data)
	if err != nil || stated || most < 64<<20 {
		t.Fatalf("the blocks announce %d, %v, %v", most, stated, err)
	}
	codec, got := Zstd(JSON), ""
	all, _ := allocated(func() any { err = codec.Decode(data, &got); return nil })
	if err != nil || len(got) != len(text)-2 || all > 2<<20 {
		t.Errorf("%v: %d bytes allocated for %d", err, all, len(got))
	}
	if _, err := Zstd(JSON).(LimitedCodec).DecodeLimited(data, new(string), 1000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("with a small limit: %v", err)
	}
}

const (
	programZstd = `KLUv/QRYZQAAICIwNyIBAJuGOcACadgHJw==`
	programLZ4  = `BCJNGFRArgwBAAAvIjABAP////////////////////////////////////////////////////////////////////
//////////////////////////////////////////////////////////////////////////////////////////
//////////////////////////////////////////////////////////////////////////////////////////
//////////////////////////////////////////////////////////////////////////////////////////
///mUDAwMDAwuSrqEJIAAAAfMAEA//////////////////////////////////////////////////////////////
//////////////////////////////////////////////////////////////////////////////////////////
////////////////////////////EFAwMDA3IhXbCNUAAAAA7clkxw==`
)
