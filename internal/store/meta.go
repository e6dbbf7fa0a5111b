package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

// Versions of the stored metadata. A release that does not know kinds of streams refuses the second.
const (
	MetaVersion = 1
	KindVersion = 2 // of streams with a kind
)

// Meta is the metadata of a stream. Zero fields in that of a producer or worker are not compared.
type Meta struct {
	Version     int      `json:"v"`
	Partitions  int      `json:"partitions"`
	MaxLen      int64    `json:"size"`
	Overflow    string   `json:"overflow,omitempty"`
	DedupWindow int64    `json:"id_window,omitempty"` // ms
	Codec       string   `json:"codec"`
	Partitioner string   `json:"partitioner"`
	KeyField    string   `json:"key_field,omitempty"`
	Layout      string   `json:"layout"` // of the keys; while these are being moved that of no process, see Mark
	Processors  []string `json:"processors,omitempty"`
	Kind        string   `json:"kind,omitempty"`  // "" for an ordinary stream
	Parts       []string `json:"parts,omitempty"` // what its extension has told apart in it, such as the stages of a set

	Tables map[string]TableMeta `json:"tables,omitempty"` // by name
	Atomic []string             `json:"atomic,omitempty"` // of the processors, those that emit in their commits, and so may have outboxes

	unknown map[string]json.RawMessage // fields of a newer release, which are kept
}

// plainMeta is Meta without methods.
type plainMeta Meta

// MarshalJSON writes the fields of this release, then the unknown ones by name.
func (m Meta) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(plainMeta(m))
	if err != nil || len(m.unknown) == 0 {
		return data, err
	}
	more, err := json.Marshal(m.unknown)
	return slices.Concat(data[:len(data)-1], []byte(","), more[1:]), err
}

// UnmarshalJSON keeps fields that this release does not know.
func (m *Meta) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*plainMeta)(m)); err != nil {
		return err
	}
	m.unknown = nil
	if err := json.Unmarshal(data, &m.unknown); err != nil {
		return err
	}
	for _, name := range metaFields {
		delete(m.unknown, name)
	}
	if len(m.unknown) == 0 {
		m.unknown = nil
	}
	return nil
}

// metaFields are the names of the fields that this release knows.
var metaFields = func() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Meta]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// dedupWindow is DedupWindow, or ten minutes if the metadata has none, as it may be older than IDs
// are: without a window a script would fail after its XADD.
func (m Meta) dedupWindow() int64 { return cmp.Or(m.DedupWindow, (10 * time.Minute).Milliseconds()) }

// A MetaConflictError reports stream metadata that differs from a producer's or worker's.
type MetaConflictError struct {
	Stream, Field string
	Stored, Own   string
}

// Error names the stream, the setting and both values, or the move of the keys, and the remedy.
func (e *MetaConflictError) Error() string {
	if e.Field == layoutSetting {
		if why := whyLayout(e.Stream, e.Stored); why != "" {
			return why
		}
	}
	if e.Field == kindSetting {
		return whyKind(e.Stream, e.Stored, e.Own)
	}
	return fmt.Sprintf("stream %s: its metadata says %s %s, this process is set to %s", e.Stream, e.Field, e.Stored, e.Own) + e.remedy()
}

// remedy returns what to set, or what else to do.
func (e *MetaConflictError) remedy() string {
	option := map[string]string{"partitions": "Partitions", "codec": "Codec", "partitioner": "Partitioner"}[e.Field]
	if option == "" || e.Stored == "" {
		return ""
	}
	return fmt.Sprintf(": set StreamOptions.%s to %s, as it cannot change once the stream exists, or give the stream another name; %s", option, e.Stored, help.StreamSettings)
}

// A MetaStore is the metadata of the app's streams; what was read last is cached. App, worker,
// cli and inspect use it, and a Producer does for each call.
type MetaStore struct{ *core }

// EnsureMeta compares the stored metadata of a stream with m and returns it; the first caller
// stores m. If kind, partitions, codec, partitioner, layout or a table differ, the error is a
// *MetaConflictError. Processors and parts are added to the stored ones. A worker, whose m has processors, also sets MaxLen,
// Overflow, DedupWindow and KeyField, as does a sender while no processor is registered.
func (c MetaStore) EnsureMeta(ctx context.Context, stream string, m Meta) (Meta, error) {
	m.Version, m.Layout = m.version(), c.keys.Layout
	merged, err := c.ensureMeta(ctx, stream, m)
	if err != nil {
		return Meta{}, c.metaError(stream, err)
	}
	c.metas.store(stream, merged, c.refused(stream, merged.Layout))
	return merged, nil
}

