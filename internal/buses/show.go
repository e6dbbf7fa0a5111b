package buses

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/internal/words"
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

// A SubscriberState is a subscriber as it is now.
type SubscriberState struct {
	Bus        string     `json:"bus"`
	Subscriber string     `json:"subscriber"`
	State      string     `json:"state"`
	Why        string     `json:"why,omitempty"`
	By         string     `json:"by,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	Queued     int64      `json:"queued"`
	Oldest     *time.Time `json:"oldest,omitempty"`
	Sent       int64      `json:"sent"`
	Failed     int64      `json:"failed"`
	Dropped    int64      `json:"dropped"`
	Dead       int64      `json:"dead"`
	Host       string     `json:"host"`
	Error      string     `json:"error,omitempty"`
	Next       *time.Time `json:"next,omitempty"`

	*SubscriberDetails
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
	OldSecret *time.Time      `json:"old_secret,omitempty"`
	Topics    []TopicPosition `json:"topics"`
	Batches   int64           `json:"batches"`
	Open      *OpenBatch      `json:"open,omitempty"`
	Last      *LastAnswer     `json:"last,omitempty"`
	Success   *time.Time      `json:"success,omitempty"`
}

// A TopicPosition is how far a subscriber is with a topic.
type TopicPosition struct {
	Log      string `json:"log"`
	Position string `json:"position"`
	End      int64  `json:"end,omitempty"`
}

// An OpenBatch is a batch that has begun and is not settled.
type OpenBatch struct {
	Number  int64      `json:"number"`
	Attempt int        `json:"attempt"`
	Events  int64      `json:"events"`
	Next    *time.Time `json:"next,omitempty"`
}

// A LastAnswer is what became of the last attempt.
type LastAnswer struct {
	Status int       `json:"status"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
	Took   int64     `json:"took"`
}

// milli returns a time that is stored in ms, nil for 0.
func milli(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	return some(time.UnixMilli(ms).UTC())
}

// some returns a time, nil for none.
func some(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// stateOf describes a subscriber. Of its callback it has the host, since the rest may be secret.
func stateOf(bus string, s *Subscriber, now time.Time) SubscriberState {
	out := SubscriberState{
		Bus: bus, Subscriber: s.Name, State: stateOK, Queued: s.Queued, Oldest: some(s.Oldest), Sent: s.Sent, Failed: s.Figures.Failed,
		Dropped: s.Figures.Dropped, Dead: s.Figures.Dead,
	}
	if s.Err != nil {
		out.State, out.Why = stateUnreadable, s.Err.Error()
		return out
	}
	if u, err := url.Parse(s.Settings.Callback); err == nil {
		out.Host = u.Host
	}
	resumed := s.Settings.Resumed > s.State.Resumed // and its owner has not noticed
	if s.State.Since != 0 && !resumed {
		out.State, out.Since, out.Error = stateFailing, milli(s.State.Since), s.State.Last.Error
		if len(s.State.Open) > 0 {
			out.Next = milli(s.State.Open[0].Until)
		}
		if out.Next != nil && out.Next.After(now) {
			out.State = stateWaiting
		}
	}
	switch p := s.Settings.Paused; {
	case s.State.Off != "" && !resumed:
		out.State, out.Why, out.Next = stateDisabled, s.State.Off, nil
	case p.In(now):
		out.State, out.Why, out.By, out.Since, out.Until = statePaused, p.Why, p.By, some(p.Since), some(p.Until)
	}
	return out
}

// detailsOf describes all else of a subscriber.
func detailsOf(s *Subscriber, n int) *SubscriberDetails {
	w := s.Settings
	d := &SubscriberDetails{
		Partition: n, Max: w.Max, Timeout: w.Timeout, Format: cmp.Or(w.Format, "array"), UUID: w.UUID != "", Signed: len(w.Secrets) > 0,
		Topics: []TopicPosition{}, Batches: s.State.Batches, Success: milli(s.State.OK),
	}
	d.Sealed = (d.UUID || d.Signed) && (!d.UUID || webhook.Sealed(w.UUID))
	for i, secret := range w.Secrets {
		d.Sealed = d.Sealed && webhook.Sealed(secret.Sealed)
		if i > 0 && secret.Until.After(time.Now()) {
			d.OldSecret = some(secret.Until)
		}
	}
	for log, at := range s.State.Positions(w.Topics) {
		d.Topics = append(d.Topics, TopicPosition{log, at.String(), w.Topics[log].End})
	}
	slices.SortFunc(d.Topics, func(a, b TopicPosition) int { return cmp.Compare(a.Log, b.Log) })
	if len(s.State.Open) > 0 {
		o := s.State.Open[0]
		d.Open = &OpenBatch{Number: o.No, Attempt: o.Attempt, Next: milli(o.Until)}
		for _, runs := range o.Members {
			for _, run := range runs {
				d.Open.Events += run.Last - run.First + 1
			}
		}
	}
	if last := s.State.Last; last.At != 0 {
		d.Last = &LastAnswer{last.Status, last.Error, *milli(last.At), last.Took}
	}
	return d
}

// states returns the subscribers of buses, the one that is furthest behind first.
func states(ctx context.Context, buses []*bus) ([]SubscriberState, error) {
	all, now := []SubscriberState{}, time.Now()
	for _, b := range buses {
		for s, err := range Subscribers(ctx, b.Bus, b.meta.Partitions) {
			if err != nil {
				return nil, err
			}
			all = append(all, stateOf(b.name, s, now))
		}
	}
	slices.SortFunc(all, func(a, b SubscriberState) int {
		return cmp.Or(cmp.Compare(b.age(now), a.age(now)), cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Subscriber, b.Subscriber))
	})
	return all, nil
}

