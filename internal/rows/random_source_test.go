package rows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

// A wild is an owner of two tables, one of which calls a function at the ends of rows. What it does is compared with a
// model. Commits, and the pages of the loader, come late.
type wild struct {
	t       *testing.T
	rnd     *rand.Rand
	keys    int
	budget  Budget
	p       *Partition
	db      []map[string]store.Row // by table: what is committed
	model   []map[string]store.Row // what is done
	durable []map[string]store.Row // the model of what is committed
	queue   []*wildCommit
	now     int64
	from    int64 // the time of what is committed
	inline  bool  // Page is called by the owner
	pages   chan wildPage
	ended   chan error // of the loader
	page    *wildPage  // that the loader waits for
}

type wildCommit struct {
	changes *store.Changes
	taken   int64
	model   []map[string]store.Row
	now     int64
}

// A wildPage is a page that is asked for, or read in part.
type wildPage struct {
	table int
	from  uint64
	step  int
	rows  []store.KeyedRow
	reply chan []store.KeyedRow
}

var errLost = errors.New("lost")

func clones(of []map[string]store.Row) (out []map[string]store.Row) {
	for _, m := range of {
		out = append(out, maps.Clone(m))
	}
	return out
}

func tableOf(t store.Table) int { return int(t.Rows[0] - '0') }

func (w *wild) Rows(t store.Table, keys []string) (found []store.Row, err error) {
	w.commit(w.rnd.IntN(2))
	for _, key := range keys {
		found = append(found, w.db[tableOf(t)][key])
	}
	return found, nil
}

func (w *wild) Ends(t store.Table, most int64) (ends []store.End, err error) {
	w.commit(len(w.queue))
	for key, row := range w.db[tableOf(t)] {
		if row.Until > 0 {
			ends = append(ends, store.End{At: row.Until, Key: key})
		}
	}
	slices.SortFunc(ends, compareEnds)
	return ends[:min(int64(len(ends)), most)], nil
}

func (w *wild) Page(t store.Table, cursor store.Cursor) ([]store.KeyedRow, store.Cursor, error) {
	one := wildPage{table: tableOf(t), from: cursor.At, reply: make(chan []store.KeyedRow)}
	var page []store.KeyedRow
	if w.inline {
		for range 3 {
			w.read(&one)
			w.commit(w.rnd.IntN(2))
		}
		page = one.rows
	} else {
		w.pages <- one
		ok := false
		if page, ok = <-one.reply; !ok {
			return nil, store.Cursor{}, errLost
		}
	}
	if cursor.At += 3; cursor.At >= uint64(w.keys) {
		cursor.At = 0
	}
	return page, cursor, nil
}

// read reads a part of a page, as TableStore.Page does: values, times, and again the values without a time.
func (w *wild) read(p *wildPage) {
	db := w.db[p.table]
	for n := p.from; p.step == 0 && n < p.from+3; n++ {
		if row, ok := db[fmt.Sprint("k", n)]; ok {
			p.rows = append(p.rows, store.KeyedRow{Key: fmt.Sprint("k", n), Row: store.Row{Value: row.Value, There: true}})
		}
	}
	for i := range p.rows {
		row, ok := db[p.rows[i].Key]
		switch {
		case p.step == 1:
			p.rows[i].Until = row.Until
		case p.step == 2 && p.rows[i].Until == 0:
			p.rows[i].Value, p.rows[i].There = row.Value, ok
		}
	}
	if p.step++; p.step == 3 {
		p.rows = slices.DeleteFunc(p.rows, func(r store.KeyedRow) bool { return !r.There })
	}
}

// own begins an ownership: what is not committed is done again.
func (w *wild) own() {
	w.queue, w.model, w.p = nil, clones(w.durable), &Partition{}
	w.p.From(fmt.Sprint(w.from, "-0"))
	for i := range w.db {
		w.p.Add(Config{
			Name: fmt.Sprint(i), Place: store.Table{Rows: fmt.Sprint(i)}, Ends: true, Calls: i == 1, Source: w, Budget: &w.budget,
			Encode: func(v any) (string, error) { return strconv.Itoa(*v.(*int)), nil },
			Decode: func(s string) (any, error) { n, err := strconv.Atoi(s); return &n, err },
		})
	}
	p, ended := w.p, make(chan error, 1)
	w.pages, w.ended = make(chan wildPage), ended
	go func() {
		for _, t := range p.Tables {
			if err := t.Load(context.Background()); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
}

// lose ends the ownership and its loader.
func (w *wild) lose(page *wildPage) {
	if page != nil {
		close(page.reply)
		if err := <-w.ended; !errors.Is(err, errLost) {
			w.t.Fatal(err)
		}
	}
	for _, t := range w.p.Tables {
		t.Close()
	}
	if w.budget.Used() != 0 {
		w.t.Fatalf("%d bytes are left", w.budget.Used())
	}
}

// load has the loader go on for a step. It returns the page that it waits for, nil once it is done.
func (w *wild) load(page *wildPage) *wildPage {
	if page != nil && page.step < 3 {
		w.read(page)
		return page
	}
	if page != nil {
		page.reply <- page.rows
	}
	select {
	case next := <-w.pages:
		return &next
	case err := <-w.ended:
		if err != nil {
			w.t.Fatal(err)
		}
		return nil
	}
}

// commit stores the first commits.
func (w *wild) commit(n int) {
	for ; n > 0 && len(w.queue) > 0; n-- {
		one := w.queue[0]
		w.queue = w.queue[1:]
		for i, t := range one.changes.Tables {
			for key, row := range t.Rows {
				if w.db[i][key] = row; !row.There {
					delete(w.db[i], key)
				}
			}
			maps.DeleteFunc(w.db[i], func(_ string, r store.Row) bool { return r.Until > 0 && r.Until <= t.Ended })
		}
		w.durable, w.from = one.model, one.now
		w.p.Confirmed(one.taken)
	}
}
