// Package codec turns the records of a stream into the bytes of its entries and back.
// MsgPack is the default; JSON and Fields can be read without Runnel, and Gzip, Zstd and
// LZ4 wrap another codec. All bound the memory of what they decode.
package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
)

// A Codec turns records into the payload of an entry and back. It has no state,
// is safe for concurrent use, and retains neither its arguments nor parts of them.
type Codec interface {
	// Name is stored in the stream's metadata, and every producer and worker
	// must agree on it: "msgpack", "json", "fields", "gzip+json".
	Name() string
	// Encode returns the payload of a record, which is the T of the stream and
	// no pointer to it. The caller owns the result.
	Encode(record any) ([]byte, error)
	// Decode sets record, a *T that points to a zero value. It must not write to
	// data, which may be the memory of a string, nor keep a reference to it.
	Decode(data []byte, record any) error
}

// ErrTooLarge is in the chain of the errors for a record that takes more memory than its
// limit; in a stream that is StreamOptions.MaxRecord.
var ErrTooLarge = errors.New("the record is too large")

// A LimitedCodec is a Codec that bounds the memory of a record. All codecs of this package
// but Fields are one. A Codec that wraps another one should pass the limit on; without these
// methods only the bytes of the entry are compared with StreamOptions.MaxRecord.
type LimitedCodec interface {
	Codec
	// EncodeLimited is Encode. It returns ErrTooLarge if DecodeLimited would.
	EncodeLimited(record any, limit int64) ([]byte, error)
	// DecodeLimited is Decode. It returns an upper bound of the bytes that the record takes:
	// its payload, unpacked, and the values that are made of it. If they may exceed limit, it
	// returns ErrTooLarge and leaves record as it was.
	DecodeLimited(data []byte, record any, limit int64) (takes int64, err error)
}

// A FieldCodec is a Codec whose entries carry native Redis fields in place of
// one payload field.
type FieldCodec interface {
	Codec
	// EncodeFields returns field, value, field, value, …
	EncodeFields(record any) ([]string, error)
	// DecodeFields sets record, a *T. It may keep the strings.
	DecodeFields(fields map[string]string, record any) error
}

// A TypeChecker is a Codec that refuses some types of record. NewStream panics
// with what Check returns.
type TypeChecker interface {
	Check(record reflect.Type) error
}

// DefaultLimit bounds the bytes of a record in Encode and Decode of the codecs of this
// package, and in streams that do not set StreamOptions.MaxRecord.
const DefaultLimit = 64 << 20

const (
	// maxDepth is how deep values may be nested, which is what encoding/json allows.
	// Without a limit a few megabytes overflow the stack, which nothing recovers.
	maxDepth = 10_000
	// maxPooled is the largest buffer that is kept for the next record.
	maxPooled = 64 << 10
)

// owned returns data, which a buffer holds, for the caller to keep: a copy where the buffer is used again.
func owned(buf *bytes.Buffer, data []byte) []byte {
	if buf.Cap() > maxPooled {
		return data
	}
	return bytes.Clone(data)
}

// addressable returns a pointer to a copy of the record, so that marshalers with
// pointer receivers are found, as they are when the record is decoded.
func addressable(record any) any {
	v := reflect.ValueOf(record)
	if !v.IsValid() {
		return nil
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface()
}

// recovered turns a panic of a library, or of a record's own methods, into an error.
func recovered(op string, record any, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s %T: panic: %v", op, record, p)
	}
}

// TooLarge returns ErrTooLarge with the limit in bytes, for codecs that wrap others.
func TooLarge(limit int64) error {
	return fmt.Errorf("%w: it takes more than %d bytes, which MaxRecord bounds", ErrTooLarge, limit)
}

// EncodeWithin encodes a record with c, or returns ErrTooLarge if it takes more than limit bytes.
func EncodeWithin(c Codec, record any, limit int64) ([]byte, error) {
	if l, ok := c.(LimitedCodec); ok {
		return l.EncodeLimited(record, limit)
	}
	data, err := c.Encode(record)
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("encode %T: %w", record, TooLarge(limit))
	}
	return data, err
}
