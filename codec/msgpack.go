package codec

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// MsgPack writes MessagePack. It names fields by their json tags, as JSON does,
// writes equal records as equal bytes, and keeps bytes, all 64-bit integers, and
// the instant of a time to the nanosecond; the time zone is lost.
//
// Differences from JSON: field names are case-sensitive; omitempty also omits
// a value whose IsZero method returns true, a struct that would be empty, and
// a zero value in an interface; an embedded struct is always inlined; a number
// too large for its field wraps around; numbers in an any come back as the
// smallest type that holds them, and a map in an any must have string keys.
// Extension types other than timestamps, and embedded pointers, are refused.
var MsgPack Codec = msgPack{}

type msgPack struct{}

func (msgPack) Name() string { return "msgpack" }

// msgPackCoding are the interfaces of types that write their MessagePack themselves.
var msgPackCoding = []reflect.Type{
	reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](),
	reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler](),
}

// Check refuses types without anything to send, and types that have a value which cannot be
// encoded or decoded.
func (msgPack) Check(record reflect.Type) error {
	if err := checkVisible("msgpack", record, msgPackCoding, "msgpack", "json"); err != nil {
		return err
	}
	return checkMsgPack(record, record.String(), map[reflect.Type]bool{})
}

type packer struct {
	buf bytes.Buffer
	enc *msgpack.Encoder
}

var packers = sync.Pool{New: func() any { return &packer{enc: msgpack.NewEncoder(nil)} }}

func (c msgPack) Encode(record any) ([]byte, error) { return c.EncodeLimited(record, DefaultLimit) }

func (msgPack) EncodeLimited(record any, limit int64) (data []byte, err error) {
	defer recovered("encode", record, &err)
	p := packers.Get().(*packer)
	p.buf.Reset()
	p.enc.Reset(&p.buf)
	p.enc.SetCustomStructTag("json")
	p.enc.SetSortMapKeys(true)
	p.enc.UseCompactInts(true)
	if err := p.enc.Encode(addressable(record)); err != nil {
		return nil, fmt.Errorf("encode %T: %w", record, err)
	}
	data = owned(&p.buf, p.buf.Bytes())
	if record != nil && needsSort(reflect.TypeOf(record)) {
		if err := sortPacked(data); err != nil {
			return nil, fmt.Errorf("encode %T: %w", record, err)
		}
	}
	if w := weightsOf(record); w.most(len(data)) > limit {
		if _, takes, err := scanMsgPack(data, w); err == nil && takes > limit {
			return nil, fmt.Errorf("encode %T: %w", record, TooLarge(limit))
		}
	}
	if p.buf.Cap() <= maxPooled {
		packers.Put(p)
	}
	return data, nil
}

type unpacker struct {
	src bytes.Reader
	dec *msgpack.Decoder
}

var unpackers = sync.Pool{New: func() any { return &unpacker{dec: msgpack.NewDecoder(nil)} }}

func (c msgPack) Decode(data []byte, record any) error {
	_, err := c.DecodeLimited(data, record, DefaultLimit)
	return err
}

func (msgPack) DecodeLimited(data []byte, record any, limit int64) (takes int64, err error) {
	defer recovered("decode", record, &err)
	if takes = int64(len(data)); takes <= limit {
		data, takes, err = scanMsgPack(data, weightsOf(record))
	}
	if err == nil && takes > limit {
		err = TooLarge(limit)
	}
	if err != nil {
		return takes, fmt.Errorf("decode %T: %w", record, err)
	}
	u := unpackers.Get().(*unpacker)
	u.src.Reset(data)
	u.dec.Reset(&u.src)
	u.dec.SetCustomStructTag("json")
	u.dec.DisableAllocLimit(true) // what is announced is there: buffers need not grow step by step
	// After an error or a panic the decoder may be left in the middle of something: it is not used again.
	if err := u.dec.Decode(record); err != nil {
		return takes, fmt.Errorf("decode %T: %w", record, err)
	}
	if u.src.Len() > 0 {
		return takes, fmt.Errorf("decode %T: msgpack: %d bytes were not read", record, u.src.Len())
	}
	u.src.Reset(nil)
	if len(data) <= maxPooled {
		unpackers.Put(u)
	}
	return takes, nil
}

var selfCoding = []reflect.Type{
	reflect.TypeFor[msgpack.CustomDecoder](), reflect.TypeFor[msgpack.Unmarshaler](),
	reflect.TypeFor[encoding.BinaryUnmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

func checkMsgPack(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	if writesItself(t, selfCoding) {
		return nil
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.Uintptr, reflect.UnsafePointer:
		return fmt.Errorf("msgpack: %s: %s cannot be encoded", path, t)
	case reflect.Map:
		if err := checkMsgPack(t.Key(), path+"[key]", seen); err != nil {
			return err
		}
		return checkMsgPack(t.Elem(), path+"[]", seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkMsgPack(t.Elem(), path+"[]", seen)
	case reflect.Struct:
		return checkMsgPackFields(t, path, seen)
	}
	return nil
}

func checkMsgPackFields(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(tagOf(f, []string{"msgpack", "json"}), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		path := path + "." + f.Name
		if f.Anonymous && f.Type.Kind() == reflect.Pointer {
			// The library makes the value of an embedded pointer in a goroutine that never ends.
			return fmt.Errorf("msgpack: %s: embedded pointers are not supported: embed the struct, or name the field", path)
		}
		if strings.Contains(options, "intern") {
			return fmt.Errorf("msgpack: %s: interned strings are not supported", path)
		}
		if err := checkMsgPack(f.Type, path, seen); err != nil {
			return err
		}
	}
	return nil
}
