package webhook

import (
	"errors"
	"maps"
	"slices"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// savesAtOnce is how many calls save states at once. Meanwhile others gather.
const savesAtOnce = 2

// A saver saves the states of the subscribers of an owner.
type saver struct {
	o       *owner
	waiting []*save
	calls   int // under way
}

// A save is a state on its way to Redis.
type save struct {
	iwebhook.Save
	s       *subscriber
	settled map[string]delivery.ID
}

// add has the state of a subscriber saved.
func (v *saver) add(s *subscriber, settings string) {
	v.waiting = append(v.waiting, &save{
		s: s, settled: maps.Clone(s.w.State().Settled),
		Save: iwebhook.Save{Name: s.name, Replaces: s.version, Settings: settings, State: s.w.Encode(), Letters: s.letters},
	})
}

// run begins as many calls as may be under way.
func (v *saver) run() {
	for v.calls < savesAtOnce && len(v.waiting) > 0 {
		some := v.waiting[:min(len(v.waiting), iwebhook.SavesPerCall)]
		v.waiting = slices.Clone(v.waiting[len(some):])
		v.calls++
		go v.save(some)
	}
}

// save saves states, again until the outcome is known, and posts it.
func (v *saver) save(some []*save) {
	o := v.o
	all := make([]*iwebhook.Save, len(some))
	for i, one := range some {
		all[i] = &one.Save
	}
	var fenced error
	outage.Retry(o.ctx, o.log, "save", func() error {
		err := o.b.owners.Save(o.ctx, o.n, o.fence, all)
		if errors.Is(err, store.ErrFenced) {
			fenced = err
			return nil
		}
		return err
	})
	o.mail.post(func() {
		v.calls--
		if fenced != nil && !o.over {
			o.over = true
			o.b.count.Add(buses.Fenced, o.b.name)
			o.own.Lost(fenced)
		}
		for _, one := range some {
			v.saved(one)
		}
	})
}

// saved goes on behind a save.
func (v *saver) saved(one *save) {
	s, batch := one.s, one.s.batch
	s.phase, s.batch = idle, nil
	switch {
	case v.o.over || s.gone || one.Result == 0:
	case one.Result == iwebhook.Saved:
		s.version++
		s.settled, s.letters = one.settled, nil
		if batch != nil && !v.o.ending {
			s.request(batch)
			return
		}
		v.o.look(s)
	case one.Result == iwebhook.Changed:
		s.w.Undo(batch) // and its letters go with the next save
		v.o.reload(s.name)
	default:
		s.lost = true // what it knows is of no use
		v.o.reload(s.name)
	}
	if batch != nil {
		s.free()
	}
}
