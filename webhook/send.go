package webhook

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// advance does what can be done for a subscriber now.
func (s *subscriber) advance(now time.Time) {
	if s.gone {
		return
	}
	s.fill()
	if s.busy {
		return
	}
	s.wake.Stop()
	if !s.begin(now) && s.w.Unsaved() {
		s.save(nil)
	}
}

// lookAt has the subscriber looked at when a time has come, instead of at an earlier one.
func (s *subscriber) lookAt(at time.Time) {
	s.wake.Reset(max(at.Sub(s.o.own.Now()), 0) + time.Millisecond)
}

// begin begins a batch, if one can begin. Otherwise it sees to it that the subscriber is looked at when that may be so.
func (s *subscriber) begin(now time.Time) bool {
	o := s.o
	pause := s.wants.Paused
	switch {
	case o.ending || s.blocked || !o.own.Open(""):
		return false
	case pause.In(now):
		if !pause.Until.IsZero() {
			s.lookAt(pause.Until)
		}
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
		var batch *delivery.Batch
		if batch, wake = s.w.Next(now); batch != nil {
			s.taken, s.end = at, end
			s.save(batch)
			return true
		}
		end()
		if !wake.IsZero() {
			s.lookAt(wake)
		}
	}
	o.b.places.free(at)
	return false
}

// save has the state stored, and behind it a batch requested that begins under the settings, nil for none.
func (s *subscriber) save(batch *delivery.Batch) {
	s.busy = true
	s.o.busy++
	for _, l := range s.w.Letters() {
		s.letters = append(s.letters, s.letter(l))
	}
	one := &step{
		s: s, settled: maps.Clone(s.w.State().Settled), batch: batch,
		Save: iwebhook.Save{Name: s.name, Replaces: s.version, State: s.w.Encode(), Letters: s.letters},
	}
	if batch != nil {
		one.Settings, one.request = s.settings, s.request()
	}
	s.o.saver.add(one)
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

// request returns what requests a batch under the settings that the subscriber has now. Any goroutine may call that.
func (s *subscriber) request() func(*delivery.Batch) answer {
	o, wants, uuid, secrets := s.o, s.wants, s.uuid, s.secrets
	return func(batch *delivery.Batch) answer {
		return o.b.sender.post(o.lease.context(o.ctx), &attempt{
			callback: wants.Callback, body: bodyOf(wants.Format, batch), id: batch.Key(o.b.name, s.name, wants.Generation),
			attempt: batch.Attempt, epoch: o.epoch, uuid: uuid, keys: keysAt(secrets, time.Now()),
		})
	}
}

// answered takes what became of a request.
func (s *subscriber) answered(batch *delivery.Batch, a *answer) {
	now, was := s.o.own.Now(), s.w.State().Since
	said := delivery.Answer{Status: a.status, Error: a.err, Took: a.took.Milliseconds()}
	until := now.Add(max(s.o.b.retry.Wait(batch.Attempt), a.retryAfter))
	switch {
	case a.err == "":
		s.w.Done(batch, now, said)
	case a.status == http.StatusGone:
		s.w.Fail(batch, now, until, said)
		s.w.Disable("the receiver answered 410: it wants nothing more")
	case a.status == http.StatusRequestEntityTooLarge:
		s.w.Halve(batch, now, until, said)
	default:
		s.w.Fail(batch, now, until, said)
	}
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
