package buses

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/webhook"
)

// States of a subscriber.
const (
	stateOK         = "ok"
	stateFailing    = "failing" // the last attempt has failed, and the next one is due
	stateWaiting    = "waiting" // likewise, for the time of the next one
	statePaused     = "paused"
	stateDisabled   = "disabled"
	stateUnreadable = "unreadable"
)

var allStates = []string{stateOK, stateFailing, stateWaiting, statePaused, stateDisabled, stateUnreadable}

// A SubscriberState is a subscriber as it is now. Of its callback it shows the host, since the rest may be secret.
type SubscriberState struct {
	Bus        string    `json:"bus"`
	Subscriber string    `json:"subscriber"`
	State      string    `json:"state"`
	Why        string    `json:"why,omitempty"`
	By         string    `json:"by,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Until      time.Time `json:"until,omitzero"`
	Queued     int64     `json:"queued"`
	Oldest     time.Time `json:"oldest,omitzero"`
	Sent       int64     `json:"sent"`
	Failed     int64     `json:"failed"`
	Dropped    int64     `json:"dropped"`
	Dead       int64     `json:"dead"`
	Host       string    `json:"host"`
	Error      string    `json:"error,omitempty"`
	Next       time.Time `json:"next,omitzero"`

	SubscriberDetails

	Settings *webhook.Settings `json:"-"`
	Err      error             `json:"-"` // why it is not readable; then nothing else is known
	stored   delivery.State
}

// SubscriberDetails are what only JSON and the page show, and the command that shows one.
type SubscriberDetails struct {
	Partition int                    `json:"partition"`
	Max       int                    `json:"max"`
	Timeout   int64                  `json:"timeout"`
	Format    string                 `json:"format"`
	UUID      bool                   `json:"uuid"`
	Signed    bool                   `json:"signed"`
	Topics    map[string]delivery.ID `json:"topics"`
	Batches   int64                  `json:"batches"`
	Attempt   int                    `json:"attempt,omitempty"`
	InFlight  int64                  `json:"in_flight,omitempty"`
	Last      time.Time              `json:"last,omitzero"`
	Status    int                    `json:"status,omitempty"`
	Took      int64                  `json:"took,omitempty"`
}

// timeOf returns a time that is stored in ms, zero for 0.
func timeOf(ms int64) (t time.Time) {
	if ms != 0 {
		t = time.UnixMilli(ms).UTC()
	}
	return t
}

// stateOf says how a subscriber of a partition is by what is stored of it; look adds what the logs say. err is why it is not readable.
func stateOf(bus string, partition int, stored *webhook.Subscriber, err error) *SubscriberState {
	s := &SubscriberState{Bus: bus, Subscriber: stored.Name, State: stateOK, Settings: stored.Settings, Err: err, stored: stored.State}
	if s.Err != nil {
		s.State, s.Why = stateUnreadable, s.Err.Error()
		return s
	}
	w, has, now := s.Settings, &s.stored, time.Now()
	if u, err := url.Parse(w.Callback); err == nil {
		s.Host = u.Host
	}
	s.SubscriberDetails = SubscriberDetails{
		Partition: partition, Max: w.Max, Timeout: w.Timeout, Format: cmp.Or(w.Format, "array"), UUID: w.UUID != "", Signed: len(w.Secrets) > 0,
		Topics: has.Positions(w.Topics), Batches: has.Batches, Last: timeOf(has.Last.At), Status: has.Last.Status, Took: has.Last.Took,
	}
	var next time.Time
	if o := has.Open; o != nil {
		s.Attempt, s.InFlight, next = o.Attempt, o.Size(), timeOf(o.Until)
	}
	off := has.Off
	if w.Resumed > has.Resumed { // which its owner has not noticed
		off = ""
	} else if has.Since != 0 {
		s.State, s.Since, s.Error = stateFailing, timeOf(has.Since), has.Last.Error
	}
	switch p := w.Paused; {
	case off != "":
		s.State, s.Why = stateDisabled, off
	case p.In(now):
		s.State, s.Why, s.By, s.Since, s.Until = statePaused, p.Why, p.By, p.Since, p.Until
	case s.State == stateFailing && next.After(now):
		s.State, s.Next = stateWaiting, next
	}
	return s
}

// age is how old the oldest event is that is queued, 0 without one.
func (s *SubscriberState) age(now time.Time) time.Duration {
	return max(0, now.Sub(cmp.Or(s.Oldest, now)))
}

// atOnce is how many subscribers are looked at together.
const atOnce = 500

// Subscribers looks at the subscribers of a bus that has so many partitions, in no order.
func Subscribers(ctx context.Context, b *webhook.Bus, partitions int) (all []*SubscriberState, err error) {
	for n := range partitions {
		from := len(all)
		for stored, err := range b.Subscribers(ctx, n) {
			if stored == nil {
				return nil, err
			}
			all = append(all, stateOf(b.Name(), n, stored, err))
		}
		for some := range slices.Chunk(all[from:], atOnce) { // soon: what is trimmed meanwhile would count as dropped
			if err := look(ctx, b, some); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// look sets what the logs say of subscribers, whose states were read before.
func look(ctx context.Context, b *webhook.Bus, all []*SubscriberState) error {
	logs := map[string]bool{}
	for _, s := range all {
		for log := range s.Topics {
			logs[log] = true
		}
	}
	known, err := b.Extents(ctx, slices.Collect(maps.Keys(logs)))
	if err != nil {
		return err
	}
	var behind []webhook.Position
	var whose []*SubscriberState
	for _, s := range all {
		if s.Err != nil {
			continue
		}
		f := s.stored.Figures(s.Settings.Topics, known)
		s.Sent, s.Queued, s.Dropped, s.Dead, s.Failed = f.Sent, f.Queued, f.Dropped, f.Dead, f.Failed
		for log, at := range s.Topics {
			if s.Queued > 0 && at.N < known[log].Last.N {
				behind, whose = append(behind, webhook.Position{Log: log, At: at}), append(whose, s)
			}
		}
	}
	next, err := b.Next(ctx, behind)
	for i, id := range next {
		s, end := whose[i], whose[i].Settings.Topics[behind[i].Log].End
		if id.N > 0 && (end == 0 || id.N <= end) && (s.Oldest.IsZero() || id.MS < s.Oldest.UnixMilli()) {
			s.Oldest = timeOf(id.MS)
		}
	}
	return err
}

// A TopicState is a topic as it is now.
type TopicState struct {
	Bus       string    `json:"bus"`
	Topic     string    `json:"topic"`
	Publisher string    `json:"publisher"`
	Events    int64     `json:"events"`
	Length    int64     `json:"length"`
	Oldest    time.Time `json:"oldest,omitzero"`
}

// Topics looks at the topics of a bus, by name.
func Topics(ctx context.Context, b *webhook.Bus) (all []TopicState, err error) {
	stored, err := b.Topics(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(stored))
	extents, err := b.Extents(ctx, names)
	for _, name := range names {
		e := extents[name]
		t := TopicState{Bus: b.Name(), Topic: name, Publisher: stored[name].Publisher, Events: e.Last.N}
		if e.First.N > 0 {
			t.Length, t.Oldest = e.Last.N-e.First.N+1, timeOf(e.First.MS)
		}
		all = append(all, t)
	}
	return all, err
}
