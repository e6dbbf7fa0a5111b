package operate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/internal/worker"
)

// A Reading makes the entries of a stream readable: by the app's types, or without
// them as far as the metadata tells. It may be used concurrently.
type Reading struct {
	typed *worker.Stream // nil: no types
	meta  rstream.Meta
	name  string
}

// NewReading reads a stream with this metadata. The stream is one of those that the
// app declared, if it is among them.
func NewReading(stream string, meta rstream.Meta, declared []*worker.Stream) *Reading {
	r := &Reading{meta: meta, name: stream}
	if i := slices.IndexFunc(declared, func(st *worker.Stream) bool { return st.Name == stream }); i >= 0 {
		r.typed = declared[i]
	}
	return r
}

// Record is the record of an entry as JSON on one line.
func (r *Reading) Record(e rstream.Entry) (json.RawMessage, error) {
	if r.typed != nil {
		record, err := r.typed.Decode(e)
		if err != nil {
			return nil, err
		}
		return compact(record)
	}
	if text, ok := e.Values[rstream.JSONField].(string); ok {
		return valid(text)
	}
	data, ok := e.Values[rstream.PayloadField].(string)
	switch {
	case !ok && r.meta.Codec == runnel.Fields.Name():
		fields := map[string]any{}
		for name, value := range e.Values {
			if !strings.HasPrefix(name, "__") {
				fields[name] = value
			}
		}
		return compact(fields)
	case !ok:
		return nil, fmt.Errorf("it has no field %q", rstream.PayloadField)
	case r.meta.Codec == runnel.JSON.Name():
		return valid(data)
	case r.meta.Codec == runnel.MsgPack.Name():
		var record any
		if err := runnel.MsgPack.Decode([]byte(data), &record); err != nil {
			return nil, err
		}
		return compact(record)
	}
	return nil, fmt.Errorf("only the app knows the codec %q", r.meta.Codec)
}

// Key is the key of an entry, if it can be told.
func (r *Reading) Key(e rstream.Entry) (string, bool) {
	if key, ok := e.Values[rstream.KeyField].(string); ok {
		return key, true
	}
	if r.typed != nil {
		return r.typed.Key(e)
	}
	record, err := r.Record(e)
	if err != nil {
		return "", false
	}
	key, err := KeyOf(r.meta, record)
	return key, err == nil
}

func valid(text string) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// compact is a record as JSON on one line.
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

// Partition is where an entry belongs by its key, if that can be told.
func (r *Reading) Partition(e rstream.Entry) (int, bool) {
	key, ok := r.Key(e)
	if !ok {
		return 0, false
	}
	return r.PartitionOf(key)
}

// PartitionOf is the partition of a key, if it can be told.
func (r *Reading) PartitionOf(key string) (int, bool) {
	if r.typed != nil {
		return r.typed.Partition(key, r.meta.Partitions), true
	}
	partitioner, err := Partitioner(r.name, r.meta)
	if err != nil {
		return 0, false
	}
	return partitioner.Func(key, r.meta.Partitions), true
}