func (c MetaStore) ensureMeta(ctx context.Context, stream string, m Meta) (Meta, error) {
	if err := c.checkLayout(ctx, stream); err != nil {
		return Meta{}, err
	}
	for {
		stored, err := c.load(ctx, c.keys.Meta(stream))
		if err != nil {
			return Meta{}, err
		}
		merged, err := mergeMeta(stream, stored, m)
		if err == nil && stored == nil {
			err = c.checkPartitions(ctx, stream, merged.Partitions)
		}
		if err != nil {
			return Meta{}, err
		}
		value, err := json.Marshal(merged)
		if err != nil {
			return Meta{}, err
		}
		// First, so that every stream that has metadata is listed.
		if err := c.list(ctx, stream); err != nil {
			return Meta{}, err
		}
		if string(value) == string(stored) {
			return merged, nil
		}
		// Another process may have written meanwhile: then read again.
		swapped, err := c.swap(ctx, c.keys.Meta(stream), stored, value)
		if err != nil {
			return Meta{}, err
		}
		if swapped { // again: it may have been dropped since it was listed
			return merged, c.list(ctx, stream)
		}
	}
}

// CheckMeta returns the error that EnsureMeta would return for what is stored now, or that of a
// processor of m whose stored membership cannot be joined, such as a *rebalance.PythonError. It
// writes nothing: a starting process checks all streams first, so that a refused start changes
// nothing.
func (c MetaStore) CheckMeta(ctx context.Context, stream string, m Meta) error {
	m.Layout = c.keys.Layout
	err := c.checkLayout(ctx, stream)
	var stored []byte
	if err == nil {
		stored, err = c.load(ctx, c.keys.Meta(stream))
	}
	if err == nil {
		m, err = mergeMeta(stream, stored, m)
	}
	if err == nil {
		err = c.checkPartitions(ctx, stream, m.Partitions)
	}
	if err != nil {
		return c.metaError(stream, err)
	}
	for _, p := range m.Processors {
		g := Control(c).Group(stream, p)
		// A membership that cannot be read stops this processor only, until it is deleted.
		err := rebalance.Vacant(ctx, g)
		if err != nil && !errors.As(err, new(*rebalance.UnreadableError)) {
			return g.wrap("membership", err)
		}
	}
	return nil
}

// list adds the stream to the app's streams, unless the app's keys are being moved. It does not
// write a field that exists, which a full server would refuse.
func (c MetaStore) list(ctx context.Context, stream string) error {
	there, err := c.Retrying.HMGet(ctx, c.keys.Streams(), stream, MarkField).Result()
	if err == nil && len(there) != 2 {
		err = fmt.Errorf("reply of %d values", len(there))
	}
	if err == nil {
		if mark, ok := there[1].(string); ok {
			if err := c.marked(stream, mark); err != nil {
				return err
			}
		}
		if there[0] == nil {
			err = c.Retrying.HSet(ctx, c.keys.Streams(), stream, "1").Err()
		}
	}
	if err != nil {
		return c.streamsError(classify(err))
	}
	return nil
}

func mergeMeta(stream string, data []byte, own Meta) (Meta, error) {
	if len(data) == 0 {
		if own.Partitions < 1 {
			return Meta{}, errors.New("there is none yet, and the number of partitions is not known")
		}
		own.Processors, own.Parts, own.Atomic = union(nil, own.Processors), union(nil, own.Parts), union(nil, own.Atomic)
		own.Tables, _ = mergeTables(stream, nil, own.Tables)
		return own, nil
	}
	m, err := parseMeta(data)
	if err == nil {
		err = m.checkKind(stream, own)
	}
	if err != nil {
		return Meta{}, err
	}
	for _, f := range []struct{ name, stored, own string }{
		{"partitions", number(m.Partitions), number(own.Partitions)},
		{"codec", m.Codec, own.Codec},
		{"partitioner", m.Partitioner, own.Partitioner},
		{layoutSetting, m.Layout, own.Layout},
	} {
		if f.own != "" && f.stored != "" && f.own != f.stored {
			return Meta{}, &MetaConflictError{Stream: stream, Field: f.name, Stored: f.stored, Own: f.own}
		}
	}
	m.Codec, m.Partitioner = cmp.Or(m.Codec, own.Codec), cmp.Or(m.Partitioner, own.Partitioner)
	// Where no worker ever ran, as beside Python's runnel, the last sender decides.
	worker := len(own.Processors) > 0 || len(m.Processors) == 0
	first, last := own, m
	if !worker {
		first, last = m, own
	}
	m.MaxLen, m.Overflow = cmp.Or(first.MaxLen, last.MaxLen), cmp.Or(first.Overflow, last.Overflow)
	m.DedupWindow, m.KeyField = cmp.Or(first.DedupWindow, last.DedupWindow), cmp.Or(first.KeyField, last.KeyField)
	m.Processors, m.Parts, m.Atomic = union(m.Processors, own.Processors), union(m.Parts, own.Parts), union(m.Atomic, own.Atomic)
	m.Tables, err = mergeTables(stream, m.Tables, own.Tables)
	return m, err
}