// age is how old the oldest event is that is queued, 0 without one.
func (s *SubscriberState) age(now time.Time) time.Duration {
	if s.Oldest == nil {
		return 0
	}
	return max(now.Sub(*s.Oldest), time.Millisecond)
}

func runSubs(ctx context.Context, r *request) error {
	most := r.Flags.Int(flagLimit)
	if most < 0 {
		return extension.Usagef("--%s %d is negative", flagLimit, most)
	}
	if name := r.arg(0); name != "" {
		return r.showOne(ctx, name)
	}
	all, err := states(ctx, r.buses)
	if err != nil {
		return err
	}
	if r.Flags.Bool(flagFailing) {
		all = slices.DeleteFunc(all, func(s SubscriberState) bool { return s.State == stateOK })
	}
	if most > 0 {
		all = all[:min(len(all), most)]
	}
	return r.Print(all, func(t extension.Table) {
		now := time.Now()
		t.Row("BUS", "SUBSCRIBER", "STATE", "QUEUED", "OLDEST", "SENT", "FAILED", "DROPPED", "DEAD", "HOST", "NEXT", "ERROR")
		for _, s := range all {
			oldest := "-"
			if s.Oldest != nil {
				oldest = words.Short(s.age(now))
			}
			t.Row(s.Bus, s.Subscriber, s.State, s.Queued, oldest, s.Sent, s.Failed, s.Dropped, s.Dead, words.Dash(s.Host), until(now, s.Next), words.Dash(s.Error))
		}
	})
}

// until is how long it is until a time, "-" for none.
func until(now time.Time, t *time.Time) string {
	if t == nil {
		return "-"
	}
	return words.Short(max(0, t.Sub(now)))
}

// moment returns a time for people, "-" for none.
func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// showOne prints a subscriber of one of the buses.
func (r *request) showOne(ctx context.Context, name string) error {
	for _, b := range r.buses {
		n := b.partition(name)
		s, err := Find(ctx, b.Bus, n, name)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		if s.Err != nil {
			return s.Err
		}
		one := stateOf(b.name, s, time.Now())
		one.SubscriberDetails = detailsOf(s, n)
		return r.Print(one, func(t extension.Table) { write(t, &one) })
	}
	return fmt.Errorf("there is no subscriber %q; see webhook subs", name)
}

