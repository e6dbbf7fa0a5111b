package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Table is the part of a table that lies in one partition.
type Table struct {
	Rows  string // key of the rows, by their keys
	Until string // key of when those end that do, by the partition's time, in ms since 1970

	Lasting bool // no row ends, though there may be times from before
}

// A Row is what a table has under a key.
type Row struct {
	Value string
	Until int64 // 0: it stays
	There bool  // else there is none, and the rest is zero
}

// A KeyedRow is a row with its key.
type KeyedRow struct {
	Key string
	Row
}

// Rows are read some at a time, so that the server is held for about a millisecond, however large they are.
const (
	firstRows    = 4 // as long as no size is known
	rowsPerPage  = 128
	bytesPerPage = 1 << 20
)

// RowsAtOnce returns how many rows are to be read at once, where n have so many bytes.
func RowsAtOnce(n int, bytes int64) int {
	if n == 0 {
		return firstRows
	}
	return int(min(max(int64(n)*bytesPerPage/max(bytes, 1), 1), rowsPerPage))
}

// A TableStore reads the rows of tables, and removes tables; only a Commit of an Owner changes rows. Owners read theirs
// by it, and Table.Get those of others.
type TableStore struct{ *core }

// Table returns the part of a stream's table in a partition.
func (c TableStore) Table(stream, table string, partition int) Table {
	key := func(kind string) string { return keys.MustKind(kind).Key(c.keys, stream, table, "", partition) }
	return Table{Rows: key("rows"), Until: key("until")}
}

// Row returns a row as it is committed. now is the server's clock, in ms.
func (c TableStore) Row(ctx context.Context, t Table, key string) (r Row, now int64, err error) {
	return rowOf(t, rowScript.Run(ctx, c.Retrying, []string{t.Rows, t.Until}, key))
}

// Rows returns the rows of some keys as they are committed, in their order.
func (c TableStore) Rows(ctx context.Context, t Table, keys []string) ([]Row, error) {
	calls, found := make([]*redisconn.Call, len(keys)), make([]Row, len(keys))
	for i, key := range keys {
		calls[i] = redisconn.ScriptCall(ctx, rowScript, []string{t.Rows, t.Until}, key)
	}
	redisconn.PipelineInTurns(ctx, c.Retrying, calls, rowsPerPage)
	for i, call := range calls {
		var err error
		if found[i], _, err = rowOf(t, call.Reply); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rowOf returns what row.lua has replied, and the server's clock, in ms.
func rowOf(t Table, reply *redis.Cmd) (r Row, now int64, err error) {
	values, err := reply.Slice()
	if err != nil {
		return Row{}, 0, fmt.Errorf("row of %s: %w", t.Rows, classify(err))
	}
	if len(values) != 3 {
		return Row{}, 0, fmt.Errorf("row of %s: reply of %d values", t.Rows, len(values))
	}
	r.Value, r.There = values[0].(string)
	if r.There && !t.Lasting {
		r.Until = scoreOf(values[1])
	}
	return r, scoreOf(values[2]), nil
}

// A Cursor is where a page of rows begins. The zero Cursor is the first one.
type Cursor struct {
	At   uint64
	Many int // rows of the page, about; 0: as many as first
}

// Page returns some rows and the cursor of the next page, zero behind the last one. Rows that are there all the while come
// at least once; there are more than rowsPerPage on a page only of small tables.
func (c TableStore) Page(ctx context.Context, t Table, cursor Cursor) (rows []KeyedRow, next Cursor, err error) {
	return c.page(ctx, t, cursor, "")
}

// page is Page of the keys that match a glob, "" for all.
func (c TableStore) page(ctx context.Context, t Table, cursor Cursor, match string) (rows []KeyedRow, next Cursor, err error) {
	flat, at, err := c.Retrying.HScan(ctx, t.Rows, cursor.At, match, int64(cmp.Or(cursor.Many, firstRows))).Result()
	if err != nil {
		return nil, Cursor{}, fmt.Errorf("rows of %s: %w", t.Rows, classify(err))
	}
	bytes := int64(0)
	for _, text := range flat {
		bytes += int64(len(text))
	}
	switch {
	case at == 0:
	case len(flat) == 0: // none of these keys matches
		next = Cursor{at, rowsPerPage}
	default:
		next = Cursor{at, RowsAtOnce(len(flat)/2, bytes)}
	}
	calls := make([]*redisconn.Call, 0, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		rows = append(rows, KeyedRow{Key: flat[i], Row: Row{Value: flat[i+1], There: true}})
		if !t.Lasting {
			calls = append(calls, redisconn.PlainCall(ctx, "ZSCORE", t.Until, flat[i]))
		}
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	var timeless []int
	for i, call := range calls {
		score, err := call.Reply.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, Cursor{}, fmt.Errorf("rows of %s: %w", t.Until, classify(err))
		}
		if rows[i].Until = scoreOf(score); err != nil {
			timeless = append(timeless, i)
		}
	}
	rows, err = c.lasting(ctx, t, rows, timeless)
	return rows, next, err
}

// lasting drops those of some rows without a time that are not there any more: they have ended since they were read, and
// were removed together with their times.
func (c TableStore) lasting(ctx context.Context, t Table, rows []KeyedRow, timeless []int) ([]KeyedRow, error) {
	if len(timeless) == 0 {
		return rows, nil
	}
	keys := make([]string, len(timeless))
	for n, i := range timeless {
		keys[n] = rows[i].Key
	}
	values, err := c.Retrying.HMGet(ctx, t.Rows, keys...).Result()
	if err != nil {
		return nil, fmt.Errorf("rows of %s: %w", t.Rows, classify(err))
	}
	for n, i := range timeless {
		rows[i].Value, rows[i].There = values[n].(string)
	}
	return slices.DeleteFunc(rows, func(r KeyedRow) bool { return !r.There }), nil
}

// An End is when a row ends, in ms since 1970 by its partition's time.
type End struct {
	At  int64
	Key string
}

// Ends returns when rows end: the first ones that do, at most so many, by time and then by key.
func (c TableStore) Ends(ctx context.Context, t Table, most int64) ([]End, error) {
	found, err := c.Retrying.ZRangeByScoreWithScores(ctx, t.Until, &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: most}).Result()
	if err != nil {
		return nil, fmt.Errorf("ends of rows in %s: %w", t.Until, classify(err))
	}
	ends := make([]End, len(found))
	for i, z := range found {
		key, _ := z.Member.(string)
		ends[i] = End{int64(z.Score), key}
	}
	return ends, nil
}

// literal makes a glob of a text that matches that alone.
var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)

