package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	recordInList = 2 << 10   // bytes of a record shown in a list
	listBytes    = 32 << 20  // of all entries in a list of delayed events
	recordAlone  = 256 << 10 // bytes of a record shown alone

	// Maximum bytes of a record to decode, for a list or alone.
	decodedInList = 1 << 20
	decodedAlone  = 4 << 20

	searched = 20_000 // most entries that a search by key reads
)

// A text is a record or a field as text, which may be cut.
type text struct {
	Text string `json:"text"`
	Size int    `json:"size"` // of all of it
	Cut  bool   `json:"cut,omitempty"`
}

func cut(s string, most int) text {
	end := len(s)
	if end > most {
		// Bytes that are not UTF-8 have no character to keep whole.
		for end = most; end > most-utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]); end-- {
		}
	}
	return text{strings.ToValidUTF8(s[:end], "\uFFFD"), len(s), end < len(s)}
}

type reading struct {
	*records.Decoder
	one *sync.Mutex
}

func (d *dashboard) reading(stream string, meta store.Meta) (*reading, error) {
	declared, err := d.reg.Streams()
	if err != nil {
		return nil, err
	}
	return &reading{records.NewDecoder(stream, meta, declared).Within(decodedInList), &d.decoding}, nil
}

// alone sets the limit of a single record, which is shown in more detail.
func (r *reading) alone() { r.Decoder = r.Within(decodedAlone) }

// record returns a record as shown, or why it cannot be. All requests together decode one record at
// a time.
func (r *reading) record(ctx context.Context, e redisconn.Entry, most int) (*text, string) {
	return r.shown(ctx, most, func() (json.RawMessage, error) { return r.Record(e) })
}

func (r *reading) shown(ctx context.Context, most int, decode func() (json.RawMessage, error)) (*text, string) {
	r.one.Lock()
	defer r.one.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err.Error()
	}
	record, err := decode()
	if err != nil {
		return nil, cut(err.Error(), recordInList).Text
	}
	t := cut(string(record), most)
	return &t, ""
}

func (r *reading) key(ctx context.Context, e redisconn.Entry) (string, bool) {
	r.one.Lock()
	defer r.one.Unlock()
	if ctx.Err() != nil {
		return "", false
	}
	return r.Key(e)
}

type listedEvent struct {
	Partition int     `json:"partition"`
	ID        string  `json:"id"`
	At        int64   `json:"at"`  // ms, by the ID
	Key       *string `json:"key"` // null: unknown
	Record    *text   `json:"record,omitempty"`
	Err       string  `json:"err,omitempty"` // why there is no record
}

// listedEvents are the latest events of a stream, newest first.
type listedEvents struct {
	Events   []listedEvent `json:"events"`
	Searched int           `json:"searched"` // entries read
	Complete bool          `json:"complete"` // the list has all
}

