package stage

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/internal/test/tier"
)

var (
	seed  = flag.Uint64("seed", 1, "of TestModel, 0 for one by chance")
	steps = flag.Int("steps", 300, "calls that TestModel makes on each server and in each layout")
)

// far is a time, in ms, that does not come.
const far = int64(4_000_000_000_000)

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// A game makes random calls of producers, of the owner, and of owners before it.
type game struct {
	t       *testing.T
	rdb     *redis.Client
	set     *Set
	m       *model
	rand    *rand.Rand
	tenure  int
	number  int64
	held    []Visit // by an owner, of now or before
	counted map[string]int
}

// open returns a set of a server.
func open(t *testing.T, addr, layout string, external bool, stages ...string) (*Set, *redis.Client) {
	t.Helper()
	c, err := store.Open(redisconn.Options{URL: "redis://" + addr, Keys: keys.Keys{App: "shop", Layout: layout}})
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() {
		rdb.Close()
		c.Close()
	})
	return New(c, "offers", external, stages...), rdb
}

// TestModel compares all keys of a partition with the model after each call.
func TestModel(t *testing.T) {
	tier.Sequential(t)
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		t.Run(layout, func(t *testing.T) {
			servers.Both(t, func(t *testing.T, addr string, _ bool) {
				stages := []string{"geo", "photo", "close"}
				set, rdb := open(t, addr, layout, false, stages...)
				from := *seed
				if from == 0 {
					from = rand.Uint64()
				}
				g := &game{t: t, rdb: rdb, set: set, m: newModel(stages), rand: rand.New(rand.NewPCG(from, 0)), counted: map[string]int{}}
				g.own()
				for step := 0; step < *steps || step < 10**steps && g.lacks() != ""; step++ {
					before := g.m.String()
					what, got, want := g.step(step)
					g.adopt()
					if stored := set.stored(t, rdb, 3).String(); got != want || stored != g.m.String() {
						t.Fatalf("-seed %d, step %d: %s\ngot  %s\nwant %s\n\nstored\n%s\nwant\n%s\nbefore\n%s", from, step, what, got, want, stored, g.m, before)
					}
				}
				if lacks := g.lacks(); lacks != "" {
					t.Errorf("-seed %d: no %s: %v", from, lacks, g.counted)
				}
			})
		})
	}
}

// lacks returns something that the game must have seen and has not.
func (g *game) lacks() string {
	g.counted["kept"] = g.m.kept
	for _, what := range []string{"save refused", "take fenced", "commit fenced", "ok", "begun", "gone", "conflict", "begun or put", "begun early, put since true", "begun early, put since false", "alone", "taken", "crash", "woken", "deleted", "kept", "forgotten", MendNow, MendDrop, MendRetry, MendBury} {
		if g.counted[what] == 0 {
			return what
		}
	}
	return ""
}

// own begins the next ownership.
func (g *game) own() {
	g.tenure++
	g.must(g.rdb.HSet(g.t.Context(), g.set.place(3).Own, "tenure", g.fence(g.tenure)).Err())
}

func (g *game) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *game) fence(tenure int) string { return fmt.Sprintf("executorexecutor:%016d", tenure) }

// now is the server's time in ms.
func (g *game) now() int64 {
	now, err := g.rdb.Time(g.t.Context()).Result()
	g.must(err)
	return now.UnixMilli()
}

// soon stands for a time that the server has called now; adopt puts that one in its place.
const soon = -2

func (g *game) adopt() {
	stored, now := g.set.stored(g.t, g.rdb, 3), g.now()
	for stage, queue := range g.m.queue {
		for id, at := range queue {
			if real := stored.queue[stage][id]; at == soon && real > now-5000 && real <= now {
				queue[id] = real
			}
		}
	}
}

// sometimes returns the ownership of a caller: the present one, or now and then the one before.
func (g *game) sometimes(n int) int {
	if g.rand.IntN(n) == 0 {
		return g.tenure - 1
	}
	return g.tenure
}

func (g *game) step(step int) (what, got, want string) {
	id, at := fmt.Sprint("e ", g.rand.IntN(6)), 1+g.rand.Int64N(5)
	if g.rand.IntN(3) == 0 {
		at += far
	}
	switch n := g.rand.IntN(42); {
	case n == 41:
		return g.forget()
	case n >= 39:
		return g.mend()
	case n < 8:
		return g.save(id, fmt.Sprint("\x00\xff data ", step))
	case n < 14:
		return g.visit(id, at)
	case n < 16:
		return g.delete(id)
	case n < 24:
		return g.take()
	case n < 36:
		return g.commit(at, step)
	}
	return g.crash()
}

