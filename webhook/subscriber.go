package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A subscriber is one as the owner of its partition knows it. All of it belongs to the owner's goroutine.
type subscriber struct {
	o        *owner
	name     string
	host     string
	wants    *iwebhook.Settings
	settings string // their version
	uuid     string
	secrets  []secret

	w       *delivery.Window
	version int64                  // of the stored state
	settled map[string]delivery.ID // by log, as it is stored
	letters []store.DeadLetter     // that are not stored yet

	busy    bool            // a step is under way
	taken   place           // by its batch
	end     func()          // of the call that this is
	logs    map[string]bool // of which it is a reader
	reading map[string]bool // logs that are read for it alone

	queued, blocked bool
	gone            bool // it is not in the partition any more
	lost            bool // what is stored is not what it knows
	wake            *time.Timer
}

// A secret signs until a time, the zero time for ever.
type secret struct {
	key   []byte
	until time.Time
}

// newer reports whether a version of settings is behind another.
func newer(version, than string) bool {
	a, _ := strconv.ParseInt(version, 10, 64)
	b, _ := strconv.ParseInt(than, 10, 64)
	return a > b
}

// newSubscriber makes a subscriber of what is stored.
func newSubscriber(o *owner, stored *iwebhook.Subscriber) (*subscriber, error) {
	s := &subscriber{o: o, name: stored.Name, version: stored.Saved, logs: map[string]bool{}, reading: map[string]bool{}}
	if err := s.open(stored); err != nil {
		return nil, err
	}
	s.w = delivery.New(stored.State, s.windowSettings())
	s.settled = maps.Clone(s.w.State().Settled)
	s.wake = time.AfterFunc(time.Hour, func() { o.mail.post(func() { o.look(s) }) })
	s.wake.Stop()
	return s, nil
}

// open takes settings, and opens what is sealed in them.
func (s *subscriber) open(stored *iwebhook.Subscriber) (err error) {
	s.wants, s.settings, s.secrets = stored.Settings, stored.Version, nil
	u, err := url.Parse(s.wants.Callback)
	if err != nil {
		return errors.New("the callback is not readable")
	}
	s.host = u.Host
	book := subscriptions{s.o.b}
	if s.uuid, err = book.open(s.name, fieldUUID, s.wants.UUID); err != nil {
		return err
	}
	for _, sealed := range s.wants.Secrets {
		text, err := book.open(s.name, fieldSecret, sealed.Sealed)
		if err != nil {
			return err
		}
		key, err := parseSecret(text)
		if err != nil {
			return err
		}
		s.secrets = append(s.secrets, secret{key, sealed.Until})
	}
	return nil
}

// change takes newer settings.
func (s *subscriber) change(stored *iwebhook.Subscriber) error {
	if err := s.open(stored); err != nil {
		return err
	}
	s.w.Apply(s.windowSettings())
	s.changed() // it may be resumed
	return nil
}

// windowSettings returns the settings as the window wants them.
func (s *subscriber) windowSettings() delivery.Settings {
	b := s.o.b
	return delivery.Settings{
		Max: s.wants.Max, Bytes: mostBytes, Timeout: time.Duration(s.wants.Timeout) * time.Millisecond, Attempts: b.retry.Max,
		Retention: b.opts.Retention, DisableAfter: b.opts.DisableAfter, Spans: maps.Clone(s.wants.Topics), Resumed: s.wants.Resumed,
	}
}

// keysAt returns the keys of secrets that sign at a time.
func keysAt(secrets []secret, at time.Time) (keys [][]byte) {
	for _, one := range secrets {
		if one.until.IsZero() || at.Before(one.until) {
			keys = append(keys, one.key)
		}
	}
	return keys
}

// place returns what a request of the subscriber counts for.
func (s *subscriber) place() place { return place{s.host, s.w.State().Row >= failingFrom} }

// failingFrom is from how many failures in a row on a subscriber shares half of the places with others like it.
const failingFrom = 3

// safe returns up to where the subscriber is settled whatever happens: what is stored, or where it begins.
func (s *subscriber) safe(log string) delivery.ID {
	if at, ok := s.settled[log]; ok {
		return at
	}
	return s.w.State().Settled[log]
}

// changed says that the logs may not be needed from where they were needed before.
func (s *subscriber) changed() {
	for log := range s.logs {
		s.o.holds.of(log).urgent = true
	}
}

// fill loads what the subscriber can take: from memory, or by a read for it alone.
func (s *subscriber) fill() {
	for log := range s.logs {
		for before := (delivery.ID{N: -1}); !s.reading[log]; {
			behind, more := s.w.Wants(log)
			if !more || behind == before {
				break
			}
			before = behind
			events, cold := s.o.b.feeds.after(log, behind, max(s.w.Room(), 1))
			if len(events) > 0 {
				s.load(log, events)
			} else if cold || s.w.Lacks(log) { // memory may not have come as far as what was begun or ended
				s.read(log, behind)
			}
		}
	}
}

// load gives the window what was read.
func (s *subscriber) load(log string, events []delivery.Event) {
	if back := s.w.Load(log, events); back > 0 {
		s.o.log.Warn("numbers of a log were given again", "subscriber", s.name, "log", log, "events", back)
	}
	s.o.holds.of(log).risen = true
}

// read reads events that are not in memory any more.
func (s *subscriber) read(log string, behind delivery.ID) {
	o := s.o
	s.reading[log] = true
	o.b.feeds.ask(log, behind, func(events []delivery.Event, err error) {
		o.mail.post(func() {
			delete(s.reading, log)
			switch {
			case s.gone:
			case err != nil:
				o.reads.Failed(o.ctx, fmt.Errorf("log %s: %w", log, err))
				s.wake.Reset(readAgain)
			default:
				o.reads.Recovered()
				s.load(log, events)
				o.look(s)
			}
		})
	})
}

// readAgain is how long after an error a log is read again.
const readAgain = time.Second