func (d *dashboard) events(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
	a, err := askOf(ctx, c, r)
	if err != nil {
		return nil, err
	}
	look, err := d.reading(a.stream, a.meta)
	if err != nil {
		return nil, err
	}
	key, partitions, limit := keyOf(r), a.partitions, a.limit
	if key != nil && len(partitions) > 1 {
		if n, ok := look.PartitionOf(*key); ok {
			partitions = []int{n}
		}
	}
	l, most, before := listedEvents{Events: []listedEvent{}}, recordInList, idOf(r)
	if before != "" {
		limit, most = 1, recordAlone
		look.alone()
	}
	back := inspect.NewBack(c, a.stream, partitions, before)
	for len(l.Events) < limit && l.Searched < searched {
		e, ok, err := back.Next(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if !ok || before != "" && e.Entry.ID != before {
			l.Complete = true
			break
		}
		l.Searched++
		one := listedEvent{Partition: e.Partition, ID: entryid.EventID(e.Partition, e.Entry.ID), At: entryid.Time(e.Entry.ID).UnixMilli()}
		k, ok := look.key(ctx, e.Entry)
		if key != nil && (!ok || k != *key) {
			continue
		}
		if ok {
			k = cut(store.KeyText(k), recordInList).Text
			one.Key = &k
		}
		one.Record, one.Err = look.record(ctx, e.Entry, most)
		l.Events = append(l.Events, one)
	}
	return l, nil
}

func processorAsk(ctx context.Context, c *store.Client, r *http.Request) (p place, f admin.Filter, err error) {
	if p, err = placeOf(ctx, c, r.URL.Query().Get("processor")); err != nil {
		return p, f, err
	}
	f = admin.Filter{Key: keyOf(r), ID: idOf(r), Error: r.URL.Query().Get("error")}
	var limitErr error
	f.Partitions, err = partitionsOf(r, p.meta)
	f.Limit, limitErr = limitOf(r)
	return p, f, errors.Join(err, limitErr)
}

// listedAside lists dead letters, parked or delayed events, oldest first.
type listedAside[T any] struct {
	List []T  `json:"list"`
	More bool `json:"more"` // the list is cut at its limit
}

// asked cuts a list, requested with one more than limit, to limit elements.
func asked[T any](list []T, limit int) listedAside[T] {
	if len(list) > limit {
		return listedAside[T]{list[:limit], true}
	}
	return listedAside[T]{list, false}
}

// A letter is a dead letter, with its fields if shown alone.
type letter struct {
	admin.DeadLetter
	Record *text           `json:"record,omitempty"`
	Err    string          `json:"err,omitempty"`
	Fields map[string]text `json:"fields,omitempty"`
}

func (d *dashboard) dead(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
	p, f, err := processorAsk(ctx, c, r)
	if err != nil {
		return nil, err
	}
	alone, limit := f.ID != "", f.Limit
	f.Limit++
	dead := d.admin.DeadLetters(p.stream, p.processor)
	list := dead.List
	if alone {
		list = dead.Read
	}
	states, err := list(ctx, &f)
	if err != nil {
		return nil, err
	}
	look, err := d.reading(p.stream, p.meta)
	if err != nil {
		return nil, err
	}
	if alone {
		look.alone()
	}
	letters := make([]letter, len(states))
	for i, s := range states {
		letters[i] = letter{DeadLetter: s}
		if !alone {
			letters[i].Error, letters[i].Key = cut(s.Error, recordInList).Text, cut(s.Key, recordInList).Text
			continue
		}
		letters[i].Record, letters[i].Err = look.record(ctx, redisconn.Entry{ID: s.ID, Values: s.Fields}, recordAlone)
		letters[i].Fields = map[string]text{}
		for name, value := range s.Fields {
			letters[i].Fields[name] = cut(fmt.Sprint(value), recordInList)
		}
	}
	return asked(letters, limit), nil
}

func (d *dashboard) parked(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
	p, f, err := processorAsk(ctx, c, r)
	if err != nil {
		return nil, err
	}
	limit := f.Limit
	f.Limit++
	states, err := d.admin.Parked(p.stream, p.processor).List(ctx, &f)
	for i := range states {
		states[i].Error, states[i].Key = cut(states[i].Error, recordInList).Text, cut(states[i].Key, recordInList).Text
	}
	return asked(states, limit), err
}

type delayedEvent struct {
	admin.DelayedEvent
	Record *text  `json:"record,omitempty"`
	Err    string `json:"err,omitempty"`
}

func (d *dashboard) delayed(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
	a, err := askOf(ctx, c, r)
	if err != nil {
		return nil, err
	}
	states, err := d.admin.Delayed(a.stream).List(ctx, &admin.DelayedFilter{Partitions: a.partitions, Limit: a.limit + 1, MaxBytes: listBytes})
	if err != nil {
		return nil, err
	}
	look, err := d.reading(a.stream, a.meta)
	if err != nil {
		return nil, err
	}
	events := make([]delayedEvent, len(states))
	for i, s := range states {
		events[i] = delayedEvent{DelayedEvent: s}
		if s.Fields == nil {
			events[i].Err = fmt.Sprintf("it has %d bytes, too many for a list", s.Bytes)
			continue
		}
		entry := redisconn.Entry{ID: s.ID, Values: s.Fields}
		events[i].Record, events[i].Err = look.record(ctx, entry, recordInList)
		if key, ok := look.key(ctx, entry); ok {
			events[i].Key = cut(store.KeyText(key), recordInList).Text
		}
	}
	return asked(events, a.limit), nil
}

func (d *dashboard) audit(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	states, err := inspect.Audit(ctx, c, limit+1)
	return asked(states, limit), err
}
