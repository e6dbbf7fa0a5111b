package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/store"
)

// An untyped stream is one that is known by its metadata only. Its records are written as the
// stream's codec writes JSON, or else as a JSON value, which every codec but Fields accepts.
type untyped struct {
	client      *store.Client
	name        string
	meta        store.Meta
	partitioner *runnel.Partitioner
}

func (s *session) untyped(ctx context.Context, name string) (*target, error) {
	meta, ok, err := s.client.LoadMeta(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, s.noStream(ctx, name)
	}
	if err := meta.CheckSend(name); err != nil {
		return nil, err
	}
	if meta.Codec == codec.Fields.Name() {
		return nil, fmt.Errorf("stream %s has the codec %q: its entries have a Redis field for each field of a record, which only the app's types define; send with the app's own binary", name, meta.Codec)
	}
	u := &untyped{client: s.client, name: name, meta: meta}
	if u.partitioner, err = records.Partitioner(name, meta); err != nil {
		return nil, fmt.Errorf("%w; send with the app's own binary", err)
	}
	check := func(r appview.JSONRecord) error {
		_, _, err := u.encode(r)
		return err
	}
	return &target{name, u.send, check, false}, nil
}

func (u *untyped) send(ctx context.Context, records []appview.JSONRecord) []appview.JSONSent {
	results := make([]appview.JSONSent, len(records))
	sorter := store.NewSorter(u.name, len(records), false)
	for i, r := range records {
		fields, partition, err := u.encode(r)
		if err != nil {
			results[i].Err, results[i].Refused = err, true
			continue
		}
		var due *store.Due
		if !r.At.IsZero() || r.After > 0 {
			due = &store.Due{At: r.At, After: r.After}
		}
		sorter.Add(i, partition, fields, r.ID, due)
	}
	for i, sent := range sorter.Results(u.client.Append(ctx, sorter.Appends())) {
		if !results[i].Refused {
			results[i].Sent = sent
		}
	}
	return results
}

// encode returns the fields of an entry and its partition.
func (u *untyped) encode(r appview.JSONRecord) ([]string, int, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, r.JSON); err != nil {
		return nil, 0, err
	}
	if strings.HasPrefix(u.meta.Partitioner, "python-") && !utf8.Valid(compact.Bytes()) {
		return nil, 0, errors.New("the record is not UTF-8, and Python's runnel, which may read this stream, refuses it")
	}
	fields := []string{store.JSONField, compact.String()}
	if codec := records.TextCodec(u.meta); codec != nil {
		data, err := codec.Encode(json.RawMessage(compact.Bytes()))
		if err != nil {
			return nil, 0, err
		}
		fields = []string{store.PayloadField, string(data)}
	}
	if r.Key != nil {
		return append(fields, store.KeyField, *r.Key), u.partitioner.Func(*r.Key, u.meta.Partitions), nil
	}
	key, err := records.KeyOf(u.meta, compact.Bytes())
	if err != nil {
		return nil, 0, err
	}
	return fields, u.partitioner.Func(key, u.meta.Partitions), nil
}
