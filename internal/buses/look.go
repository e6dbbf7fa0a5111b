package buses

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/runnel-go/runnel"
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

	*SubscriberDetails

	Settings *webhook.Settings `json:"-"`
	Err      error             `json:"-"` // why it is not readable; then nothing else is known
	stored   delivery.State
}

// SubscriberDetails are what is shown of one alone.
type SubscriberDetails struct {
	Partition int             `json:"partition"`
	Max       int             `json:"max"`
	Timeout   int64           `json:"timeout"`
	Format    string          `json:"format"`
	UUID      bool            `json:"uuid"`
	Signed    bool            `json:"signed"`
	Sealed    bool            `json:"sealed"`
	OldSecret time.Time       `json:"old_secret,omitzero"`
	Topics    []TopicPosition `json:"topics"`
	Batches   int64           `json:"batches"`
	Open      *OpenBatch      `json:"open,omitempty"`
	Last      *LastAnswer     `json:"last,omitempty"`
	Success   time.Time       `json:"success,omitzero"`
}

// A TopicPosition is how far a subscriber is with a topic.
type TopicPosition struct {
	Log      string `json:"log"`
	Position string `json:"position"`
	End      int64  `json:"end,omitempty"`
}

// An OpenBatch is a batch that has begun and is not settled.
type OpenBatch struct {
	Number  int64     `json:"number"`
	Attempt int       `json:"attempt"`
	Events  int64     `json:"events"`
	Next    time.Time `json:"next,omitzero"`
}

