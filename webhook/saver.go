package webhook

import (
	"errors"
	"sync"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// savesAtOnce is how many calls save states at once. Meanwhile others gather.
const savesAtOnce = 2

// A step is what a subscriber does next: its state is stored, then the batch requested that begins with that, if there is one.
type step struct {
	iwebhook.Save
	s       *subscriber
	settled map[string]delivery.ID // in the state
	batch   *delivery.Batch
	request func(*delivery.Batch) answer
	answer  *answer // nil: there was no request
}

// A saver saves the states of the subscribers of an owner.
type saver struct {
	o *owner

	mu      sync.Mutex
	waiting []*step
	calls   int // goroutines of work
}

func (v *saver) add(one *step) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = append(v.waiting, one)
}

// run has saved what waits.
func (v *saver) run() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for n := len(v.waiting); n > 0 && v.calls < savesAtOnce; n -= iwebhook.SavesPerCall {
		v.calls++
		go v.work()
	}
}

// work saves what waits, until nothing does.
func (v *saver) work() {
	for {
		v.mu.Lock()
		n := min(len(v.waiting), iwebhook.SavesPerCall)
		some := v.waiting[:n:n]
		if v.waiting = v.waiting[n:]; n == 0 {
			v.waiting = nil // what lies before would stay in memory
			v.calls--
			v.mu.Unlock()
			return
		}
		v.mu.Unlock()
		v.save(some)
	}
}

// save saves states, again until the outcome is known, and has what they begin requested.
func (v *saver) save(some []*step) {
	o := v.o
	all := make([]*iwebhook.Save, len(some))
	for i, one := range some {
		all[i] = &one.Save
	}
	var fenced error
	outage.Retry(o.ctx, o.log, "save", func() error {
		err := o.b.calls.Save(o.ctx, o.n, o.fence, all)
		if errors.Is(err, store.ErrFenced) {
			fenced = err
			return nil
		}
		return err
	})
	for _, one := range some {
		if one.batch == nil || one.Result != iwebhook.Saved || o.own.Over(o.ctx, nil) {
			o.mail.post(func() { one.s.done(one, fenced) })
			continue
		}
		go func() {
			a := one.request(one.batch)
			o.b.count.answered(o.b.name, one.batch, &a, o.own.Now())
			one.answer = &a
			o.mail.post(func() { one.s.done(one, nil) })
		}()
	}
}

// done goes on behind a step.
func (s *subscriber) done(one *step, fenced error) {
	o := s.o
	o.busy--
	if s.busy = false; one.batch != nil {
		s.free()
	}
	if fenced != nil && !o.over {
		o.over = true
		o.b.count.Add(buses.Fenced, o.b.name)
		o.own.Lost(fenced)
	}
	switch {
	case o.over || s.gone || one.Result == 0:
	case one.Result == iwebhook.Saved:
		s.version++
		if s.settled, s.letters = one.settled, nil; one.answer != nil {
			s.answered(one.batch, one.answer)
		}
		o.look(s)
	case one.Result == iwebhook.Changed:
		s.w.Undo(one.batch) // and its letters go with the next save
		o.reload(s.name)
	default:
		s.lost = true // what it knows is of no use
		o.reload(s.name)
	}
}
