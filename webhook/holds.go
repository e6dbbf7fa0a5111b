package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/outage"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A hold is what a log knows of: up to where the subscribers of the partition have come.
type hold struct {
	at     delivery.ID // that was written
	risen  bool        // perhaps
	urgent bool        // who reads the log has changed
	pins   []string    // that the next hold replaces
}

// holds are what the logs of an owner's subscribers are told.
type holds struct {
	o       *owner
	all     map[string]*hold // by log
	telling bool
	at      time.Time // when they were looked at last
}

// holdsAtOnce is how many logs are told at once.
const holdsAtOnce = 256

func (v *holds) of(log string) *hold {
	h := v.all[log]
	if h == nil {
		h = &hold{}
		v.all[log] = h
	}
	return h
}

// run tells logs up to where they are needed, at most once a second: when their readers have changed, or have come far enough for
// the log to be trimmed.
func (v *holds) run() {
	if v.telling || v.o.ending || time.Since(v.at) < lookEvery {
		return
	}
	v.at = time.Now()
	var some []iwebhook.Hold
	for name, h := range v.all {
		if len(some) == holdsAtOnce {
			break
		}
		if one, ok := v.due(name, h); ok {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		return
	}
	v.telling = true
	go func() {
		failed := v.tell(some)
		v.o.mail.post(func() {
			v.telling = false
			for _, one := range failed {
				h := v.of(one.Log)
				h.urgent, h.pins = true, append(h.pins, one.Pinned...)
			}
		})
	}()
}

// due returns what a log is to be told now.
func (v *holds) due(name string, h *hold) (one iwebhook.Hold, ok bool) {
	if !h.risen && !h.urgent {
		return one, false
	}
	h.risen = false
	one.None = true
	for s := range v.o.readers[name] {
		if at := s.safe(name); s.w.State().Off == "" && (one.None || at.N < one.At.N) {
			one.At, one.None = at, false
		}
	}
	if !h.urgent && one.At.N < h.at.N+max(v.o.b.opts.Keep/8, 1) {
		return one, false
	}
	one.Log, one.Epoch, one.Pinned = name, v.o.epoch, h.pins
	h.at, h.urgent, h.pins = one.At, false, nil
	if one.None {
		delete(v.all, name)
	}
	return one, true
}

// tell returns the holds that could not be written.
func (v *holds) tell(some []iwebhook.Hold) (failed []iwebhook.Hold) {
	o := v.o
	trouble := outage.New(o.log, "holds", nil)
	for _, one := range some {
		err := o.b.calls.Hold(o.ctx, o.n, one, o.b.opts.Keep)
		if err != nil && !errors.Is(err, context.Canceled) {
			trouble.Failed(o.ctx, err)
			failed = append(failed, one)
		}
	}
	return failed
}
