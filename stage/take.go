package stage

import (
	"runtime"
	"time"

	istage "github.com/runnel-go/runnel/internal/stage"
)

const (
	takenAtOnce   = 128 // by one script
	touchesAtOnce = 32  // of one partition
	mostStages    = takenAtOnce - touchesAtOnce
	bytesAtOnce   = 4 << 20 // of entities

	// askedAtLeast is how often all stages are asked for what is due while some have more than there is
	// room for.
	askedAtLeast = 50 * time.Millisecond
)

// take takes what is due, until nothing is, and returns how long the owner may sleep: until the next one
// is due, and no longer than its lease, since a failover may forget that it sleeps.
//
// Stages that are known to have visits due are asked for as many as there are places, and so are touches.
// If there are none, and now and then, all the others are asked, for none: when is their next one due?
func (o *owner) take() (next time.Duration, err error) {
	for all := false; ; {
		asks, wait := o.asks(&all)
		if len(asks) == 0 {
			return wait, nil
		}
		ends := o.ends.Load()
		t := &istage.Take{Partition: o.partition, Fence: o.own.Fence(), Number: o.own.Number(), Asks: asks, Sleep: all, MaxBytes: bytesAtOnce}
		o.set.count.takes.Add(1)
		err := o.set.owners.Take(o.calls, t)
		if o.calls.Err() != nil {
			err = o.calls.Err()
		}
		taken := map[string]int{}
		if err == nil {
			for _, v := range t.Visits {
				taken[v.Stage]++
			}
		}
		for _, a := range asks {
			o.giveBack(a.Stage, a.Most-taken[a.Stage])
		}
		if err != nil {
			return 0, err
		}
		if t.Passed > 0 {
			if o.passed.Store(true); o.ends.Load() != ends { // it may have been one of them
				o.own.Wake()
			}
		}
		if o.begin(t.Visits); len(t.Visits) > 0 {
			runtime.Gosched() // to the chains, before the next take is written
		}
		o.isDue(t.More...)
		switch {
		case len(t.Visits) > 0 || len(t.More) > 0:
			all = false
		case !all:
			all = true
		default:
			o.recount(t.Running)
			if t.Next < 0 {
				return o.own.Expiry(), nil
			}
			return min(t.Next, o.own.Expiry()), nil
		}
	}
}

// isDue notes stages of which visits are due.
func (o *owner) isDue(stages ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, stage := range stages {
		o.due[stage] = true
	}
}

// asks reserves places, and returns how many visits of which stages to take. all is set where all have to
// be asked. Without any, wait is how long the owner may sleep.
func (o *owner) asks(all *bool) (asks []istage.Ask, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.taking = len(asks) > 0 }()
	now := time.Now()
	if now.Sub(o.cleared) >= o.own.Expiry() { // an owner that was told of a place may not have used it
		clear(o.blocked)
		o.cleared = now
	}
	*all = *all || len(o.due) == 0 || now.Sub(o.asked) >= askedAtLeast
	each := (takenAtOnce - touchesAtOnce) / max(len(o.set.stages), 1)
	ask := func(stage, gate string, places *places, most int) {
		hot := o.due[stage] || stage == istage.Touch && !*all
		if o.blocked[stage] || !*all && !hot || !o.own.Open(gate) {
			return
		}
		if !hot {
			most = 0
		} else if most = places.take(most, func() bool { return o.unblock(stage, gate) }); most == 0 {
			o.due[stage], o.blocked[stage] = true, true
			return
		}
		delete(o.due, stage)
		asks = append(asks, istage.Ask{Stage: stage, Most: most})
	}
	ask(istage.Touch, "", &o.set.touches, touchesAtOnce)
	for _, s := range o.set.stages {
		ask(s.name, s.name, &s.places, each)
	}
	if *all {
		o.asked = now
		return asks, o.own.Expiry()
	}
	return asks, askedAtLeast - now.Sub(o.asked)
}

// unblock notes that a stage has a place, and reports whether the owner can use it.
func (o *owner) unblock(stage, gate string) bool {
	o.mu.Lock()
	delete(o.blocked, stage)
	o.mu.Unlock()
	o.own.Wake()
	return o.own.Open(gate)
}

// giveBack gives reserved places back.
func (o *owner) giveBack(stage string, n int) {
	if s := o.set.by[stage]; s != nil {
		s.places.give(n)
	} else {
		o.set.touches.give(n)
	}
}
