package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

func (r *redis) Ends(_ store.Table, most int64) (ends []store.End, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, row := range r.rows {
		if row.Until > 0 {
			ends = append(ends, store.End{At: row.Until, Key: key})
		}
	}
	slices.SortFunc(ends, compareEnds)
	return ends[:min(int64(len(ends)), most)], r.fail
}

// endsGame is an owner of rows that end, what was committed, and what should be there.
type endsGame struct {
	t      *testing.T
	rnd    *rand.Rand
	db     *redis
	budget *Budget
	p      *Partition
	tb     *Table
	now    int64
	model  map[string]int64 // when rows end
}

// own begins an ownership.
func (g *endsGame) own() {
	g.p = &Partition{}
	g.tb = g.p.Add(Config{
		Name: "t", Ends: true, Calls: true, Source: g.db, Budget: g.budget,
		Encode: func(v any) (string, error) { return v.(string), nil }, Decode: func(s string) (any, error) { return s, nil },
	})
	if g.rnd.IntN(2) == 0 {
		if err := g.tb.Load(g.t.Context()); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g *endsGame) commit() {
	if err := g.p.Seal(); err != nil {
		g.t.Fatal(err)
	}
	g.p.End()
	c := &store.Changes{}
	g.p.Take(c)
	g.db.commit(c)
	g.p.Confirmed(g.p.Taken())
}

// expire ends all rows whose time has come.
func (g *endsGame) expire() {
	last := noEnds
	for g.p.NextEnd() <= g.now {
		e, ok, err := g.p.Ending(g.now)
		if err != nil {
			g.t.Fatal(err)
		}
		if !ok {
			continue
		}
		g.p.Mark()
		g.p.BeginEnd(e.At)
		g.tb.Delete(e.Key)
		g.commit()
		at, there := g.model[e.Key]
		if there != e.There || there && (at != e.At || e.Value != fmt.Sprint(e.Key, " ", at)) {
			g.t.Fatalf("%+v has ended, want %d", e, at)
		}
		delete(g.model, e.Key)
		if one := (store.End{At: e.At, Key: e.Key}); there && compareEnds(one, last) < 0 {
			g.t.Fatalf("%v comes behind %v", one, last)
		} else if there {
			last = one
		}
	}
	for key, at := range g.model {
		if at <= g.now {
			g.t.Fatalf("at %d %s has not ended at %d", g.now, key, at)
		}
	}
}

// change is an iteration that changes some rows of so many, or fails.
func (g *endsGame) change(keys int) {
	g.p.Mark()
	from := g.p.Mark()
	g.p.Begin(fmt.Sprint(g.now, "-0"))
	next := map[string]int64{}
	for range 1 + g.rnd.IntN(1+keys/10) {
		key := fmt.Sprint("k", g.rnd.IntN(keys))
		switch at := g.now + 1 + g.rnd.Int64N(200+int64(keys)); g.rnd.IntN(8) {
		case 0:
			g.tb.Delete(key)
			next[key] = 0
		case 1:
			g.tb.Set(key, "stays", 0)
			next[key] = math.MaxInt64
		default:
			g.tb.Set(key, fmt.Sprint(key, " ", at), at)
			next[key] = at
		}
	}
	if g.rnd.IntN(4) == 0 {
		g.p.End()
		g.p.Undo(from)
		return
	}
	g.commit()
	for key, at := range next {
		if g.model[key] = at; at == 0 {
			delete(g.model, key)
		}
	}
}

// Rows come up in the order of their ends, each once and as it was set last, whatever was set, deleted and undone meanwhile,
// how much of it is in memory, and how often the ownership changes.
func TestEndsComeInOrder(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &endsGame{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), db: &redis{rows: map[string]store.Row{}}, now: 1000, model: map[string]int64{}}
			g.budget = &Budget{Most: int64(g.rnd.IntN(2)) * 1 << 20}
			keys := []int{3, 40, 600, 3, 40, 300, 3, 40, 600, 5000}[seed%10]
			g.own()
			for range 60 {
				g.now += g.rnd.Int64N(40)
				g.expire()
				g.change(keys)
				if g.rnd.IntN(10) == 0 {
					g.own()
				}
			}
			g.now += 10_000
			g.expire()
			if g.p.NextEnd() != math.MaxInt64 {
				t.Errorf("a row ends at %d", g.p.NextEnd())
			}
		})
	}
}

