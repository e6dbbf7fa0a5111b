package rows

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// visible reports whether the model has a row that the function sees.
func (w *wild) visible(i int, r store.Row) bool {
	return r.There && (i == 1 || r.Until == 0 || r.Until > w.p.Now())
}

// same compares a row that the function sees with the model.
func (w *wild) same(i int, key string, value any, ok bool) {
	w.t.Helper()
	row := w.model[i][key]
	if want := w.visible(i, row); ok != want || ok && strconv.Itoa(*value.(*int)) != row.Value {
		w.t.Fatalf("at %d table %d has another row under %s (%v), want %+v", w.p.Now(), i, key, ok, row)
	}
}

// touch makes some accesses in an iteration. spoil changes values in place, which is to be undone.
func (w *wild) touch(most int, spoil bool) {
	for range w.rnd.IntN(most) {
		i, key := w.rnd.IntN(2), fmt.Sprint("k", w.rnd.IntN(w.keys))
		t := w.p.Tables[i]
		switch w.rnd.IntN(9) {
		case 0:
			t.Delete(key)
			w.model[i][key] = store.Row{}
		case 1, 2, 3:
			value, until := w.rnd.IntN(1000), int64(0)
			if w.rnd.IntN(4) > 0 {
				until = w.p.Now() + 1 + w.rnd.Int64N([]int64{2, 20, 200}[w.rnd.IntN(3)])
			}
			t.Set(key, &value, until)
			w.model[i][key] = store.Row{Value: strconv.Itoa(value), Until: until, There: true}
		case 4:
			if w.rnd.IntN(5) == 0 {
				w.all(i)
			}
		case 5:
			_ = t.Ask([]string{key, fmt.Sprint("k", w.rnd.IntN(w.keys))})
		default:
			value, ok := t.Get(key)
			w.same(i, key, value, ok)
			if ok && spoil {
				*value.(*int) += 5000
				w.model[i][key] = store.Row{Value: strconv.Itoa(*value.(*int)), Until: w.model[i][key].Until, There: true}
			}
		}
	}
}

// all compares all rows.
func (w *wild) all(i int) {
	w.inline = true
	defer func() { w.inline = false }()
	seen := map[string]bool{}
	w.p.Tables[i].All(func(key string, value any) bool {
		if seen[key] {
			w.t.Fatalf("%s comes twice", key)
		}
		seen[key] = true
		w.same(i, key, value, true)
		return true
	})
	for key, row := range w.model[i] {
		if w.visible(i, row) && !seen[key] {
			w.t.Fatalf("table %d: %s does not come", i, key)
		}
	}
}

// iterate is an iteration of one or two calls, of which the last or all may fail.
func (w *wild) iterate(begin func(), most int) {
	from, whole := w.p.Mark(), clones(w.model)
	for range 1 + w.rnd.IntN(2) {
		call, part, fails := w.p.Mark(), clones(w.model), w.rnd.IntN(4) == 0
		begin()
		w.touch(most, fails)
		w.p.End()
		if fails {
			w.p.Undo(call)
			w.model = part
		} else {
			_ = w.p.Seal()
		}
	}
	if w.rnd.IntN(5) == 0 {
		w.p.Undo(from)
		w.model = whole
	}
	w.take()
}

// take has what was changed committed later.
func (w *wild) take() {
	if items, _, _ := w.p.Pending(); items == 0 {
		return
	}
	n := len(w.queue)
	if n == 0 || w.rnd.IntN(2) == 0 {
		w.queue, n = append(w.queue, &wildCommit{changes: &store.Changes{}}), n+1
	}
	one := w.queue[n-1]
	w.p.Take(one.changes)
	one.taken, one.model, one.now = w.p.Taken(), clones(w.model), w.p.Now()
}

// first returns the row that ends first by now.
func (w *wild) first() (first store.End) {
	first = allEnds
	for key, row := range w.model[1] {
		if one := (store.End{At: row.Until, Key: key}); row.There && row.Until > 0 && row.Until <= w.now && compareEnds(one, first) < 0 {
			first = one
		}
	}
	return first
}

