package rows

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

// redis is a Source: what was committed.
type redis struct {
	mu   sync.Mutex
	rows map[string]store.Row
	of   []int // keys, of each request
	fail error
}

func (r *redis) Rows(_ store.Table, keys []string) (found []store.Row, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = append(r.of, len(keys))
	for _, key := range keys {
		found = append(found, r.rows[key])
	}
	return found, r.fail
}

func (r *redis) Page(_ store.Table, cursor store.Cursor) (page []store.KeyedRow, next store.Cursor, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.Sorted(maps.Keys(r.rows))
	from := min(int(cursor.At), len(keys))
	to := min(from+3, len(keys))
	for _, key := range keys[from:to] {
		page = append(page, store.KeyedRow{Key: key, Row: r.rows[key]})
	}
	if to == len(keys) {
		to = 0
	}
	return page, store.Cursor{At: uint64(to)}, r.fail
}

// commit applies changes as commit_changes.lua does.
func (r *redis) commit(c *store.Changes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, row := range c.Tables[0].Rows {
		if row.There {
			r.rows[key] = row
		} else {
			delete(r.rows, key)
		}
	}
	maps.DeleteFunc(r.rows, func(_ string, row store.Row) bool { return row.Until > 0 && row.Until <= c.Tables[0].Ended })
}

// A value has a list, to be changed in place.
type value struct{ ns []int }

func table(p *Partition, from *redis, most int64) *Table {
	return p.Add(Config{
		Name: "t", Ends: true, Source: from, Budget: &Budget{Most: most},
		Encode: func(v any) (string, error) {
			text := strings.Trim(fmt.Sprint(v.(*value).ns), "[]")
			if strings.HasPrefix(text, "666") {
				return "", errors.New("no number")
			}
			return text, nil
		},
		Decode: func(data string) (any, error) {
			v := &value{}
			for _, n := range strings.Fields(data) {
				var i int
				if _, err := fmt.Sscan(n, &i); err != nil {
					return nil, err
				}
				v.ns = append(v.ns, i)
			}
			return v, nil
		},
	})
}

// A play changes rows at random, beside a plain map that is right by definition.
type play struct {
	*testing.T
	rng    *rand.Rand
	p      *Partition
	t      *Table
	from   *redis
	right  map[string]store.Row
	queued []*store.Changes
	taken  []int64
}

func (l *play) live(key string) (string, bool) {
	row := l.right[key]
	return row.Value, row.There && (row.Until == 0 || row.Until > l.p.Now())
}

func (l *play) check(key string) {
	l.Helper()
	v, ok := l.t.Get(key)
	text, there := l.live(key)
	if ok != there || ok && strings.Trim(fmt.Sprint(v.(*value).ns), "[]") != text {
		l.Fatalf("%s is %v, %v, want %q, %v", key, v, ok, text, there)
	}
}

// iterate is one iteration, which may fail.
func (l *play) iterate(ms int) {
	before, mark := maps.Clone(l.right), l.p.Mark()
	l.p.Begin(fmt.Sprintf("%d-0", ms))
	for range 1 + l.rng.IntN(4) {
		key := fmt.Sprint("k", l.rng.IntN(12))
		switch l.rng.IntN(5) {
		case 0:
			l.t.Delete(key)
			delete(l.right, key)
		case 1, 2:
			n, until := l.rng.IntN(100), int64(0)
			if l.rng.IntN(2) == 0 {
				until = l.p.Now() + int64(1+l.rng.IntN(30))
			}
			l.t.Set(key, &value{[]int{n}}, until)
			l.right[key] = store.Row{Value: fmt.Sprint(n), Until: until, There: true}
		case 3: // in place, without Set: allowed only where the iteration fails
			l.check(key)
		default:
			l.check(key)
		}
	}
	err := l.p.Seal()
	if err != nil {
		l.Fatal(err)
	}
	l.p.End()
	if l.rng.IntN(3) == 0 {
		for key := range l.right {
			if v, ok := l.t.Get(key); ok {
				v.(*value).ns = append(v.(*value).ns, 77)
			}
		}
		l.p.Undo(mark)
		l.right = before
		return
	}
	if items, _, _ := l.p.Pending(); items == 0 {
		return
	}
	// Several iterations may share a commit.
	if len(l.queued) < 2 || l.rng.IntN(2) == 0 {
		l.queued, l.taken = append(l.queued, &store.Changes{}), append(l.taken, 0)
	}
	n := len(l.queued) - 1
	l.p.Take(l.queued[n])
	l.taken[n] = l.p.Taken()
}

