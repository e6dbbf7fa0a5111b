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

// An untyped stream is what is known of a stream without the app's types: its
// metadata. Records are written as the stream's codec writes JSON, else as a JSON value,
// which every codec but Fields accepts.
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
	if meta.Codec == codec.Fields.Name() {
		return nil, fmt.Errorf("stream %s has the codec %q: its entries have a Redis field for each field of a record, which only the app's types tell; send with the app's own binary", name, meta.Codec)
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
	var appends []store.Append
	var delays []store.Delay
	now, late := newPartitioned(), newPartitioned()
	for i, r := range records {
		fields, partition, err := u.encode(r)
		if err != nil {
			results[i].Err, results[i].Refused = err, true
			continue
		}
		results[i].Partition = partition
		if !r.At.IsZero() || r.After > 0 {
			j, first := late.add(partition, i)
			if first {
				delays = append(delays, store.Delay{Stream: u.name, Partition: partition})
			}
			delays[j].Records = append(delays[j].Records, store.DelayedRecord{Fields: fields, At: r.At, After: r.After, ID: r.ID})
			continue
		}
		j, first := now.add(partition, i)
		if first {
			appends = append(appends, store.Append{Stream: u.name, Partition: partition, Log: u.client.Keys().Partition(u.name, partition)})
		}
		appends[j].Add(fields, r.ID)
	}
	now.tell(results, u.client.Append(ctx, appends))
	late.tell(results, u.client.Delay(ctx, delays))
	return results
}

// partitioned are records of several partitions.
type partitioned struct {
	at      map[int]int // place in indexes, by partition
	indexes [][]int     // of the records, by place
}

func newPartitioned() *partitioned { return &partitioned{at: map[int]int{}} }

// add notes the record i, and returns the place of its partition; first says that
// it is the first one there.
func (p *partitioned) add(partition, i int) (place int, first bool) {
	place, ok := p.at[partition]
	if !ok {
		place = len(p.indexes)
		p.at[partition], p.indexes = place, append(p.indexes, nil)
	}
	p.indexes[place] = append(p.indexes[place], i)
	return place, !ok
}

// tell turns what became of each partition into what became of each record.
func (p *partitioned) tell(results []appview.JSONSent, done []store.Appended) {
	for place, a := range done {
		for k, i := range p.indexes[place] {
			switch {
			case k < len(a.IDs):
				results[i].ID, results[i].Duplicate = a.IDs[k], a.Duplicate != nil && a.Duplicate[k]
				if k >= len(a.IDs)-a.Weak {
					results[i].Err, results[i].Unknown = a.Err, true
				}
			case a.Weak > 0:
				results[i].Err = runnel.ErrNotTried
			case k == len(a.IDs) || a.Unknown || errors.Is(a.Err, store.ErrStreamFull):
				results[i].Err, results[i].Unknown = a.Err, a.Unknown
			default:
				results[i].Err = runnel.ErrNotTried
			}
		}
	}
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