// expire ends the rows whose time has come; some fail at first, and some stay.
func (w *wild) expire() {
	for w.p.NextEnd() <= w.now {
		e, ok, _ := w.p.Ending(w.now)
		if !ok {
			break
		}
		want := w.first()
		if e.There && (want.Key != e.Key || want.At != e.At || strconv.Itoa(*e.Value.(*int)) != w.model[1][e.Key].Value) || !e.There && w.model[1][e.Key].There {
			w.t.Fatalf("%+v has ended, want %+v", e, want)
		}
		w.end(e)
	}
	if left := w.first(); left != allEnds {
		w.t.Fatalf("%+v has not ended", left)
	}
}

// end is the iteration of a row that ends.
func (w *wild) end(e Ending) {
	w.others()
	before, back, keep := w.p.Mark(), clones(w.model), e.There && w.rnd.IntN(6) == 0
	w.p.BeginEnd(e.At)
	row := w.model[1][e.Key]
	if row.Until = 0; keep {
		w.p.Tables[1].Keep(e.Key)
		w.model[1][e.Key] = row
	} else {
		w.p.Tables[1].Delete(e.Key)
		delete(w.model[1], e.Key)
		w.touch(4, false)
	}
	w.p.End()
	if w.rnd.IntN(5) == 0 {
		w.p.Undo(before)
		w.model = back
		return
	}
	_ = w.p.Seal()
	w.take()
}

// others is a moment in which others do something.
func (w *wild) others() {
	switch w.rnd.IntN(3) {
	case 0:
		w.commit(1 + w.rnd.IntN(3))
	case 1:
		if w.page != nil {
			w.page = w.load(w.page)
		}
	}
}

// play is some steps of one owner after the other.
func (w *wild) play(steps int) {
	w.own()
	w.page = w.load(nil)
	for range steps {
		w.others()
		w.now += w.rnd.Int64N(15)
		w.expire()
		w.others()
		w.iterate(func() { w.p.Begin(fmt.Sprint(w.now, "-0")); w.others() }, 8)
		switch w.rnd.IntN(25) {
		case 0:
			w.lose(w.page)
			w.own()
			w.page = w.load(nil)
		case 1: // no event waits: rows without a function are removed
			w.commit(len(w.queue))
			w.now += w.rnd.Int64N(30)
			w.expire()
			w.commit(len(w.queue))
			maps.DeleteFunc(w.db[0], func(_ string, r store.Row) bool { return r.Until > 0 && r.Until <= w.now })
		}
	}
	for w.page != nil && w.rnd.IntN(2) == 0 {
		w.page = w.load(w.page)
	}
	w.now += 1000
	w.expire()
	w.p.Begin(fmt.Sprint(w.now, "-0"))
	w.all(0)
	w.all(1)
	w.p.End()
	w.commit(len(w.queue))
	for i, model := range w.model {
		unseen := func(_ string, r store.Row) bool { return !w.visible(i, r) }
		maps.DeleteFunc(model, unseen)
		maps.DeleteFunc(w.db[i], unseen)
		if !maps.Equal(w.db[i], model) {
			w.t.Fatalf("table %d is stored as %v, want %v", i, w.db[i], model)
		}
	}
	w.lose(w.page)
}

// Whatever commits, loaders, failures and owners do, and when, a function sees the rows that it has set, and they are stored.
func TestRowsAtRandom(t *testing.T) {
	seeds := uint64(50)
	if tier.Full() {
		seeds = uint64(tier.Large(500))
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			w := &wild{t: t, rnd: rnd, now: 1000, from: 1000, keys: []int{2, 5, 12, 40}[rnd.IntN(4)]}
			if seed%20 == 0 {
				w.keys = 400
			}
			w.budget.Most = []int64{0, 500, 3000, 1 << 20}[rnd.IntN(4)]
			for range 2 {
				w.db = append(w.db, map[string]store.Row{})
				for n := range w.keys {
					if rnd.IntN(2) == 0 {
						w.db[len(w.db)-1][fmt.Sprint("k", n)] = store.Row{Value: strconv.Itoa(n), Until: []int64{0, 1001, 1000 + rnd.Int64N(200) + 1}[rnd.IntN(3)], There: true}
					}
				}
			}
			w.durable = clones(w.db)
			w.play(20 + rnd.IntN(60))
		})
	}
}