// Whatever is loaded, dropped for want of memory, undone, or committed late: a row is what was set last.
func TestRowsAreWhatWasSetLast(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := &play{T: t, rng: rng, p: &Partition{}, from: &redis{rows: map[string]store.Row{}}, right: map[string]store.Row{}}
		for i := range rng.IntN(12) {
			l.right[fmt.Sprint("k", i)] = store.Row{Value: fmt.Sprint(i), There: true}
		}
		l.from.rows = maps.Clone(l.right)
		most := int64(1 << 20)
		if seed%3 == 0 {
			most = 4 * rowOverhead
		}
		l.t = table(l.p, l.from, most)
		var loading sync.WaitGroup
		if seed%2 == 0 {
			loading.Go(func() { l.t.Load(t.Context()) })
		}
		for ms := 1; ms < 120; ms++ {
			l.iterate(ms)
			if n := len(l.queued); n > 0 && rng.IntN(2) == 0 {
				l.from.commit(l.queued[0])
				l.p.Confirmed(l.taken[0])
				l.queued, l.taken = l.queued[1:], l.taken[1:]
			}
		}
		loading.Wait()
		found := map[string]string{}
		l.t.All(func(key string, v any) bool {
			if _, twice := found[key]; twice {
				t.Errorf("%s comes twice", key)
			}
			found[key] = strings.Trim(fmt.Sprint(v.(*value).ns), "[]")
			return true
		})
		for key := range l.right {
			text, there := l.live(key)
			if got, ok := found[key]; ok != there || got != text && there {
				t.Fatalf("seed %d: All has %s = %q, %v, want %q, %v", seed, key, got, ok, text, there)
			}
			delete(found, key)
		}
		if len(found) > 0 {
			t.Fatalf("seed %d: All has %v, too", seed, found)
		}
		if l.t.Close(); l.t.Config.Budget.Used() != 0 {
			t.Fatalf("seed %d: %d bytes are counted of nothing", seed, l.t.Config.Budget.Used())
		}
	}
}

// Once all is in memory Redis is not asked; before that, once for each row.
func TestRedisIsAskedForWhatIsNotHeld(t *testing.T) {
	p, from := &Partition{}, &redis{rows: map[string]store.Row{"a": {Value: "1", There: true}}}
	rows := table(p, from, 1<<20)
	for range 3 {
		rows.Get("a")
		rows.Get("b")
	}
	if len(from.of) != 2 {
		t.Errorf("asked %d times, want 2", len(from.of))
	}
	if err := rows.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows.Get("c")
	if len(from.of) != 2 {
		t.Errorf("asked for a row though all are there")
	}
}

// A row that was set while the table had a TTL stays once it has none, however it comes into memory.
func TestRowsStayWithoutATTL(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		p, from := &Partition{}, &redis{rows: map[string]store.Row{"a": {Value: "1", Until: 5, There: true}}}
		rows := table(p, from, 1<<20)
		rows.Config.Ends = false
		if loaded { // as a Page of a table that is Lasting: without times
			from.rows["a"] = store.Row{Value: "1", There: true}
			if err := rows.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.Begin("9-0")
		if _, ok := rows.Get("a"); !ok {
			t.Errorf("loaded %v: the row is gone", loaded)
		}
	}
}

func TestAnIterationIsBounded(t *testing.T) {
	p, from := &Partition{}, &redis{rows: map[string]store.Row{}}
	rows := table(p, from, 1<<30)
	begin := func() {
		p.Undo(Mark{})
		p.Begin("5-0")
	}
	begin()
	rows.Set("a", &value{[]int{666}}, 0)
	if err := p.Seal(); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a row that cannot be encoded: %v", err)
	}
	begin()
	for i := range MostItems + 1 {
		rows.Set(fmt.Sprint(i), &value{}, 0)
	}
	if err := p.Seal(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many rows: %v", err)
	}
	begin()
	p.Emit(store.Output{Fields: []string{"data", strings.Repeat("x", MostBytes)}})
	if err := p.Seal(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many bytes: %v", err)
	}
	begin()
	if items, bytes, _ := p.Pending(); items+int(bytes) != 0 {
		t.Errorf("%d items of %d bytes are left after all was undone", items, bytes)
	}
	from.fail = errors.New("gone")
	defer func() {
		if f, ok := recover().(Failure); !ok || f.Err != from.fail {
			t.Errorf("a row that cannot be read: %v", f)
		}
	}()
	rows.Get("unknown")
}

