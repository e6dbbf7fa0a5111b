package runnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"
	"unsafe"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
)

// A Table is rows by key: the state of one processor of a stream, which alone changes it,
// by Rows. A row lies in the partition of its key, as the stream's partitioner says: beside
// the events with that key. The methods of a Table may be called concurrently, and but for
// Rows in any process that declares it. What they read is committed; see docs/tables.md.
type Table[V any] struct{ *table }

// State is a Table of any type, for ProcessorOptions.Tables.
type State interface {
	state() *table
	isNil() bool
}

// table is a Table without its type.
type table struct {
	name   string
	of     *declaration
	codec  codec.Codec
	opts   TableOptions
	budget *rows.Budget
	config rows.Config

	expired func(ctx context.Context, key string, row any) error // see OnExpire

	processor string // that has it, "" for none in this process
}

func (t *table) state() *table { return t }

func (t *Table[V]) isNil() bool { return t == nil }

// TableOptions configure a table. A zero field takes its default.
type TableOptions struct {
	// Codec is that of the rows; default MsgPack. It cannot change under the table's name.
	// V can as far as the codec decodes what is stored: it may gain fields.
	Codec codec.Codec
	// TTL is how long a row stays that is not set again, by the partition's own time: that
	// of its latest event. So nothing ends during an outage that the events which wait
	// would have prolonged. At least a millisecond; 0: rows stay.
	TTL time.Duration
	// Local says that a row belongs to the partition that sets it, whatever the partitioner
	// says of its key: as for IDs that come with one key of the stream only. Keys of the
	// stream share partitions: an ID that is unique for its key alone needs that key, too.
	Local bool
	// Memory is about how many bytes of encoded rows a worker keeps of this table. Beyond
	// it Redis is asked for each row that is not in memory. RUNNEL_TABLE_MEMORY; default
	// 256 MiB.
	Memory int64
}

const defaultTableMemory = 256 << 20

// NewTable declares a table of rows V, of a stream. One processor of the stream has it, in
// ProcessorOptions.Tables; a process that only reads it has none. A nil opts is all defaults. It does no I/O. It panics if the
// stream has a table of that name, if the name has other characters than letters, digits,
// "_" and "-", if an option is out of range, if the codec rejects V, and after Run.
func NewTable[V, T any](s *Stream[T], name string, opts *TableOptions) *Table[V] {
	where := "runnel: stream " + s.name + ": NewTable " + name + ": "
	mustName(where, name, false)
	t := &table{name: name, of: s.declaration}
	if opts != nil {
		t.opts = *opts
	}
	env := newEnvironment()
	given := t.opts.Memory
	if t.opts.Memory == 0 {
		t.opts.Memory = env.number("RUNNEL_TABLE_MEMORY", 1, 1<<50)
	}
	if t.opts.Memory == 0 {
		t.opts.Memory = defaultTableMemory
	}
	t.codec = t.opts.Codec
	if t.codec == nil {
		t.codec = codec.MsgPack
	}
	_, fields := t.codec.(codec.FieldCodec)
	err := env.err()
	switch {
	case err != nil:
	case given < 0:
		err = fmt.Errorf("option Memory: %d is negative", given)
	case fields:
		err = fmt.Errorf("the codec %s makes fields of an entry, and no row", t.codec.Name())
	case t.opts.TTL < 0 || t.opts.TTL > 0 && t.opts.TTL < time.Millisecond:
		err = fmt.Errorf("option TTL: %v is below a millisecond", t.opts.TTL)
	default:
		if checker, ok := t.codec.(codec.TypeChecker); ok {
			err = checker.Check(reflect.TypeFor[V]())
		}
	}
	if err != nil {
		panic(where + err.Error())
	}
	t.budget = &rows.Budget{Most: t.opts.Memory}
	t.config = rows.Config{
		Name: name, Ends: t.opts.TTL > 0, Budget: t.budget,
		Encode: func(v any) (string, error) { return encodeRow(t.codec, v) },
		Decode: func(data string) (any, error) { return decodeRow[V](t.codec, data) },
	}
	s.declaration.add(where, t)
	return &Table[V]{t}
}

func encodeRow(c codec.Codec, v any) (_ string, err error) {
	defer recoverInto(&err)
	data, err := codec.EncodeWithin(c, v, rows.MostBytes)
	if errors.Is(err, codec.ErrTooLarge) {
		err = fmt.Errorf("%w: a row of %T takes more than %d bytes, encoded or decoded: make rows smaller", rows.ErrTooLarge, v, int64(rows.MostBytes))
	}
	return unsafe.String(unsafe.SliceData(data), len(data)), err // data is ours
}

func decodeRow[V any](c codec.Codec, data string) (v V, err error) {
	defer recoverInto(&err)
	if l, ok := c.(codec.LimitedCodec); ok {
		_, err = l.DecodeLimited([]byte(data), &v, mostOfRow)
		return v, err
	}
	return v, c.Decode([]byte(data), &v)
}

// mostOfRow bounds what a row may take in memory once it is decoded.
const mostOfRow = 256 << 20

