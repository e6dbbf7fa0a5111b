package buses

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
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

// Wants returns the topics that have not ended for a subscriber.
func (s *SubscriberState) Wants() (topics []string) {
	for log, span := range s.Settings.Topics {
		if topic, _, _ := strings.Cut(log, "/"); span.End == 0 {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
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