// A row that was set without a look at Redis, and undone, is not held any more, though the loader has passed it: it is
// read anew, and the loader begins again.
func TestAnUndoneRowIsLoadedAgain(t *testing.T) {
	p, from := &Partition{}, &interrupted{redis: redis{rows: map[string]store.Row{}}}
	for _, key := range []string{"a", "b", "c", "d"} { // two pages
		from.rows[key] = store.Row{Value: "1", There: true}
	}
	rows := table(p, &from.redis, 1<<20)
	rows.Config.Source = from
	mark := p.Mark()
	p.Begin("5-0")
	rows.Set("a", &value{[]int{2}}, 0)
	from.between = func() { p.Undo(mark) }
	if err := rows.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, ok := rows.Get("a"); !ok || fmt.Sprint(v.(*value).ns) != "[1]" || len(from.of) != 0 {
		t.Errorf("a is %v, %v, after %d looks at Redis, want 1 of the loader", v, ok, len(from.of))
	}
}

// An interrupted source calls a function before its second page.
type interrupted struct {
	redis
	between func()
}

func (r *interrupted) Page(t store.Table, cursor store.Cursor) ([]store.KeyedRow, store.Cursor, error) {
	if cursor.At > 0 && r.between != nil {
		r.between()
		r.between = nil
	}
	return r.redis.Page(t, cursor)
}

// What a function will ask for comes in one round trip, and only what is not there.
func TestRowsAreAskedForTogether(t *testing.T) {
	from := &redis{rows: map[string]store.Row{"a": {Value: "1", There: true}, "b": {Value: "2", There: true}}}
	p := &Partition{}
	rows := table(p, from, 1<<20)
	p.Begin("1-1")
	rows.Set("c", &value{[]int{3}}, 0)
	for range 2 {
		if err := rows.Ask([]string{"a", "none", "b", "a", "c"}); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for _, key := range []string{"a", "b", "c", "none"} {
		v, ok := rows.Get(key)
		got += fmt.Sprint(v, ok, " ")
	}
	if got != "&{[1]} true &{[2]} true &{[3]} true <nil> false " || len(from.of) != 1 || rows.Config.Budget.Asked.Load() != 3 {
		t.Errorf("got %s, asked %d times for %d rows", got, len(from.of), rows.Config.Budget.Asked.Load())
	}
	if rows.Complete() {
		t.Error("complete before the loader is through")
	}
	if err := rows.Load(t.Context()); err != nil || !rows.Complete() {
		t.Errorf("not complete behind it, %v", err)
	}
	if from.fail = errors.New("lost"); rows.Ask([]string{"d"}) != nil {
		t.Error("asked though all is there")
	}
	rows.forget(rows.find("a"))
	if rows.Ask([]string{"a"}) == nil {
		t.Error("no error of a lost ownership")
	}
}

// A row whose deletion is not committed stays deleted, though all that is committed is dropped and Redis still has it.
func TestADeletionIsKeptUntilItIsCommitted(t *testing.T) {
	from := &redis{rows: map[string]store.Row{"a": {Value: "1", There: true}, "b": {Value: "2", There: true}}}
	p := &Partition{}
	rows := table(p, from, 1<<20)
	if err := rows.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	iterate := func(id string, do func()) {
		t.Helper()
		p.Mark()
		p.Begin(id)
		do()
		p.End()
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		p.Take(&store.Changes{})
	}
	iterate("1-1", func() { rows.Delete("a") })
	rows.Config.Budget.Most = 0
	iterate("2-1", func() { rows.Set("c", &value{[]int{3}}, 0) })
	iterate("3-1", func() {
		if v, ok := rows.Get("a"); ok {
			t.Errorf("the deleted row is %v", v)
		}
	})
}
