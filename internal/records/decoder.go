package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A Decoder decodes the entries of a stream: with the app's types, or, without them, as far as the
// metadata allows. It is safe for concurrent use.
type Decoder struct {
	typed *appview.Stream // nil: no types
	meta  store.Meta
	name  string
	limit int64 // bytes of a record
}

// defaultLimit is the limit of a record in bytes if the app sets none.
const defaultLimit = 64 << 20

// NewDecoder returns the Decoder of a stream with this metadata. Records have the app's type if it
// declared the stream.
func NewDecoder(stream string, meta store.Meta, declared []*appview.Stream) *Decoder {
	d := &Decoder{meta: meta, name: stream, limit: defaultLimit}
	if i := slices.IndexFunc(declared, func(st *appview.Stream) bool { return st.Name == stream }); i >= 0 {
		d.typed, d.limit = declared[i], declared[i].MaxRecord
	}
	return d
}

// Within returns a Decoder of records of at most limit bytes, or the app's limit if smaller. Larger
// records are an error with codec.ErrTooLarge.
func (d *Decoder) Within(limit int64) *Decoder {
	less := *d
	less.limit = min(d.limit, limit)
	return &less
}

// Record returns the record of an entry as JSON on one line.
func (d *Decoder) Record(e redisconn.Entry) (json.RawMessage, error) {
	if d.typed != nil {
		record, err := d.typed.Decode(e, d.limit)
		if err != nil {
			return nil, err
		}
		return compact(record)
	}
	if text, ok := e.Values[store.JSONField].(string); ok {
		return d.valid(text)
	}
	data, ok := e.Values[store.PayloadField].(string)
	switch {
	case !ok && d.meta.Codec == codec.Fields.Name():
		fields := map[string]any{}
		for name, value := range e.Values {
			if !strings.HasPrefix(name, "__") {
				fields[name] = value
			}
		}
		return compact(fields)
	case !ok:
		return nil, fmt.Errorf("it has no field %q", store.PayloadField)
	}
	return d.untyped(d.meta.Codec, data)
}

// Row returns a row of a table of the stream as JSON, as Record does an entry.
func (d *Decoder) Row(table, data string) (json.RawMessage, error) {
	if d.typed == nil || d.typed.Rows[table] == nil {
		return d.untyped(d.meta.Tables[table].Codec, data)
	}
	row, err := d.typed.Rows[table](data)
	if err != nil {
		return nil, err
	}
	return compact(row)
}

// RowPartitions returns the partitions in which a table may have the row of a key: one, or all where the table is local
// or only the app knows the partitioner.
func (d *Decoder) RowPartitions(table, key string) []int {
	if n, known := d.PartitionOf(key); known && !d.meta.Tables[table].Local {
		return []int{n}
	}
	return d.meta.Numbers()
}

// untyped decodes what a codec has encoded, as far as that can be done without types.
func (d *Decoder) untyped(by, data string) (json.RawMessage, error) {
	text := TextCodec(store.Meta{Codec: by})
	switch {
	case by == codec.JSON.Name():
		return d.valid(data)
	case text != nil:
		var record json.RawMessage
		_, err := text.DecodeLimited([]byte(data), &record, d.limit)
		return record, err
	case by == codec.MsgPack.Name():
		var record any
		if _, err := codec.MsgPack.(codec.LimitedCodec).DecodeLimited([]byte(data), &record, d.limit); err != nil {
			return nil, err
		}
		return compact(record)
	}
	return nil, fmt.Errorf("only the app knows the codec %q", by)
}

// Key returns the key of an entry, or false if it is unknown.
func (d *Decoder) Key(e redisconn.Entry) (string, bool) {
	if key, ok := e.Values[store.KeyField].(string); ok {
		return key, true
	}
	if d.typed != nil {
		return d.typed.Key(e, d.limit)
	}
	record, err := d.Record(e)
	if err != nil {
		return "", false
	}
	key, err := KeyOf(d.meta, record)
	return key, err == nil
}

func (d *Decoder) valid(text string) (json.RawMessage, error) {
	if int64(len(text)) > d.limit {
		return nil, fmt.Errorf("%w: it has %d bytes", codec.ErrTooLarge, len(text))
	}
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var textCodecs = []codec.Codec{codec.JSON, codec.Gzip(codec.JSON), codec.LZ4(codec.JSON)}

// TextCodec returns the codec of a stream with this metadata if it writes JSON that Python's runnel
// can read, else nil.
func TextCodec(meta store.Meta) codec.LimitedCodec {
	for _, c := range textCodecs {
		if c.Name() == meta.Codec {
			return c.(codec.LimitedCodec)
		}
	}
	return nil
}

// compact returns a record as JSON on one line.
func compact(record any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(record); err != nil {
		var unsupported *json.UnsupportedTypeError
		if errors.As(err, &unsupported) {
			return nil, fmt.Errorf("it cannot be shown as JSON: %w", err)
		}
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// Partition returns the partition of an entry by its key, if known.
func (d *Decoder) Partition(e redisconn.Entry) (int, bool) {
	key, ok := d.Key(e)
	if !ok {
		return 0, false
	}
	return d.PartitionOf(key)
}

// PartitionOf returns the partition of a key, if known.
func (d *Decoder) PartitionOf(key string) (int, bool) {
	if d.typed != nil {
		return d.typed.Partition(key, d.meta.Partitions), true
	}
	partitioner, err := Partitioner(d.name, d.meta)
	if err != nil {
		return 0, false
	}
	return partitioner.Func(key, d.meta.Partitions), true
}