// A LastAnswer is what became of the last attempt.
type LastAnswer struct {
	Status int       `json:"status"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
	Took   int64     `json:"took"`
}

// timeOf returns a time that is stored in ms, zero for 0.
func timeOf(ms int64) (t time.Time) {
	if ms != 0 {
		t = time.UnixMilli(ms).UTC()
	}
	return t
}

// stateOf says how a subscriber is by what is stored of it; look adds what the logs say. err is why it is not readable.
func stateOf(bus string, stored *webhook.Subscriber, err error) *SubscriberState {
	s := &SubscriberState{Bus: bus, Subscriber: stored.Name, State: stateOK, Settings: stored.Settings, Err: err}
	if stored.State != "" && err == nil {
		s.stored, s.Err = delivery.ParseState([]byte(stored.State))
	}
	if s.Err != nil {
		s.State, s.Why = stateUnreadable, s.Err.Error()
		return s
	}
	if u, err := url.Parse(s.Settings.Callback); err == nil {
		s.Host = u.Host
	}
	now, off := time.Now(), s.stored.Off
	if s.Settings.Resumed > s.stored.Resumed { // which its owner has not noticed
		off = ""
	} else if s.stored.Since != 0 {
		s.State, s.Since, s.Error = stateFailing, timeOf(s.stored.Since), s.stored.Last.Error
	}
	switch p := s.Settings.Paused; {
	case off != "":
		s.State, s.Why = stateDisabled, off
	case p.In(now):
		s.State, s.Why, s.By, s.Since, s.Until = statePaused, p.Why, p.By, p.Since, p.Until
	case s.State == stateFailing && len(s.stored.Open) > 0 && timeOf(s.stored.Open[0].Until).After(now):
		s.State, s.Next = stateWaiting, timeOf(s.stored.Open[0].Until)
	}
	return s
}

// age is how old the oldest event is that is queued, 0 without one.
func (s *SubscriberState) age(now time.Time) time.Duration {
	if s.Oldest.IsZero() {
		return 0
	}
	return max(now.Sub(s.Oldest), time.Millisecond)
}

// detail sets all else of a readable subscriber.
func (s *SubscriberState) detail(partition int) {
	w, stored := s.Settings, &s.stored
	d := &SubscriberDetails{
		Partition: partition, Max: w.Max, Timeout: w.Timeout, Format: cmp.Or(w.Format, "array"), UUID: w.UUID != "", Signed: len(w.Secrets) > 0,
		Topics: []TopicPosition{}, Batches: stored.Batches, Success: timeOf(stored.OK),
	}
	d.Sealed = (d.UUID || d.Signed) && (!d.UUID || webhook.Sealed(w.UUID))
	for i, secret := range w.Secrets {
		d.Sealed = d.Sealed && webhook.Sealed(secret.Sealed)
		if i > 0 && secret.Until.After(time.Now()) {
			d.OldSecret = secret.Until
		}
	}
	for log, at := range stored.Positions(w.Topics) {
		d.Topics = append(d.Topics, TopicPosition{log, at.String(), w.Topics[log].End})
	}
	slices.SortFunc(d.Topics, func(a, b TopicPosition) int { return cmp.Compare(a.Log, b.Log) })
	if len(stored.Open) > 0 {
		o := stored.Open[0]
		d.Open = &OpenBatch{Number: o.No, Attempt: o.Attempt, Next: timeOf(o.Until)}
		for _, runs := range o.Members {
			for _, run := range runs {
				d.Open.Events += run.Last - run.First + 1
			}
		}
	}
	if last := stored.Last; last.At != 0 {
		d.Last = &LastAnswer{last.Status, last.Error, timeOf(last.At), last.Took}
	}
	s.SubscriberDetails = d
}

// atOnce is how many subscribers are looked at together.
const atOnce = 500

// Subscribers looks at the subscribers of a bus that has so many partitions, in no order. An error is the last.
func Subscribers(ctx context.Context, b *webhook.Bus, partitions int) iter.Seq2[*SubscriberState, error] {
	return func(yield func(*SubscriberState, error) bool) {
		for n := range partitions {
			var all []*SubscriberState
			for stored, err := range b.Subscribers(ctx, n) {
				if stored == nil {
					yield(nil, err)
					return
				}
				all = append(all, stateOf(b.Name(), stored, err))
			}
			for some := range slices.Chunk(all, atOnce) {
				if err := look(ctx, b, some); err != nil {
					yield(nil, err)
					return
				}
				for _, s := range some {
					if !yield(s, nil) {
						return
					}
				}
			}
		}
	}
}

// find looks at one subscriber, with its details; nil if there is none.
func (b *bus) find(ctx context.Context, name string) (*SubscriberState, error) {
	n := b.partition(name)
	stored, err := b.Subscriber(ctx, n, name)
	if err != nil || stored.Settings == nil {
		return nil, err
	}
	s := stateOf(b.Name(), stored, nil)
	if s.Err != nil {
		return nil, s.Err
	}
	s.detail(n)
	return s, look(ctx, b.Bus, []*SubscriberState{s})
}

// look sets what the logs say of subscribers, whose states were read before.
func look(ctx context.Context, b *webhook.Bus, some []*SubscriberState) error {
	some = slices.DeleteFunc(slices.Clone(some), func(s *SubscriberState) bool { return s.Err != nil })
	needed := map[webhook.Log]bool{}
	for _, s := range some {
		for name := range s.stored.Positions(s.Settings.Topics) {
			if log, err := webhook.ParseLog(name); err == nil {
				needed[log] = true
			}
		}
	}
	extents, err := b.Extents(ctx, slices.Collect(maps.Keys(needed)))
	if err != nil {
		return err
	}
	known := map[string]delivery.Extent{}
	for log, e := range extents {
		known[log.String()] = e
	}
	var positions []webhook.Position
	var whose []*SubscriberState
	for _, s := range some {
		f := s.stored.Figures(s.Settings.Topics, known)
		s.Sent, s.Queued, s.Dropped, s.Dead, s.Failed = f.Sent, f.Queued, f.Dropped, f.Dead, f.Failed
		for name, at := range s.stored.Positions(s.Settings.Topics) {
			if log, err := webhook.ParseLog(name); err == nil && s.Queued > 0 && at.N < known[name].Last.N {
				positions, whose = append(positions, webhook.Position{Log: log, At: at}), append(whose, s)
			}
		}
	}
	next, err := b.Next(ctx, positions)
	for i, id := range next {
		s, end := whose[i], whose[i].Settings.Topics[positions[i].Log.String()].End
		if id.N > 0 && (end == 0 || id.N <= end) && (s.Oldest.IsZero() || id.MS < s.Oldest.UnixMilli()) {
			s.Oldest = timeOf(id.MS)
		}
	}
	return err
}

// A TopicState is a topic as it is now.
type TopicState struct {
	Bus         string    `json:"bus"`
	Topic       string    `json:"topic"`
	Publisher   string    `json:"publisher"`
	Events      int64     `json:"events"`
	Length      int64     `json:"length"`
	Oldest      time.Time `json:"oldest,omitzero"`
	Subscribers int       `json:"subscribers"`
}

// Topics looks at the topics of a bus, by name. It does not count their subscribers.
func Topics(ctx context.Context, b *webhook.Bus) (all []TopicState, err error) {
	stored, err := b.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var logs []webhook.Log
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		all = append(all, TopicState{Bus: b.Name(), Topic: name, Publisher: stored[name].Publisher})
		logs = append(logs, webhook.Log{Topic: name, Partition: runnel.XXHash.Func(name, max(1, stored[name].Partitions))})
	}
	extents, err := b.Extents(ctx, logs)
	for i := range all {
		e := extents[logs[i]]
		all[i].Events = e.Last.N
		if e.First.N > 0 {
			all[i].Length, all[i].Oldest = e.Last.N-e.First.N+1, timeOf(e.First.MS)
		}
	}
	return all, err
}
