package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/internal/worker"
)

// A reading makes the entries of a stream readable: by the app's types, or without
// them as far as the metadata tells.
type reading struct {
	typed *worker.Stream // nil: no types
	meta  rstream.Meta
	name  string
}

func (s *session) reading(ctx context.Context, stream string) (*reading, error) {
	meta, err := s.metadata(ctx, stream)
	if err != nil {
		return nil, err
	}
	r := &reading{meta: meta, name: stream}
	if s.program.app == nil {
		return r, nil
	}
	streams, err := s.reg.Streams()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(streams, func(st *worker.Stream) bool { return st.Name == stream }); i >= 0 {
		r.typed = streams[i]
	}
	return r, nil
}

// record is the record of an entry as JSON.
func (r *reading) record(e rstream.Entry) (json.RawMessage, error) {
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

// key is the key of an entry, if it can be told.
func (r *reading) key(e rstream.Entry) (string, bool) {
	if key, ok := e.Values[rstream.KeyField].(string); ok {
		return key, true
	}
	if r.typed != nil {
		return r.typed.Key(e)
	}
	record, err := r.record(e)
	if err != nil {
		return "", false
	}
	key, err := (&untyped{name: r.name, meta: r.meta}).key(record)
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

// partition is where an entry belongs by its key, if that can be told.
func (r *reading) partition(e rstream.Entry) (int, bool) {
	key, ok := r.key(e)
	if !ok {
		return 0, false
	}
	if r.typed != nil {
		return r.typed.Partition(key, r.meta.Partitions), true
	}
	partitioner, err := partitionerOf(r.name, r.meta)
	if err != nil {
		return 0, false
	}
	return partitioner.Func(key, r.meta.Partitions), true
}
