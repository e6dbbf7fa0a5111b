package codec

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

// Gzip returns a Codec that compresses what c encodes, named "gzip+" and c's name.
// It is a LimitedCodec. Gzip panics if c is nil or a FieldCodec.
func Gzip(c Codec) Codec { return compressing("gzip", c, gzipped{}) }

// Zstd returns a Codec that compresses what c encodes, named "zstd+" and c's name.
// It is a LimitedCodec, and reads frames of any encoder, but for those with a dictionary. Zstd
// panics if c is nil or a FieldCodec.
//
// Make one per stream, not one per record: it holds a few hundred kilobytes for each CPU.
func Zstd(c Codec) Codec { return compressing("zstd", c, newZstded()) }

// LZ4 returns a Codec that compresses what c encodes into an LZ4 frame, named
// "lz4+" and c's name. It is a LimitedCodec. LZ4 panics if c is nil or a FieldCodec.
func LZ4(c Codec) Codec { return compressing("lz4", c, lz4ed{}) }

const (
	// firstLimit bounds the bytes of a record at the first try to decode it.
	firstLimit = 256 << 10
	// limitGrowth is the factor between one try and the next.
	limitGrowth = 4
)

// A compression is one way to compress. Neither method retains anything.
type compression interface {
	// deflate writes to an empty buffer.
	deflate(to *bytes.Buffer, data []byte) error
	// inflate replaces what is in the buffer. It fails if there are more than limit bytes.
	inflate(to *bytes.Buffer, data []byte, limit int64) error
}

type compressed struct {
	name string
	of   Codec
	how  compression
}

func compressing(name string, of Codec, how compression) Codec {
	if of == nil {
		panic("runnel: " + name + " of a nil Codec")
	}
	if _, ok := of.(FieldCodec); ok {
		panic("runnel: " + name + " of " + of.Name() + ", which has no payload to compress")
	}
	return compressed{name, of, how}
}

func (c compressed) Name() string { return c.name + "+" + c.of.Name() }

// Check calls Check of the wrapped codec.
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

func (c compressed) Encode(record any) ([]byte, error) {
	return c.EncodeLimited(record, DefaultLimit)
}

func (c compressed) EncodeLimited(record any, limit int64) (_ []byte, err error) {
	defer recovered("encode", record, &err)
	data, err := EncodeWithin(c.of, record, limit)
	if err != nil {
		return nil, err
	}
	buf := codecBuffers.Get().(*bytes.Buffer)
	defer putBuffer(buf)
	if err := c.how.deflate(buf, data); err != nil {
		return nil, fmt.Errorf("encode %T: %s: %w", record, c.name, err)
	}
	return owned(buf, buf.Bytes()), nil
}

func (c compressed) Decode(data []byte, record any) error {
	for limit := int64(firstLimit); ; limit *= limitGrowth {
		if _, err := c.DecodeLimited(data, record, limit); limit == DefaultLimit || !errors.Is(err, ErrTooLarge) {
			return err
		}
	}
}

func (c compressed) DecodeLimited(data []byte, record any, limit int64) (takes int64, err error) {
	defer recovered("decode", record, &err)
	buf := codecBuffers.Get().(*bytes.Buffer)
	defer putBuffer(buf)
	if err := c.how.inflate(buf, data, limit); err != nil {
		return int64(len(data)), fmt.Errorf("decode %T: %s: %w", record, c.name, err)
	}
	if of, ok := c.of.(LimitedCodec); ok {
		return of.DecodeLimited(buf.Bytes(), record, limit)
	}
	return int64(buf.Len()), c.of.Decode(buf.Bytes(), record)
}

// readLimited reads all of what again returns, which may be a bomb. If a buffer does not
// suffice, reading begins anew with one of four times its size, up to the limit.
func readLimited(to *bytes.Buffer, limit int64, again func() (io.Reader, error)) error {
	for size := max(limit/limitGrowth, 1); ; size = min(limitGrowth*size, limit) {
		room(to, size)
		r, err := again()
		if err != nil {
			return err
		}
		buf := to.AvailableBuffer()[:size]
		n, err := io.ReadFull(r, buf)
		if n == len(buf) {
			var more [1]byte
			n, err := io.ReadFull(r, more[:])
			switch {
			case n > 0 && size == limit:
				return TooLarge(limit)
			case n > 0:
				continue
			case err != io.EOF:
				return err
			}
		} else if err != io.ErrUnexpectedEOF && err != io.EOF {
			return err
		}
		to.Write(buf[:n])
		return nil
	}
}

