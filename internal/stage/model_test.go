package stage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const never = int64(9007199254740991)

// A model is what a partition should be, one call after another.
type model struct {
	stages  []string
	ent     map[string]Entity
	version int64
	queue   map[string]map[string]int64 // by stage, and Touch
	run     map[string]Visit            // by field; only At and Number
	fail    map[string]string
	dead    map[string]map[string]int64
	sleeps  int64 // 0: the owner does not
	wakes   int64
	puts    int64 // how often visits were put from outside
	kept    int   // times that a commit did not move, since an earlier visit waits
}

func newModel(stages []string) *model {
	m := &model{
		stages: stages, ent: map[string]Entity{}, queue: map[string]map[string]int64{Touch: {}}, run: map[string]Visit{},
		fail: map[string]string{}, dead: map[string]map[string]int64{},
	}
	for _, s := range stages {
		m.queue[s], m.dead[s] = map[string]int64{}, map[string]int64{}
	}
	return m
}

func field(stage, id string) string { return stage + " " + id }

func (m *model) put(stage, id string, at int64) {
	if old, there := m.queue[stage][id]; !there || at < old {
		m.queue[stage][id] = at
	}
}

func (m *model) wake(at int64) {
	if at < m.sleeps {
		m.sleeps = 0
		m.wakes++
	}
}

// order returns the IDs of a queue by time, then by ID.
func (m *model) order(stage string) []string {
	q := m.queue[stage]
	return slices.SortedFunc(maps.Keys(q), func(a, b string) int { return cmp.Or(cmp.Compare(q[a], q[b]), cmp.Compare(a, b)) })
}

// take fills in what a Take should answer; Next is in ms.
func (m *model) take(now int64, t *Take) {
	next, seen := int64(-1), map[string]bool{}
	t.Running = int64(len(m.run))
	for _, ask := range t.Asks {
		n := 0
		for _, id := range m.order(ask.Stage) {
			at := m.queue[ask.Stage][id]
			if at > now {
				if next < 0 || at < next {
					next = at
				}
				break
			}
			if _, runs := m.run[field(ask.Stage, id)]; runs {
				t.Passed++
				continue
			}
			if n == ask.Most {
				t.More = append(t.More, ask.Stage)
				break
			}
			n++
			m.begin(t, ask.Stage, id, at, seen)
		}
	}
	if len(t.More) > 0 {
		next = now
	}
	if t.Sleep {
		m.sleeps = 0
		if len(t.Visits) == 0 && len(t.More) == 0 {
			m.sleeps = cmp.Or(max(next, 0), never)
		}
	}
	t.Next = ms(-1)
	if next >= 0 {
		t.Next = ms(next - now)
	}
}

func (m *model) begin(t *Take, stage, id string, at int64, seen map[string]bool) {
	delete(m.queue[stage], id)
	e, there := m.ent[id]
	if !there {
		t.Dropped++
		delete(m.fail, field(stage, id))
		return
	}
	m.run[field(stage, id)] = Visit{At: at, Number: t.Number}
	v := Visit{Stage: stage, ID: id, At: at, Number: t.Number, Puts: strconv.FormatInt(m.puts, 10)}
	for _, s := range append([]string{Touch}, m.stages...) {
		if f, failed := m.fail[field(s, id)]; failed {
			v.Failures += "\n" + s + " " + f
		}
	}
	if !seen[id] {
		v.Entity = e
	}
	seen[id] = true
	t.Visits = append(t.Visits, v)
}

func (m *model) commit(e End) Ended {
	first, stored := field(e.Settle[0].Stage, e.ID), m.ent[e.ID]
	if run, runs := m.run[first]; !runs || run.Number != e.Number {
		return Ended{Gone, stored.Version, Entity{}}
	}
	version := e.Version
	switch {
	case e.Mode == Leave || e.Mode == Forget:
	case stored.Version == 0:
		for _, v := range e.Settle {
			delete(m.run, field(v.Stage, e.ID))
		}
		if e.Mode == Remove {
			for s := range m.queue {
				delete(m.run, field(s, e.ID))
			}
		}
		return Ended{Gone, 0, Entity{}}
	case stored.Version != e.Version:
		return Ended{Conflict, stored.Version, stored}
	case e.Mode == Remove:
		delete(m.ent, e.ID)
	default:
		m.version++
		version = m.version
		m.ent[e.ID] = Entity{version, e.Passes, e.Payload}
	}
	outcome := OK
	for _, v := range e.Settle {
		if m.settle(e.ID, v) {
			outcome = Begun
		}
	}
	if e.Mode == Remove || e.Mode == Forget {
		for s := range m.queue {
			delete(m.queue[s], e.ID)
			delete(m.fail, field(s, e.ID))
		}
		for s := range m.dead {
			delete(m.dead[s], e.ID)
		}
	}
	return Ended{outcome, version, Entity{}}
}