const (
	mostMeta       = 1 << 20 // bytes
	mostPartitions = 1 << 16
)

func parseMeta(data []byte) (Meta, error) {
	var m Meta
	var version struct {
		V *int `json:"v"`
	}
	if len(data) > mostMeta {
		return Meta{}, fmt.Errorf("%w: it has %d bytes, more than %d", errGarbled, len(data), mostMeta)
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return Meta{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	if version.V == nil {
		return Meta{}, fmt.Errorf("%w: it has no version", errGarbled)
	}
	if *version.V != MetaVersion && *version.V != KindVersion {
		return Meta{}, fmt.Errorf("%w: it has version %d, this program knows %d and %d", errAnotherVersion, *version.V, MetaVersion, KindVersion)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return Meta{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	// Readers allocate memory for this many partitions.
	if m.Partitions < 0 || m.Partitions > mostPartitions {
		return Meta{}, fmt.Errorf("%w: %d partitions, more than %d", errGarbled, m.Partitions, mostPartitions)
	}
	return m, nil
}

// LoadMeta returns the stored metadata of a stream, and whether there is any.
func (c MetaStore) LoadMeta(ctx context.Context, stream string) (Meta, bool, error) {
	return c.loadMeta(ctx, c.Retrying, stream)
}

func (c MetaStore) loadMeta(ctx context.Context, rdb *redis.Client, stream string) (Meta, bool, error) {
	data, err := rdb.Get(ctx, c.keys.Meta(stream)).Bytes()
	if errors.Is(err, redis.Nil) {
		return Meta{}, false, nil
	}
	if err != nil {
		return Meta{}, false, c.metaError(stream, classify(err))
	}
	return c.KnowMeta(stream, data)
}

// KnowMeta is LoadMeta of a stored value that was read already; an empty one stands for none.
func (c MetaStore) KnowMeta(stream string, data []byte) (Meta, bool, error) {
	if len(data) == 0 {
		return Meta{}, false, nil
	}
	m, err := parseMeta(data)
	if err != nil {
		return Meta{}, false, c.metaError(stream, err)
	}
	c.metas.store(stream, m, c.refused(stream, m.Layout))
	return m, true, nil
}

// Streams returns the names of the app's streams, sorted.
func (c MetaStore) Streams(ctx context.Context) ([]string, error) {
	known, err := c.Retrying.HGetAll(ctx, c.keys.Streams()).Result()
	if err != nil {
		return nil, c.streamsError(classify(err))
	}
	return streamNames(slices.Collect(maps.Keys(known))), nil
}

func (c MetaStore) streamsError(err error) error {
	return fmt.Errorf("list the streams of app %s (%s): %w", c.keys.App, c.keys.Streams(), err)
}

// A MetaError reports that the metadata of one stream cannot be read or written.
type MetaError struct {
	Stream, Key string
	Err         error
}

// Error names the stream and, if its key holds something else, the key and the remedy.
func (e *MetaError) Error() string {
	if errors.Is(e.Err, errGarbled) || errors.Is(e.Err, redisconn.ErrWrongType) {
		return fmt.Sprintf("stream %s: metadata %s: %v: delete that key, and the next worker or sender writes it anew from its own settings; %s", e.Stream, e.Key, e.Err, help.UnreadableKey)
	}
	if errors.Is(e.Err, errAnotherVersion) {
		return fmt.Sprintf("stream %s: metadata %s: %v: use a release that knows it; keep the key; %s", e.Stream, e.Key, e.Err, help.UnreadableKey)
	}
	return fmt.Sprintf("stream %s: metadata: %v", e.Stream, e.Err)
}

// Unwrap returns Err.
func (e *MetaError) Unwrap() error { return e.Err }

var (
	errGarbled        = errors.New("stored metadata is not readable")
	errAnotherVersion = errors.New("stored metadata was written by another release")
)

func (c MetaStore) metaError(stream string, err error) error {
	switch err.(type) {
	case nil, *MetaConflictError, *TableConflictError, *MorePartitionsError:
		return err
	}
	return &MetaError{stream, c.keys.Meta(stream), err}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