// room empties a buffer and makes it hold size bytes. What it held before is let go first.
func room(to *bytes.Buffer, size int64) {
	to.Reset()
	if int64(to.Cap()) < size {
		*to = bytes.Buffer{}
		*to = *bytes.NewBuffer(make([]byte, 0, size))
	}
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

func (gzipped) inflate(to *bytes.Buffer, data []byte, limit int64) error {
	s := gzipReaders.Get().(*gzipSource)
	defer gzipReaders.Put(s)
	defer s.src.Reset(nil)
	return readLimited(to, limit, func() (io.Reader, error) {
		s.src.Reset(data)
		return whole{&s.gz}, unexpectedEOF(s.gz.Reset(&s.src))
	})
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

func (lz4ed) inflate(to *bytes.Buffer, data []byte, limit int64) error {
	if len(data) == 0 {
		return io.ErrUnexpectedEOF
	}
	s := lz4Readers.Get().(*lz4Source)
	err := readLimited(to, limit, func() (io.Reader, error) {
		s.src.Reset(data)
		s.lz.Reset(&s.src)
		return whole{s.lz}, nil
	})
	if err != nil {
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
		zstd.WithDecoderMaxMemory(1<<40), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err)
	}
	return zstded{enc, dec}
}

func (z zstded) deflate(to *bytes.Buffer, data []byte) error {
	_, err := to.Write(z.enc.EncodeAll(data, to.AvailableBuffer()))
	return err
}

// inflate offers the decoder a buffer, and a larger one in place of it until it suffices. The
// size in a header is the sender's word: by itself it allocates nothing.
func (z zstded) inflate(to *bytes.Buffer, data []byte, limit int64) error {
	if len(data) == 0 {
		return io.ErrUnexpectedEOF
	}
	most, stated, err := zstdSize(data)
	if err != nil {
		return err
	}
	size := min(limit/limitGrowth, most)
	if stated {
		if size = most; most > limit {
			return TooLarge(limit)
		}
	}
	for {
		size = min(size, limit)
		room(to, size+zstdSlack)
		out, err := z.dec.DecodeAll(data, to.AvailableBuffer()[:0:size+zstdSlack])
		switch {
		case int64(len(out)) > limit:
			return TooLarge(limit)
		case err == nil:
			to.Write(out)
			return nil
		case size == most:
			return err
		case size == limit:
			return fmt.Errorf("%w, or damaged: %w", TooLarge(limit), err)
		}
		// The decoder has several errors for a buffer that is too small, and not all have names.
		size = min(limitGrowth*size, most)
	}
}

// zstdSlack is what a buffer has beyond its size, so that the decoder never fails at its very end.
const zstdSlack = 64

// zstdSize returns the most that frames can give back, by the headers of their blocks: a
// compressed block has at most 128 KiB. stated reports whether all frames say it themselves.
func zstdSize(data []byte) (most int64, stated bool, err error) {
	stated = true
	for len(data) > 0 {
		var h zstd.Header
		if data, err = h.DecodeAndStrip(data); err != nil {
			return 0, false, unexpectedEOF(err)
		}
		if h.Skippable {
			if int64(len(data)) < int64(h.SkippableSize) {
				return 0, false, io.ErrUnexpectedEOF
			}
			data = data[h.SkippableSize:]
			continue
		}
		var frame int64
		if data, frame, err = zstdBlocks(data); err != nil {
			return 0, false, err
		}
		if h.HasCheckSum {
			data = data[min(4, len(data)):] // the decoder misses what is missing
		}
		stated = stated && h.HasFCS
		if h.HasFCS && h.FrameContentSize < uint64(frame) {
			frame = int64(h.FrameContentSize)
		}
		most += frame
	}
	return most, stated, nil
}

// zstdBlocks passes over the blocks of a frame, and returns the most that they can give back.
func zstdBlocks(data []byte) (rest []byte, most int64, err error) {
	for {
		if len(data) < 3 {
			return nil, 0, io.ErrUnexpectedEOF
		}
		header := int(data[0]) | int(data[1])<<8 | int(data[2])<<16
		last, kind, size := header&1 == 1, header>>1&3, header>>3
		data = data[3:]
		switch kind {
		case 0: // raw
			most += int64(size)
		case 1: // one byte, repeated
			most += int64(size)
			size = 1
		default:
			most += 128 << 10
		}
		if len(data) < size {
			return nil, 0, io.ErrUnexpectedEOF
		}
		if data = data[size:]; last {
			return data, most, nil
		}
	}
}

// whole reads data that must not end in the middle: its error is never taken for the end.
type whole struct{ io.Reader }

func (r whole) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.ErrUnexpectedEOF {
		err = errTorn
	}
	return n, err
}

var errTorn = fmt.Errorf("the payload is incomplete: %w", io.ErrUnexpectedEOF)

// unexpectedEOF is err, but for the end of data, which is an error where it stands.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