// RowsWith yields the rows of a part of a table whose keys have a prefix, in no order and page by page, and ends with the first
// error. A row that comes or goes meanwhile may be missing, or come twice.
func (c TableStore) RowsWith(ctx context.Context, t Table, prefix string) iter.Seq2[KeyedRow, error] {
	match := ""
	if prefix != "" {
		match = literal.Replace(prefix) + "*"
	}
	return func(yield func(KeyedRow, error) bool) {
		for cursor := (Cursor{}); ; {
			page, next, err := c.page(ctx, t, cursor, match)
			if err != nil {
				yield(KeyedRow{}, err)
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
			}
			if cursor = next; cursor == (Cursor{}) {
				return
			}
		}
	}
}

// RowsOf returns how many rows parts of tables have together.
func (c TableStore) RowsOf(ctx context.Context, parts ...Table) (rows int64, err error) {
	calls := make([]*redisconn.Call, len(parts))
	for i, t := range parts {
		calls[i] = redisconn.PlainCall(ctx, "HLEN", t.Rows)
	}
	redisconn.PipelineInTurns(ctx, c.Retrying, calls, partitionsPerTrip)
	for i, call := range calls {
		n, err := call.Reply.Int64()
		if err != nil {
			return 0, fmt.Errorf("rows of %s: %w", parts[i].Rows, c.NameWrongTypes(ctx, []string{parts[i].Rows}, classify(err)))
		}
		rows += n
	}
	return rows, nil
}

// A TableSize is how much there is of a table.
type TableSize struct {
	Rows    int64
	Overdue int64 // of these, whose time has come by Redis' clock
	Bytes   int64 // of Redis' memory, estimated; -1: it does not tell
}

// TableSize returns how much there is of a stream's table in so many partitions.
func (c TableStore) TableSize(ctx context.Context, stream, table string, m TableMeta, partitions int) (size TableSize, err error) {
	now, err := c.Retrying.Time(ctx).Result()
	if err != nil {
		return size, classify(err)
	}
	var parts []Table
	var times, bytes []*redisconn.Call
	for n := range partitions {
		t := c.Table(stream, table, n)
		parts = append(parts, t)
		times = append(times, redisconn.PlainCall(ctx, "ZCOUNT", t.Until, "-inf", now.UnixMilli()))
		bytes = append(bytes, redisconn.PlainCall(ctx, "MEMORY", "USAGE", t.Rows), redisconn.PlainCall(ctx, "MEMORY", "USAGE", t.Until))
	}
	if size.Rows, err = c.RowsOf(ctx, parts...); err != nil {
		return size, fmt.Errorf("stream %s: table %s: %w", stream, table, err)
	}
	redisconn.PipelineInTurns(ctx, c.Retrying, slices.Concat(times, bytes), partitionsPerTrip)
	for i, call := range times {
		n, err := call.Reply.Int64()
		if m.Ends {
			size.Overdue += n
		}
		if err != nil {
			return size, fmt.Errorf("stream %s: table %s: %w", stream, table, c.NameWrongTypes(ctx, []string{parts[i].Until}, classify(err)))
		}
	}
	for _, call := range bytes {
		used, err := call.Reply.Int64()
		if err != nil && err != redis.Nil { // no right, or an embedded server
			size.Bytes = -1
			break
		}
		size.Bytes += used
	}
	return size, nil
}

// scoreOf returns a score or a number in the form of any server and protocol, 0 for none.
func scoreOf(v any) int64 {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case int64:
		return v
	case string:
		f, _ := strconv.ParseFloat(v, 64)
		return int64(f)
	}
	return 0
}
