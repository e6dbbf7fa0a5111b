package webhook

import (
	"context"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// advance does what can be done for a subscriber now.
func (s *subscriber) advance(now time.Time) {
	if s.gone {
		return
	}
	s.fill()
	if s.phase != idle {
		return
	}
	s.o.timers.remove(s)
	if !s.begin(now) && s.w.Unsaved() {
		s.save("")
	}
}

// begin begins a batch, if one can begin. Otherwise it sees to it that the subscriber is looked at when that may be so.
func (s *subscriber) begin(now time.Time) bool {
	o := s.o
	until, paused := s.paused(now)
	switch {
	case o.ending || s.blocked || !o.own.Open(""):
		return false
	case paused && !until.IsZero():
		o.timers.set(s, until)
		return false
	case paused:
		return false
	}
	at := s.place()
	if !o.b.places.take(at, o) {
		s.blocked = true
		o.blocked[at] = append(o.blocked[at], s)
		return false
	}
	end, open := o.own.Begin("")
	if open {
		var wake time.Time
		if s.batch, wake = s.w.Next(now); s.batch != nil {
			s.taken, s.end = at, end
			s.save(s.settings)
			return true
		}
		end()
		if !wake.IsZero() {
			o.timers.set(s, wake)
		}
	}
	o.b.places.free(at)
	return false
}

// save has the state saved. settings is the version of the settings that a batch begins under, "" without a batch.
func (s *subscriber) save(settings string) {
	s.phase = saving
	for _, l := range s.w.Letters() {
		s.letters = append(s.letters, s.letter(l))
	}
	s.o.saver.add(s, settings)
	s.o.index(s)
}

// letter returns the dead letter of an event.
func (s *subscriber) letter(l delivery.Letter) store.DeadLetter {
	o := s.o
	o.log.Warn("event is dead", "subscriber", s.name, "log", l.Event.Log, "event", l.Event.ID.String(), "attempt", l.Attempts, "err", l.Answer.Error)
	o.b.count.Add(buses.Dead, o.b.name)
	return store.DeadLetter{
		Entry:     redisconn.Entry{ID: l.Event.ID.String(), Values: map[string]any{payloadField: l.Event.Payload}},
		Partition: o.n, Key: s.name, Attempts: l.Attempts, Last: time.UnixMilli(l.Answer.At), Error: l.Answer.Error, Reason: reasonFailed, Epoch: o.epoch,
	}
}

const reasonFailed = "failed"

// free gives back what the batch has taken.
func (s *subscriber) free() {
	s.o.b.places.free(s.taken)
	s.end()
}

// request makes the request of a batch that is stored.
func (s *subscriber) request(batch *delivery.Batch) {
	o := s.o
	s.phase = requesting
	o.requests++
	if o.exchanges.Err() != nil { // the lease had ended, and holds again
		o.exchanges, o.interrupt = context.WithCancel(o.ctx)
	}
	a, ctx := &attempt{
		callback: s.wants.Callback, body: bodyOf(s.wants.Format, batch), id: batch.Key(o.b.name, s.name, s.wants.Generation),
		attempt: batch.Attempt, epoch: o.epoch, uuid: s.uuid, keys: s.keys(time.Now()),
	}, o.exchanges
	go func() {
		answer := o.b.sender.post(ctx, a)
		o.mail.post(func() {
			o.requests--
			s.free()
			s.phase = idle
			s.answered(batch, &answer)
		})
	}()
}

// answered takes what became of a request.
func (s *subscriber) answered(batch *delivery.Batch, a *answer) {
	now, was := s.o.own.Now(), s.w.State().Since
	said := delivery.Answer{Status: a.status, Error: a.err, Took: a.took.Milliseconds()}
	until := now.Add(max(s.o.b.retry.Wait(batch.Attempt), a.retryAfter))
	switch a.outcome {
	case settled:
		s.w.Done(batch, now, said)
	case gone:
		s.w.Fail(batch, now, until, said)
		s.w.Disable("the receiver answered 410: it wants nothing more")
	case tooLarge:
		s.w.Halve(batch, now, until, said)
	default:
		s.w.Fail(batch, now, until, said)
	}
	s.o.b.count.answered(s.o.b.name, batch, a, now)
	switch state := s.w.State(); {
	case state.Off != "":
		s.changed()
		s.o.log.Warn("subscriber is disabled", "subscriber", s.name, "reason", state.Off, "err", a.err)
	case was == 0 && state.Since > 0:
		s.o.log.Warn("subscriber fails", "subscriber", s.name, "err", a.err)
	case was > 0 && state.Since == 0:
		s.o.log.Info("subscriber is back", "subscriber", s.name)
	}
	for log := range s.logs {
		s.o.holds.of(log).risen = true
	}
	s.o.look(s)
}

// bodyOf returns a batch as the receiver wants it.
func bodyOf(format string, batch *delivery.Batch) []byte {
	e := batch.Events[0]
	object, ok := strings.CutSuffix(e.Payload, "}")
	switch {
	case Format(format) != Single:
		return batch.Body()
	case !ok: // somebody else has added it
		return []byte(e.Payload)
	}
	return []byte(object + `,"timestamp":"` + time.UnixMilli(e.ID.MS).UTC().Format("2006-01-02T15:04:05.000Z") + `"}`)
}