func (g *game) save(id, payload string) (what, got, want string) {
	stored := g.m.ent[id]
	c := Change{id, payload, []int64{Any, 0, stored.Version, g.m.version + 7}[g.rand.IntN(4)]}
	s := &Save{Partition: 3, Changes: []Change{c}}
	g.set.Save(g.t.Context(), s)
	g.must(s.Err)
	wants := Saved{Found: stored}
	if c.Version == Any || c.Version == stored.Version {
		g.m.version++
		g.m.ent[id] = Entity{g.m.version, "0", payload}
		wants = Saved{Version: g.m.version}
		now := g.now()
		if old, there := g.m.queue[Touch][id]; !there || old > now {
			g.m.queue[Touch][id] = soon
		}
		g.wake(now)
	} else {
		g.counted["save refused"]++
	}
	return fmt.Sprintf("save %q", c), fmt.Sprintf("%q", s.Saved), fmt.Sprintf("%q", []Saved{wants})
}

func (g *game) wake(at int64) {
	before := g.m.wakes
	g.m.wake(at)
	g.counted["woken"] += int(g.m.wakes - before)
}

func (g *game) visit(id string, at int64) (what, got, want string) {
	stage := append(g.m.stages, Touch)[g.rand.IntN(len(g.m.stages)+1)]
	g.must(g.set.Visit(g.t.Context(), 3, stage, At(time.UnixMilli(at)), id))
	g.m.put(stage, id, at)
	g.m.puts++
	g.wake(at)
	return fmt.Sprintf("visit %s %s at %d", stage, id, at), "", ""
}

func (g *game) delete(id string) (what, got, want string) {
	version := int64(Any)
	if g.rand.IntN(2) == 0 {
		version = g.m.ent[id].Version - g.rand.Int64N(2)
	}
	if version == Any {
		g.counted["deleted"]++
	}
	there, err := g.set.Delete(g.t.Context(), 3, id, version)
	wantThere, wantErr := g.m.delete(id, version)
	return fmt.Sprint("delete ", id, version), fmt.Sprint(there, err), fmt.Sprint(wantThere, wantErr)
}

func (g *game) mend() (what, got, want string) {
	stage, how := g.m.stages[g.rand.IntN(len(g.m.stages))], []string{MendNow, MendDrop, MendRetry, MendBury}[g.rand.IntN(4)]
	var ids []string
	var wants []bool
	for n := range 6 {
		id := fmt.Sprint("e ", n)
		did := g.m.mend(stage, how, id)
		ids, wants = append(ids, id), append(wants, did)
		if did {
			g.counted[how]++
		}
		if did && (how == MendNow || how == MendRetry) {
			now := g.now()
			if old, there := g.m.queue[stage][id]; !there || old > now {
				g.m.queue[stage][id] = soon
			}
			g.wake(now)
		}
	}
	if (how == MendNow || how == MendRetry) && slices.Contains(wants, true) {
		g.m.puts++
	}
	did, err := g.set.Mend(g.t.Context(), 3, stage, how, ids...)
	g.must(err)
	return fmt.Sprint("mend ", stage, " ", how), fmt.Sprint(did), fmt.Sprint(wants)
}

func (g *game) forget() (what, got, want string) {
	stage := g.m.stages[g.rand.IntN(len(g.m.stages))]
	waited := int64(len(g.m.queue[stage]))
	g.m.forget(stage)
	g.counted["forgotten"] += int(waited)
	next, n, err := g.set.ForgetPage(g.t.Context(), 3, stage, "0")
	g.must(err)
	return "forget " + stage, fmt.Sprint(next, n), fmt.Sprint("0", waited)
}

func (g *game) take() (what, got, want string) {
	g.number++
	asks, by := []Ask{}, g.sometimes(6)
	for _, stage := range append([]string{Touch}, g.m.stages...) {
		asks = append(asks, Ask{stage, g.rand.IntN(4)})
	}
	sleep := g.rand.IntN(2) == 0
	if !sleep && g.rand.IntN(2) == 0 {
		asks = asks[g.rand.IntN(len(asks)):]
	}
	t := &Take{Partition: 3, Fence: g.fence(by), Number: g.number, Asks: asks, Sleep: sleep, MaxBytes: 1 << 20}
	wants := *t
	g.set.Take(g.t.Context(), t)
	if by != g.tenure {
		g.counted["take fenced"]++
		return "take by another", fmt.Sprint(errors.Is(t.Err, store.ErrFenced)), "true"
	}
	g.must(t.Err)
	g.m.take(g.now(), &wants)
	if later := wants.Next; later > time.Minute && t.Next >= later && t.Next < later+time.Minute { // the clock goes on
		t.Next = later
	}
	for _, v := range t.Visits {
		v.Entity = g.m.ent[v.ID]
		g.held = append(g.held, v)
	}
	g.counted["taken"] += len(t.Visits)
	return fmt.Sprintf("take %+v, sleep %v", asks, sleep), t.reply(), wants.reply()
}

