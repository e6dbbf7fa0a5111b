//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/stage"
)

// A thing is an entity that a producer counts up; a stage copies its number.
type thing struct {
	ID      string
	N, Copy int
}

// declareSet declares the set that every worker has beside its stream. An event that ends its process
// charges the visits of other partitions a crash: these have many attempts.
func declareSet(app *runnel.App) *stage.Set[thing] {
	things := stage.New(app, "things", func(e thing) string { return e.ID }, &stage.Options{
		Partitions: 4, Retry: &runnel.Retry{Max: 1000, MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond},
	})
	things.Stage("copy", func(e thing) bool { return e.Copy != e.N }, func(ctx context.Context, e *thing) (stage.Result, error) {
		dawdle(ctx)
		e.Copy = e.N
		return stage.Updated, nil
	}, nil)
	return things
}

// A tender counts things up, and knows which of these changes were confirmed.
type tender struct {
	*scene
	things *stage.Set[thing]
	loses  atomic.Bool // a server has forgotten what it had confirmed, as it may

	mu          sync.Mutex
	sure, doubt map[string]int
}

const thingsInAll = 40

// tend begins to count things up until stop is called; end closes its app.
func (s *scene) tend() (t *tender, stop, end func()) {
	app, _, end := declare(s.sends.way, "tender")
	t = &tender{scene: s, things: declareSet(app), sure: map[string]int{}, doubt: map[string]int{}}
	ctx, cancel := context.WithCancel(s.t.Context())
	var tending sync.WaitGroup
	tending.Go(func() {
		for ctx.Err() == nil {
			t.count(fmt.Sprintf("t%d-%d", s.round, rand.IntN(thingsInAll)))
			<-time.After(rand.N(20 * time.Millisecond))
		}
	})
	return t, func() {
		cancel()
		tending.Wait()
	}, end
}

// count counts a thing up once.
func (t *tender) count(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.t.Context()), 2*time.Second)
	defer cancel()
	_, err := t.things.Update(ctx, id, func(e *thing) error {
		e.N++
		return nil
	})
	if errors.Is(err, stage.ErrNotFound) {
		_, err = t.things.Save(ctx, stage.Entity[thing]{Value: thing{ID: id, N: 1}})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.sure[id]++
	} else {
		t.doubt[id]++
	}
}

// left says which thing is not at its fixpoint, or has lost or gained changes, "" for none.
func (t *tender) left() string {
	ctx, cancel := context.WithTimeout(t.scene.t.Context(), 5*time.Second)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range thingsInAll {
		id := fmt.Sprintf("t%d-%d", t.round, n)
		e, err := t.things.Get(ctx, id)
		sure, doubt := t.sure[id], t.doubt[id]
		switch {
		case errors.Is(err, stage.ErrNotFound) && (sure == 0 || t.loses.Load()):
		case err != nil, e.Value.Copy != e.Value.N, !t.loses.Load() && (e.Value.N < sure || e.Value.N > sure+doubt):
			return fmt.Sprintf("thing %s is %+v, %v; %d changes were confirmed, %d are in doubt\n", id, e, err, sure, doubt)
		}
	}
	return ""
}