// Ends that are too many to be held are asked for when their time comes.
func TestManyEnds(t *testing.T) {
	g := &endsGame{t: t, rnd: rand.New(rand.NewPCG(1, 1)), db: &redis{rows: map[string]store.Row{}}, budget: &Budget{Most: 1 << 30}, now: 1, model: map[string]int64{}}
	g.own()
	g.expire() // knows that none ends
	for part := range slices.Chunk(g.rnd.Perm(mostEnds+1500), 1000) {
		g.p.Mark()
		g.p.Begin("1-0")
		for _, at := range part {
			key := fmt.Sprint("k", at)
			g.tb.Set(key, fmt.Sprint(key, " ", at+2), int64(at+2))
			g.model[key] = int64(at + 2)
		}
		g.commit()
	}
	for g.now < mostEnds+1502 {
		g.now += 500
		g.expire()
	}
}

// A row may be passed in time before its end was told.
func TestAnEndThatIsLateIsTold(t *testing.T) {
	g := &endsGame{t: t, rnd: rand.New(rand.NewPCG(2, 2)), db: &redis{rows: map[string]store.Row{}}, budget: &Budget{Most: 1 << 30}, now: 1, model: map[string]int64{"a": 10}}
	g.own()
	if err := g.tb.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.p.Mark()
	g.p.Begin("1-0")
	g.tb.Delete("a")
	g.commit()
	g.p.Mark()
	g.p.Begin("50-0")
	g.tb.Set("a", "a 10", 10) // as the function of an end does, while time is that of the end
	g.commit()
	g.p.Mark()
	g.p.Begin("50-1")
	if _, ok := g.tb.Get("a"); !ok {
		t.Error("a row is not there whose end was not told")
	}
	g.commit()
	g.now = 50
	g.expire()
	if len(g.model) > 0 {
		t.Error("an end was not told")
	}
}

// Times that were set by other hands come up once.
func TestEndsByOtherHands(t *testing.T) {
	g := &endsGame{t: t, rnd: rand.New(rand.NewPCG(3, 3)), db: &redis{rows: map[string]store.Row{}}, budget: &Budget{Most: 1 << 30}, now: 1, model: map[string]int64{}}
	g.own()
	g.p.Mark()
	g.p.Begin("1-0")
	for i := range 2 * 128 {
		g.tb.Set(fmt.Sprint("gone", i), "x", 0)
		g.tb.Set(fmt.Sprint("stays", i), "x", 0)
	}
	g.commit()
	g.p.Mark()
	g.p.Begin("1-1")
	for i := range 2 * 128 {
		g.tb.Delete(fmt.Sprint("gone", i))
	}
	g.commit()
	for i := range 2 * 128 {
		g.db.rows[fmt.Sprint("gone", i)] = store.Row{Until: 5}
		g.db.rows[fmt.Sprint("stays", i)] = store.Row{Value: "x", There: true, Until: 6}
	}
	told := 0
	for g.p.NextEnd() <= 10 {
		e, ok, err := g.p.Ending(10)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if e.There {
			told++
		}
		g.p.Mark()
		g.p.BeginEnd(e.At)
		g.tb.Delete(e.Key)
		g.commit()
		if g.p.NextEnd() == math.MinInt64 || len(g.db.rows) == 0 {
			break
		}
	}
	if told != 2*128 || len(g.db.rows) > 0 {
		t.Errorf("%d ends were told, %d are left", told, len(g.db.rows))
	}
}

// A time that is left of a row which is gone is removed, and a row that cannot be decoded comes with an error.
func TestEndsOfBadRows(t *testing.T) {
	db := &redis{rows: map[string]store.Row{"gone": {Until: 5}, "bad": {Value: "bad", Until: 6, There: true}}}
	p := &Partition{}
	tb := p.Add(Config{Name: "t", Ends: true, Calls: true, Source: db, Budget: &Budget{}, Decode: func(s string) (any, error) { return nil, fmt.Errorf("%q", s) }})
	if p.NextEnd() != math.MinInt64 {
		t.Errorf("an end is known: %d", p.NextEnd())
	}
	e, ok, err := p.Ending(10)
	if !ok || err != nil || e.There || e.Key != "gone" {
		t.Fatalf("%+v, %v, %v", e, ok, err)
	}
	p.Mark()
	p.BeginEnd(e.At)
	tb.Delete("gone")
	p.End()
	p.Take(&store.Changes{})
	if e, ok, err = p.Ending(5); ok || err != nil {
		t.Fatalf("%+v, %v, %v", e, ok, err)
	}
	if e, ok, err = p.Ending(6); !ok || err == nil || e.Key != "bad" {
		t.Fatalf("%+v, %v, %v", e, ok, err)
	}
}
