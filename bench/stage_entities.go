package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
)

// busyStage is the stage that visits the entities of a set; it has been everywhere when all are closed.
const busyStage = "busy"

func stageName(i int) string {
	if i == 0 {
		return busyStage
	}
	return fmt.Sprint("idle-", i)
}

func (t Task) stageNames() []string {
	names := make([]string, max(t.Stages, 1))
	for i := range names {
		names[i] = stageName(i)
	}
	return names
}

// entityID has 19 bytes.
func entityID(i int) string { return fmt.Sprintf("listing-%011d", i) }

// A form is how entities are stored: open until their stage has visited them.
type form[T any] struct {
	codec codec.Codec
	make  func(id string, size int) (T, error) // open
	id    func(T) string
	open  func(T) bool
	close func(*T)
}

// A blob is an entity without a codec: its ID, then "o" or "d", then a time or anything else.
type blob []byte

// blobMark is where a blob says whether it is open, blobStamp where it has its time.
const blobMark, blobStamp = 19, 20

type blobCodec struct{}

// Name is the name of the codec in a set's metadata.
func (blobCodec) Name() string { return "blob" }

// Encode passes the bytes.
func (blobCodec) Encode(record any) ([]byte, error) { return record.(blob), nil }

// Decode copies the bytes.
func (blobCodec) Decode(data []byte, record any) error {
	*record.(*blob) = bytes.Clone(data)
	return nil
}

func closedBlob(payload string) string { return payload[:blobMark] + "d" + payload[blobMark+1:] }

var blobs = form[blob]{
	codec: blobCodec{},
	make: func(id string, size int) (blob, error) {
		return blob(id + "o" + strings.Repeat("x", size-blobStamp)), nil
	},
	id:    func(b blob) string { return string(b[:blobMark]) },
	open:  func(b blob) bool { return b[blobMark] == 'o' },
	close: func(b *blob) { (*b)[blobMark] = 'd' },
}

// A Listing is an entity in MsgPack.
type Listing struct {
	ID, Note string
	Open     bool
}

var listings = form[Listing]{
	codec: codec.MsgPack,
	make: func(id string, size int) (Listing, error) {
		l := Listing{ID: id, Open: true}
		data, err := codec.MsgPack.Encode(l)
		l.Note = strings.Repeat("x", max(size-len(data)-1, 0)) // a longer text has a longer header
		return l, err
	},
	id:    func(l Listing) string { return l.ID },
	open:  func(l Listing) bool { return l.Open },
	close: func(l *Listing) { l.Open = false },
}

// payload is what is stored of an open entity.
func (f form[T]) payload(id string, size int) ([]byte, error) {
	e, err := f.make(id, size)
	if err != nil {
		return nil, err
	}
	return f.codec.Encode(e)
}

// shares are the numbers of the first so many entities, by their partition.
func (t Task) shares(from, to int) [][]int {
	out := make([][]int, t.Partitions)
	for i := from; i < to; i++ {
		n := runnel.XXHash.Func(entityID(i), t.Partitions)
		out[n] = append(out[n], i)
	}
	return out
}

// setKey returns a key of a partition of a task's set.
func (t Task) setKey(kind string, n int) string {
	k, _ := keys.KindOf(kind)
	return k.Key(keyNames, t.Stream, "", "", n)
}

// withCalls passes the scripts of a task's set to fn.
func (t Task) withCalls(fn func(*store.Client, *istage.Set) error) error {
	client, err := store.Open(redisconn.Options{URL: t.URL, Keys: keyNames})
	if err != nil {
		return err
	}
	defer client.Close()
	return fn(client, istage.New(client, t.Stream, false, t.stageNames()...))
}

// fillSet empties the server and stores the entities of a task, each with a touch.
func fillSet(ctx context.Context, b *Bench, t *Task) error {
	if err := flush(ctx, b, t); err != nil {
		return err
	}
	payload := blobs.payload
	if t.Codec == "msgpack" {
		payload = listings.payload
	}
	return t.withCalls(func(_ *store.Client, set *istage.Set) error {
		const most, size = 100, 4 << 20 // of one script
		each := max(min(most, size/t.Size), 1)
		for n, share := range t.shares(0, t.Events) {
			for len(share) > 0 {
				some := share[:min(each, len(share))]
				share = share[len(some):]
				save := &istage.Save{Partition: n}
				for _, i := range some {
					data, err := payload(entityID(i), t.Size)
					if err != nil {
						return err
					}
					save.Changes = append(save.Changes, istage.Change{ID: entityID(i), Payload: string(data), Version: istage.Any})
				}
				if set.Save(ctx, save); save.Err != nil {
					return fmt.Errorf("fill set %s: %w", t.Stream, save.Err)
				}
			}
		}
		return nil
	})
}

// settled returns an error unless all entities are there and nothing waits, runs or has failed.
func (t Task) settled(ctx context.Context) error {
	return t.withCalls(func(_ *store.Client, set *istage.Set) error {
		var entities, open int64
		for n := range t.Partitions {
			look := &istage.Look{Partition: n}
			if set.Look(ctx, look); look.Err != nil {
				return look.Err
			}
			entities, open = entities+look.Entities, open+look.Failures
			for _, c := range look.Counts {
				open += c.Waiting + c.Running + c.Dead
			}
		}
		if open > 0 || entities != int64(t.Events) {
			return fmt.Errorf("set %s has %d entities, %d visits are left; want %d, 0", t.Stream, entities, open, t.Events)
		}
		return nil
	})
}