// settle reports whether the visit begins.
func (m *model) settle(id string, v Settlement) (begins bool) {
	at, _ := strconv.ParseInt(string(v.Due), 10, 64)
	name := field(v.Stage, id)
	if _, runs := m.run[name]; v.What == Begins && runs {
		v.What = Puts
	}
	if old, there := m.queue[v.Stage][id]; there && old < at && (v.What == Waits || v.What == Fails || v.What == Puts) {
		m.kept++
	}
	switch v.What {
	case Begins:
		text, puts, early := strings.Cut(v.Text, " ")
		number, _ := strconv.ParseInt(text, 10, 64)
		if !early || puts == strconv.FormatInt(m.puts, 10) {
			delete(m.queue[v.Stage], id)
		}
		m.run[name] = Visit{At: at, Number: number}
		return true
	case Puts:
		m.put(v.Stage, id, at)
		return false
	case Alone:
		number, _ := strconv.ParseInt(v.Text, 10, 64)
		m.run[name] = Visit{At: at, Number: number, Alone: true}
		return false
	}
	delete(m.run, name)
	switch v.What {
	case Waits:
		m.put(v.Stage, id, at)
	case Fails:
		m.put(v.Stage, id, at)
		m.fail[name] = v.Text
	case Dies:
		m.dead[v.Stage][id] = at
		m.fail[name] = v.Text
	case Recovers:
		delete(m.fail, name)
		delete(m.dead[v.Stage], id)
	}
	return false
}

// mend reports whether a failed visit is changed so; the caller puts it.
func (m *model) mend(stage, what, id string) bool {
	name := field(stage, id)
	_, failed := m.fail[name]
	_, runs := m.run[name]
	_, waits := m.queue[stage][id]
	_, died := m.dead[stage][id]
	if !failed || runs || died != (what == MendRetry || what == MendBury) || !died && !waits {
		return false
	}
	delete(m.dead[stage], id)
	if what == MendDrop {
		delete(m.queue[stage], id)
	}
	if what != MendNow {
		delete(m.fail, name)
	}
	return true
}

func (m *model) forget(stage string) {
	m.queue[stage], m.dead[stage] = map[string]int64{}, map[string]int64{}
	maps.DeleteFunc(m.run, func(name string, _ Visit) bool { return strings.HasPrefix(name, stage+" ") })
	maps.DeleteFunc(m.fail, func(name, _ string) bool { return strings.HasPrefix(name, stage+" ") })
}

func (m *model) delete(id string, version int64) (there bool, err error) {
	e, there := m.ent[id]
	if !there || version != Any && version != e.Version {
		if there {
			err = ErrVersion
		}
		return there, err
	}
	delete(m.ent, id)
	for s := range m.queue {
		delete(m.run, field(s, id))
		delete(m.queue[s], id)
		delete(m.fail, field(s, id))
	}
	for s := range m.dead {
		delete(m.dead[s], id)
	}
	return true, nil
}

func (m *model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "version %d sleeps %d wakes %d puts %d\nentities %q\nruns %v\nfailures %q\n", m.version, m.sleeps, m.wakes, m.puts, m.ent, m.run, m.fail)
	for _, s := range slices.Sorted(maps.Keys(m.queue)) {
		fmt.Fprintf(&b, "%s waits %v dead %v\n", s, m.queue[s], m.dead[s])
	}
	return b.String()
}

// stored returns what a partition is.
func (s *Set) stored(t *testing.T, rdb *redis.Client, n int) *model {
	t.Helper()
	m, ctx := newModel(s.stages), t.Context()
	for id, text := range rdb.HGetAll(ctx, s.key("ent", n, "")).Val() {
		e, err := entityOf(text)
		if err != nil {
			t.Fatal(err)
		}
		m.ent[id] = e
	}
	runs, err := s.Runs(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range runs {
		m.run[field(v.Stage, v.ID)] = Visit{At: v.At, Number: v.Number, Alone: v.Alone}
	}
	m.fail = rdb.HGetAll(ctx, s.key("visitfail", n, "")).Val()
	read := func(key string, into map[string]int64) {
		for _, z := range rdb.ZRangeWithScores(ctx, key, 0, -1).Val() {
			into[z.Member.(string)] = int64(z.Score)
		}
	}
	for stage := range m.queue {
		read(s.queue(n, stage), m.queue[stage])
	}
	for stage := range m.dead {
		read(s.dead(n, stage), m.dead[stage])
	}
	m.version, _ = rdb.Get(ctx, s.key("entseq", n, "")).Int64()
	m.sleeps, _ = rdb.HGet(ctx, s.place(n).Own, "sleeps").Int64()
	m.puts, _ = rdb.HGet(ctx, s.place(n).Own, "puts").Int64()
	m.wakes = rdb.XLen(ctx, s.place(n).Log).Val()
	return m
}