func (t *Take) reply() string {
	return fmt.Sprintf("%v %d %d %d %v %+v", t.Next, t.Dropped, t.Running, t.Passed, t.More, t.Visits)
}

func (g *game) commit(at int64, step int) (what, got, want string) {
	c := &Commit{Partition: 3, Fence: g.fence(g.sometimes(10))}
	for range 1 + g.rand.IntN(3) {
		if len(g.held) > 0 {
			i := g.rand.IntN(len(g.held))
			c.Ends = append(c.Ends, g.end(g.held[i], at, step))
			if g.rand.IntN(8) > 0 { // else it is ended a second time later
				g.held = slices.Delete(g.held, i, i+1)
			}
		}
	}
	g.set.Commit(g.t.Context(), c)
	if c.Fence != g.fence(g.tenure) {
		g.counted["commit fenced"]++
		return "commit by another", fmt.Sprint(errors.Is(c.Err, store.ErrFenced)), "true"
	}
	g.must(c.Err)
	var wants []Ended
	for _, e := range c.Ends {
		o := g.m.commit(e)
		g.counted[string(o.Outcome)]++
		wants = append(wants, o)
		if o.Outcome == OK || o.Outcome == Begun {
			g.runs(e, o.Version)
		}
	}
	return fmt.Sprintf("commit %q", c.Ends), fmt.Sprintf("%q", c.Ended), fmt.Sprintf("%q", wants)
}

// runs notes the visits that an End has begun, or left alone.
func (g *game) runs(e End, version int64) {
	for _, v := range e.Settle {
		if v.What == Begins || v.What == Alone {
			text, _, _ := strings.Cut(v.Text, " ")
			number, err := strconv.ParseInt(text, 10, 64)
			g.must(err)
			g.held = append(g.held, Visit{Stage: v.Stage, ID: e.ID, Number: number, Entity: Entity{Version: version}})
		}
	}
}

// end makes an End of a visit.
func (g *game) end(v Visit, at int64, step int) End {
	e := End{ID: v.ID, Number: v.Number, Mode: []Mode{Leave, Put, Put, Put, Put, Remove, Remove, Forget}[g.rand.IntN(8)], Version: v.Entity.Version, Passes: fmt.Sprint(g.rand.IntN(3)), Payload: fmt.Sprint("by stage\x00 ", step)}
	if g.rand.IntN(2) == 0 && (e.Mode == Remove || e.Mode == Forget) {
		e.Mode = Leave
	}
	what := []What{Ends, Waits, Fails, Dies, Recovers}[g.rand.IntN(5)]
	if v.Stage == Touch && what == Dies || e.Mode == Remove || e.Mode == Forget {
		what = Ends
	}
	due := Due(fmt.Sprint(at))
	e.Settle = []Settlement{{v.Stage, what, due, fmt.Sprint("failed in ", step)}}
	if e.Mode == Leave && g.rand.IntN(8) == 0 {
		g.counted["alone"]++
		e.Settle[0] = Settlement{v.Stage, Alone, due, fmt.Sprint(v.Number)}
	}
	other := g.m.stages[g.rand.IntN(len(g.m.stages))]
	if e.Mode != Remove && e.Mode != Forget && other != v.Stage {
		switch n := g.rand.IntN(4); {
		case n == 0:
			e.Settle = append(e.Settle, Settlement{other, Puts, due, ""})
		case n == 1:
			if _, runs := g.m.run[field(other, v.ID)]; runs {
				g.counted["begun or put"]++
			}
			g.number++
			text := fmt.Sprint(g.number)
			if g.rand.IntN(2) == 0 {
				puts := g.m.puts - g.rand.Int64N(2)
				if _, waits := g.m.queue[other][v.ID]; waits {
					g.counted[fmt.Sprint("begun early, put since ", puts < g.m.puts)]++
				}
				text += fmt.Sprint(" ", max(puts, 0))
			}
			e.Settle = append(e.Settle, Settlement{other, Begins, "4", text})
		}
	}
	return e
}

// crash begins another ownership, for which what ran has failed once more.
func (g *game) crash() (what, got, want string) {
	g.counted["crash"]++
	g.own()
	runs, err := g.set.Runs(g.t.Context(), 3)
	g.must(err)
	c := &Commit{Partition: 3, Fence: g.fence(g.tenure)}
	for _, v := range runs {
		then := Fails
		if v.Stage == Touch {
			then = Waits
		}
		c.Ends = append(c.Ends, End{ID: v.ID, Number: v.Number, Settle: []Settlement{{v.Stage, then, Due(fmt.Sprint(v.At)), "crash"}}})
	}
	g.set.Commit(g.t.Context(), c)
	g.must(c.Err)
	for _, e := range c.Ends {
		g.m.commit(e)
	}
	if g.rand.IntN(2) == 0 {
		g.held = g.held[:len(g.held)/2] // the others are never committed
	}
	return "crash", "", ""
}