func write(t extension.Table, s *SubscriberState) {
	row := func(name, format string, args ...any) { t.Row(name, fmt.Sprintf(format, args...)) }
	state := s.State
	for _, more := range []struct{ word, text string }{{"since", moment(s.Since)}, {"until", moment(s.Until)}, {"by", s.By}, {"", s.Why}} {
		if more.text != "" && more.text != "-" {
			state += strings.TrimRight(" "+more.word, " ") + " " + more.text
		}
	}
	row("subscriber", "%s/%s, in delivery partition %d", s.Bus, s.Subscriber, s.Partition)
	row("state", "%s", state)
	row("host", "%s", words.Dash(s.Host))
	row("events", "%d queued, %d sent, %d dropped, %d dead; %d attempts failed", s.Queued, s.Sent, s.Dropped, s.Dead, s.Failed)
	row("oldest", "%s", moment(s.Oldest))
	row("batches", "at most %s of format %s, which wait %v; %d so far", words.Plural(s.Max, "event"), s.Format, time.Duration(s.Timeout)*time.Millisecond, s.Batches)
	secrets := "none"
	if s.Signed || s.UUID {
		secrets = "without seal keys: who reads Redis has them"
		if s.Sealed {
			secrets = "sealed"
		}
	}
	row("secrets", "signed: %t; uuid: %t; %s", s.Signed, s.UUID, secrets)
	if s.OldSecret != nil {
		row("", "the one before signs, too, until %s", moment(s.OldSecret))
	}
	if o := s.Open; o != nil {
		row("open", "batch %d of %s, attempt %d; next attempt %s", o.Number, words.Plural(o.Events, "event"), o.Attempt, moment(o.Next))
	}
	if l := s.Last; l != nil {
		row("last answer", "status %d at %s after %dms: %s", l.Status, moment(&l.At), l.Took, words.Dash(l.Error))
	}
	row("last success", "%s", moment(s.Success))
	for _, one := range s.Topics {
		end := ""
		if one.End > 0 {
			end = fmt.Sprintf(", ends with event %d", one.End)
		}
		row("topic", "%s behind %s%s", one.Log, one.Position, end)
	}
}

// A TopicState is a topic as it is now.
type TopicState struct {
	Bus         string     `json:"bus"`
	Topic       string     `json:"topic"`
	Publisher   string     `json:"publisher"`
	Events      int64      `json:"events"`
	Length      int64      `json:"length"`
	Oldest      *time.Time `json:"oldest,omitempty"`
	Subscribers int        `json:"subscribers"`
}

func runTopics(ctx context.Context, r *request) error {
	all := []TopicState{}
	for _, b := range r.buses {
		topics, err := Topics(ctx, b.Bus)
		subscribers := map[string]int{}
		for n := 0; n < b.meta.Partitions && err == nil; n++ {
			for s, wrong := range b.Subscribers(ctx, n) {
				if s == nil {
					err = wrong
					break
				}
				for log, span := range s.Settings.Topics {
					if span.End == 0 {
						subscribers[log]++
					}
				}
			}
		}
		if err != nil {
			return err
		}
		for _, t := range topics {
			all = append(all, TopicState{b.name, t.Name, t.Publisher, t.Events, t.Length, some(t.Oldest), subscribers[t.Log.String()]})
		}
	}
	return r.Print(all, func(t extension.Table) {
		t.Row("BUS", "TOPIC", "PUBLISHER", "EVENTS", "LENGTH", "OLDEST", "SUBSCRIBERS")
		for _, one := range all {
			t.Row(one.Bus, one.Topic, words.Dash(one.Publisher), one.Events, one.Length, words.Ago(time.Now(), one.Oldest), one.Subscribers)
		}
	})
}
