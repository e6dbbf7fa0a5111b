package runnel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxInflated is the largest payload that a compressing codec gives back, 512 MiB,
// which is also Redis' own limit for a value. A longer one is a decode error.
const maxInflated = 512 << 20

var errInflated = errors.New("the payload is larger than allowed")

// Gzip returns a Codec that compresses what c encodes, named "gzip+" and c's name.
// Payloads larger than 512 MiB are refused. Gzip panics if c is nil or a FieldCodec.
func Gzip(c Codec) Codec { return compressing("gzip", c, gzipped{}) }

// Zstd returns a Codec that compresses what c encodes, named "zstd+" and c's name.
// Payloads larger than 512 MiB are refused. Zstd panics if c is nil or a FieldCodec.
//
// Make one per stream, not one per record: it holds a few hundred kilobytes for each CPU.
func Zstd(c Codec) Codec { return compressing("zstd", c, newZstded()) }

// LZ4 returns a Codec that compresses what c encodes into an LZ4 frame, named
// "lz4+" and c's name. Payloads larger than 512 MiB are refused. LZ4 panics if c is
// nil or a FieldCodec.
func LZ4(c Codec) Codec { return compressing("lz4", c, lz4ed{}) }

// compression is one way to compress. Both methods write to an empty buffer and
// retain nothing. inflate fails if there are more than limit bytes.
type compression interface {
	deflate(to *bytes.Buffer, data []byte) error
	inflate(to *bytes.Buffer, data []byte, limit int) error
}

type compressed struct {
	name  string
	of    Codec
	how   compression
	limit int
}

func compressing(name string, of Codec, how compression) Codec {
	if of == nil {
		panic("runnel: " + name + " of a nil Codec")
	}
	if _, ok := of.(FieldCodec); ok {
		panic("runnel: " + name + " of " + of.Name() + ", which has no payload to compress")
	}
	return compressed{name, of, how, maxInflated}
}

func (c compressed) Name() string { return c.name + "+" + c.of.Name() }

// Check asks the codec that is wrapped.
func (c compressed) Check(record reflect.Type) error {
	if of, ok := c.of.(TypeChecker); ok {
		return of.Check(record)
	}
	return nil
}

var codecBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		codecBuffers.Put(b)
	}
}

func (c compressed) Encode(record any) (_ []byte, err error) {
	defer recovered("encode", record, &err)
	data, err := c.of.Encode(record)
	if err != nil {
		return nil, err
	}
	if len(data) > c.limit {
		return nil, fmt.Errorf("encode %T: %s: %w", record, c.name, errInflated)
	}
	buf := codecBuffers.Get().(*bytes.Buffer)
	defer putBuffer(buf)
	if err := c.how.deflate(buf, data); err != nil {
		return nil, fmt.Errorf("encode %T: %s: %w", record, c.name, err)
	}
	return bytes.Clone(buf.Bytes()), nil
}

func (c compressed) Decode(data []byte, record any) (err error) {
	defer recovered("decode", record, &err)
	buf := codecBuffers.Get().(*bytes.Buffer)
	defer putBuffer(buf)
	if err := c.how.inflate(buf, data, c.limit); err != nil {
		return fmt.Errorf("decode %T: %s: %w", record, c.name, err)
	}
	return c.of.Decode(buf.Bytes(), record)
}

// copyLimited reads all of r, which may be a bomb.
func copyLimited(to *bytes.Buffer, r io.Reader, limit int) error {
	n, err := to.ReadFrom(io.LimitReader(r, int64(limit)+1))
	if err == nil && n > int64(limit) {
		err = errInflated
	}
	return err
}

type gzipped struct{}

type gzipSource struct {
	src bytes.Reader
	gz  gzip.Reader
}

var (
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
	gzipReaders = sync.Pool{New: func() any { return new(gzipSource) }}
)

func (gzipped) deflate(to *bytes.Buffer, data []byte) error {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(to)
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

func (gzipped) inflate(to *bytes.Buffer, data []byte, limit int) error {
	s := gzipReaders.Get().(*gzipSource)
	defer gzipReaders.Put(s)
	defer s.src.Reset(nil)
	s.src.Reset(data)
	if err := s.gz.Reset(&s.src); err != nil {
		return unexpectedEOF(err)
	}
	return copyLimited(to, &s.gz, limit)
}

type lz4ed struct{}

type lz4Source struct {
	src bytes.Reader
	lz  *lz4.Reader
}

var (
	lz4Writers = sync.Pool{New: func() any {
		w := lz4.NewWriter(nil)
		// Blocks of 64 KiB, because each writer holds one; no goroutines.
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ConcurrencyOption(1)); err != nil {
			panic(err)
		}
		return w
	}}
	lz4Readers = sync.Pool{New: func() any {
		s := new(lz4Source)
		s.lz = lz4.NewReader(&s.src)
		return s
	}}
)

func (lz4ed) deflate(to *bytes.Buffer, data []byte) error {
	w := lz4Writers.Get().(*lz4.Writer)
	w.Reset(to)
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	lz4Writers.Put(w)
	return nil
}

func (lz4ed) inflate(to *bytes.Buffer, data []byte, limit int) error {
	s := lz4Readers.Get().(*lz4Source)
	s.src.Reset(data)
	s.lz.Reset(&s.src)
	if len(data) == 0 {
		return io.ErrUnexpectedEOF
	}
	if err := copyLimited(to, s.lz, limit); err != nil {
		return err
	}
	s.src.Reset(nil)
	lz4Readers.Put(s)
	return nil
}

// zstded belongs to one codec, not to the process: its encoders and decoders wait
// in channels, and a channel made in a synctest bubble must not be used outside.
type zstded struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newZstded() zstded {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
	if err != nil {
		panic(err)
	}
	enc.EncodeAll(nil, nil) // makes its channel now
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)),
		zstd.WithDecoderMaxMemory(maxInflated), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err)
	}
	return zstded{enc, dec}
}

func (z zstded) deflate(to *bytes.Buffer, data []byte) error {
	_, err := to.Write(z.enc.EncodeAll(data, to.AvailableBuffer()))
	return err
}

// inflate offers the decoder a buffer and doubles it until it suffices. The size in
// the header, if there is one, is the sender's word: by itself it allocates nothing.
func (z zstded) inflate(to *bytes.Buffer, data []byte, limit int) error {
	if len(data) == 0 {
		return io.ErrUnexpectedEOF
	}
	// The shortest block has 4 bytes, and the longest gives back 128 KiB.
	most := int(min(int64(limit), int64(len(data))<<15))
	for size := min(8*len(data), most); ; size = min(2*size, most) {
		to.Grow(size)
		out, err := z.dec.DecodeAll(data, to.AvailableBuffer()[:0:size])
		switch {
		case !errors.Is(err, zstd.ErrDecoderSizeExceeded):
			to.Write(out)
			return err
		case size == limit:
			return errInflated
		case size == most:
			return err
		}
	}
}

// unexpectedEOF is err, but for the end of data, which is an error where it stands.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