// add declares a table of the stream.
func (d *declaration) add(where string, t *table) {
	d.app.register(func() {
		for _, other := range d.tables {
			if other.name == t.name {
				panic(where + "the stream has a table of that name already")
			}
		}
		d.tables = append(d.tables, t)
		d.app.uses(store.Tables)
	})
}

// tablesMeta is what the metadata says of the stream's tables.
func (d *declaration) tablesMeta() map[string]store.TableMeta {
	var all map[string]store.TableMeta
	for _, t := range d.tables {
		if all == nil {
			all = map[string]store.TableMeta{}
		}
		all[t.name] = store.TableMeta{Processor: t.processor, Codec: t.codec.Name(), TTL: t.opts.TTL.Milliseconds(), Ends: t.config.Ends, Local: t.opts.Local}
	}
	return all
}

// ErrLocal is returned by Table.Get of a Local table, whose rows GetAt finds.
var ErrLocal = errors.New("the table is local to partitions: the partition of a key is not known")

// A Row is a row of a table, as All yields it.
type Row[V any] struct {
	Key       string
	Partition int
	Value     V
	Until     time.Time // when it ends, by the partition's time; zero: it stays
}

// Get returns the row of a key as it is committed, and whether there is one: none whose
// time has come by Redis' clock. It writes nothing, and blocks for a round trip, or for a few
// until the stream's metadata is known; an error is that of Redis, of these, or of the codec.
func (t *Table[V]) Get(ctx context.Context, key string) (row V, ok bool, err error) {
	if t.opts.Local {
		return row, false, t.wrap(ErrLocal)
	}
	o, err := t.of.settings()
	if err != nil {
		return row, false, err
	}
	return t.GetAt(ctx, o.Partitioner.Func(key, o.Partitions), key)
}

// GetAt is Get for a row that lies in a partition, counted from 0, as Event.Partition is.
func (t *Table[V]) GetAt(ctx context.Context, partition int, key string) (row V, ok bool, err error) {
	c, err := t.client(ctx)
	if err != nil {
		return row, false, err
	}
	if o, err := t.of.settings(); err != nil || partition < 0 || partition >= o.Partitions {
		return row, false, t.wrap(cmp.Or(err, fmt.Errorf("there is no partition %d", partition)))
	}
	stored, now, err := c.Row(ctx, c.Table(t.of.name, t.name, partition), key)
	if err != nil || !stored.There || t.config.Ends && stored.Until > 0 && stored.Until <= now {
		return row, false, t.wrap(err)
	}
	if row, err = decodeRow[V](t.codec, stored.Value); err != nil {
		err = &rows.DecodeError{Table: t.name, Key: key, Err: err}
	}
	return row, err == nil, t.wrap(err)
}

// All yields the rows, partition by partition and in no order, from Redis in pages of
// about 128, or of 1 MiB. Rows that change meanwhile are yielded as they were or as they are; one that
// is there all the while at least once. Rows that have ended are among them until they are
// removed; see Row.Until. It ends with the first error.
func (t *Table[V]) All(ctx context.Context) iter.Seq2[Row[V], error] {
	return func(yield func(Row[V], error) bool) {
		c, err := t.client(ctx)
		o, failed := t.of.settings()
		if err = errors.Join(err, failed); err != nil {
			yield(Row[V]{}, err)
			return
		}
		for n := range o.Partitions {
			for cursor := (store.Cursor{}); ; {
				page, next, err := c.Page(ctx, c.Table(t.of.name, t.name, n), cursor)
				if err != nil {
					yield(Row[V]{}, t.wrap(err))
					return
				}
				for _, one := range page {
					row := Row[V]{Key: one.Key, Partition: n}
					if one.Until > 0 {
						row.Until = time.UnixMilli(one.Until)
					}
					if row.Value, err = decodeRow[V](t.codec, one.Value); err != nil {
						err = t.wrap(&rows.DecodeError{Table: t.name, Key: one.Key, Err: err})
					}
					if !yield(row, err) || err != nil {
						return
					}
				}
				if cursor = next; cursor == (store.Cursor{}) {
					break
				}
			}
		}
	}
}

// client returns where the rows are, once the stream's metadata says the same of the table.
func (t *table) client(ctx context.Context) (*store.Client, error) {
	c, err := t.of.app.redis()
	if err == nil {
		err = t.of.readable(ctx, c)
	}
	return c, err
}

func (t *table) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s: table %s: %w", t.of.name, t.name, err)
}

// own gives tables of the stream to a processor.
func (d *declaration) own(where, processor string, tables []State) {
	for _, t := range tablesOf(tables) {
		switch {
		case t.of != d:
			panic(where + "table " + t.name + " is of stream " + t.of.name)
		case t.processor == processor:
			panic(where + "table " + t.name + " is in Tables twice")
		case t.processor != "":
			panic(where + "table " + t.name + " belongs to processor " + t.processor + " already")
		}
		t.processor = processor
	}
}

func tablesOf(states []State) []*table {
	out := make([]*table, len(states))
	for i, s := range states {
		out[i] = s.state()
	}
	return out
}

func configsOf(states []State) []rows.Config {
	out := make([]rows.Config, len(states))
	for i, s := range states {
		out[i] = s.state().config
	}
	return out
}
