package runnel

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/runnel-go/runnel/codec"
)

// An encoding turns the records of a declared stream into entries, and entries into
// records, with the stream's codec, and finds the key and the partition of a record.
type encoding[T any] struct {
	*declaration
	key func(T) string
}

// codecName is the name of the stream's codec. Settings must have been read.
func (n *encoding[T]) codecName() string { return n.effective.Codec.Name() }

// encode returns the fields of an entry, in the memory of into where they fit, and
// its partition.
func (n *encoding[T]) encode(o *StreamOptions, out Outgoing[T], into []string) (fields []string, partition int, err error) {
	defer recoverInto(&err)
	if f, ok := o.Codec.(codec.FieldCodec); ok {
		fields, err = f.EncodeFields(out.Record)
	} else {
		var data []byte
		data, err = codec.EncodeWithin(o.Codec, out.Record, o.MaxRecord)
		if err == nil && o.readByPython() {
			err = codec.CheckPython(out.Record)
		}
		fields = append(into, payloadField, unsafe.String(unsafe.SliceData(data), len(data))) // data is ours
	}
	if err != nil {
		return nil, 0, err
	}
	key := out.Key
	if key == "" {
		if key, err = n.keyOfRecord(out.Record); err != nil {
			return nil, 0, err
		}
	} else {
		fields = append(fields, keyField, key)
	}
	if len(out.Headers) > 0 {
		for _, name := range sortedKeys(out.Headers) {
			fields = append(fields, headerPrefix+name, out.Headers[name])
		}
	}
	partition = o.Partitioner.Func(key, o.Partitions)
	if partition < 0 || partition >= o.Partitions {
		return nil, 0, fmt.Errorf("partitioner %s: partition %d of %d for key %q", o.Partitioner.Name, partition, o.Partitions, key)
	}
	return fields, partition, nil
}

// pythonPrefix begins the name of each partitioner that agrees with one of Python's runnel.
const pythonPrefix = "python-"

// readByPython reports whether Python may read the stream, as a partitioner of Python's
// means, and reads its records as JSON.
func (o *StreamOptions) readByPython() bool {
	return strings.HasPrefix(o.Partitioner.Name, pythonPrefix) && strings.HasSuffix(o.Codec.Name(), codec.JSON.Name())
}

// keyOfRecord calls the stream's key function.
func (n *encoding[T]) keyOfRecord(record T) (key string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("key function: %w", err)
		}
	}()
	defer recoverInto(&err)
	return n.key(record), nil
}

// decodeOnce is decodeWithin without a second try with a larger limit.
func (n *encoding[T]) decodeOnce(e *Event, record *T, limit int64) (takes int64, err error) {
	defer recoverInto(&err)
	c := n.effective.Codec
	if f, ok := c.(codec.FieldCodec); ok {
		if takes = e.size(); takes > limit {
			return takes, codec.TooLarge(limit)
		}
		return takes, f.DecodeFields(e.Fields(), record)
	}
	data, isJSON, ok := e.payload()
	switch {
	case !ok:
		return 0, noPayload(e)
	case isJSON:
		c = codec.JSON
	}
	if l, ok := c.(codec.LimitedCodec); ok {
		return l.DecodeLimited(data, record, limit)
	}
	if takes = int64(len(data)); takes > limit {
		return takes, codec.TooLarge(limit)
	}
	return takes, c.Decode(data, record)
}

// errNoData is the error of an entry that has neither payload field.
var errNoData = errors.New(`no field "data" or "json"`)

func noPayload(e *Event) error {
	if e.values == nil {
		return errors.New("the entry was deleted")
	}
	return fmt.Errorf("%w, but %q", errNoData, sortedKeys(e.values))
}

// keyWithin decodes an event, within a limit, and returns the key of its record.
func (n *encoding[T]) keyWithin(e *Event, limit int64) (string, error) {
	var record T
	if _, err := n.decodeWithin(e, &record, limit); err != nil {
		return "", err
	}
	return n.key(record), nil
}
