package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	retryVersion = 1
	laneVersion  = 2       // of a state whose lane an earlier release would not find
	errorBytes   = 4 << 10 // kept of an error's text
	statesAtOnce = 500     // read per round trip
)

// A RetryState is the state of a parked event, moved out of its partition to wait for an attempt or
// for the event before it in its lane. Times are the server's clock in milliseconds, 0 for none.
type RetryState struct {
	ID       string `json:"-"` // entry ID
	Version  int    `json:"v"` // set when it is written
	Lane     string `json:"lane"`
	Key      string `json:"key,omitempty"`   // of the event, for operators; see SetKey
	Sum      string `json:"sum,omitempty"`   // hash of the key where Key is not all of it
	Attempts int    `json:"n"`               // begun
	Void     int    `json:"void,omitempty"`  // of Attempts, ended by a release or a policy and not by the event
	Running  bool   `json:"run,omitempty"`   // the last one began and is not known to have ended
	Alone    bool   `json:"alone,omitempty"` // it runs, or ran, while nothing else did that may have ended the worker
	First    int64  `json:"first,omitempty"` // failure
	Last     int64  `json:"last,omitempty"`  // failure
	At       int64  `json:"at,omitempty"`    // not before
	Error    string `json:"err,omitempty"`   // of the last failure, cut to 4 KiB
	Reason   string `json:"reason,omitempty"`
	Revived  bool   `json:"revived,omitempty"` // it was a dead letter; its lane follows its owner's Retry
}

// Counted returns the number of the event's attempts that count.
func (s RetryState) Counted() int { return s.Attempts - s.Void }

// A RetryStore stores failed events for the owner of a partition: parked ones with their states,
// dead letters, and the quarantine. internal/worker uses it, inspect lists retries, and an Operator
// changes them.
type RetryStore struct{ *core }

// A Parking is an event to be parked.
type Parking struct {
	Entry redisconn.Entry
	State RetryState // its ID is the entry's
}

// Park moves events of the ownership out of the partition: in one step it acks them and stores them
// with their states, all or none. limit is how many may be parked, 0 for any number. Park returns
// ErrFull, and changes nothing, if there would be more, and ErrFenced if the ownership is over. It
// retries while its outcome is unknown and ctx lives, and may be repeated: acked events stay as
// they are.
func (c RetryStore) Park(ctx context.Context, p Partition, t Claim, limit int64, ps []Parking) error {
	if len(ps) == 0 {
		return nil
	}
	args := append(make([]any, 0, 3+3*len(ps)), t.LockValue(), GroupName(p.Processor, t.Executor), max(limit, 0))
	for _, one := range ps {
		state, err := one.State.encode()
		if err != nil {
			return p.wrap("park", err)
		}
		args = append(args, one.Entry.ID, pack(flatten(one.Entry.Values)), state)
	}
	return p.failed(fmt.Sprintf("park %d events", len(ps)), c.persistScript(ctx, parkScript,
		[]string{p.Log, p.Lock, p.Parked, p.Retry, p.Own}, args...))
}

// WriteRetry stores the state of a parked event; ok is false if an operator has dropped it.
// Attempts begin (Running, one Attempt more) and end (not Running) in order: a late write does not
// undo a later one. It returns ErrFenced if the ownership is over, retries like Park, and may be
// repeated.
func (c RetryStore) WriteRetry(ctx context.Context, p Partition, t Claim, s RetryState) (ok bool, err error) {
	state, err := s.encode()
	if err != nil {
		return false, p.wrap("write retry", err)
	}
	var n int64
	err = persist(ctx, func() error {
		var err error
		n, err = attemptScript.Run(ctx, c.NoRetry, []string{p.Lock, p.Retry}, t.LockValue(), s.ID, state).Int64()
		return classify(err)
	})
	return n > 0, p.failed("write retry of event "+entryid.EventID(p.Number, s.ID), err)
}

// BeginRetry is WriteRetry for an attempt that begins, and Parked, in one round trip.
func (c RetryStore) BeginRetry(ctx context.Context, p Partition, t Claim, s RetryState) (e redisconn.Entry, ok bool, err error) {
	state, err := s.encode()
	if err != nil {
		return e, false, p.wrap("begin retry", err)
	}
	err = persist(ctx, func() error {
		calls := []*redisconn.Call{
			redisconn.PlainCall(ctx, "HMGET", p.Parked, s.ID),
			redisconn.ScriptCall(ctx, attemptScript, []string{p.Lock, p.Retry}, t.LockValue(), s.ID, state),
		}
		redisconn.Pipeline(ctx, c.NoRetry, calls)
		n, err := calls[1].Reply.Int64()
		if err != nil {
			return classify(err)
		}
		text, err := calls[0].Reply.Slice()
		if err != nil {
			return classify(err)
		}
		packed, there := text[0].(string)
		if ok = n > 0 && there; !ok {
			return nil
		}
		e.ID = s.ID
		e.Values, err = unpack(packed)
		return err
	})
	return e, ok, p.failed("begin retry of event "+entryid.EventID(p.Number, s.ID), err)
}

// BeginSuspect stores that the owner begins Takeover.Suspect. If the owner does not release the
// partition, and the event is not acked, the next takeover counts that in Deaths. An id of ""
// resets the count. It returns ErrFenced if the ownership is over, retries like Park, and may be
// repeated.
func (c RetryStore) BeginSuspect(ctx context.Context, p Partition, t Claim, id string) error {
	return p.failed("begin event "+id, c.persistScript(ctx, beginScript, []string{p.Lock, p.Own}, t.LockValue(), id))
}

// DoneRetry removes a parked event that is done. It returns ErrFenced if the ownership is over,
// retries like Park, and may be repeated.
func (c RetryStore) DoneRetry(ctx context.Context, p Partition, t Claim, id string) error {
	return p.failed("settle event "+entryid.EventID(p.Number, id), c.persistScript(ctx, settleScript,
		[]string{p.Lock, p.Parked, p.Retry}, t.LockValue(), id))
}

// Retries returns the states of a partition's parked events by entry ID, and the server's clock
// right after. Events that come or go meanwhile may be missing. If that clock was set back since an
// event failed, the event's times are moved back by as much as can be told.
func (c RetryStore) Retries(ctx context.Context, p Partition) (states []RetryState, now time.Time, err error) {
	found := map[string]string{} // HSCAN may return a field twice
	for cursor := uint64(0); ; {
		flat, next, err := c.Retrying.HScan(ctx, p.Retry, cursor, "", statesAtOnce).Result()
		if err != nil {
			return nil, now, p.wrap("retries", classify(err))
		}
		for i := 0; i+1 < len(flat); i += 2 {
			found[flat[i]] = flat[i+1]
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	states = make([]RetryState, 0, len(found))
	for _, id := range slices.SortedFunc(maps.Keys(found), entryid.Compare) {
		s, err := parseRetry(id, found[id])
		if err != nil {
			return nil, now, p.wrap("retries", err)
		}
		states = append(states, s)
	}
	if now, err = c.Retrying.Time(ctx).Result(); err != nil {
		return nil, now, p.wrap("retries", classify(err))
	}
	for i := range states {
		states[i].moveBack(now.UnixMilli())
	}
	return states, now, nil
}

// moveBack mends times ahead of their clock: an event waits no longer than was set when it failed.
func (s *RetryState) moveBack(now int64) {
	if s.Last > now {
		s.At, s.Last = min(s.At, now+max(s.At-s.Last, 0)), now
	}
}

// Parked returns a parked event, and whether it is there.
func (c RetryStore) Parked(ctx context.Context, p Partition, id string) (redisconn.Entry, bool, error) {
	text, err := c.Retrying.HMGet(ctx, p.Parked, id).Result()
	if err != nil {
		return redisconn.Entry{}, false, p.wrap("parked event "+entryid.EventID(p.Number, id), classify(err))
	}
	packed, ok := text[0].(string)
	if !ok {
		return redisconn.Entry{}, false, nil
	}
	values, err := unpack(packed)
	if err != nil {
		return redisconn.Entry{}, false, p.wrap("parked event "+entryid.EventID(p.Number, id), err)
	}
	return redisconn.Entry{ID: id, Values: values}, true, nil
}

// version returns the version of the form in which the state is stored.
func (s RetryState) version() int {
	if strings.HasPrefix(s.Lane, hashedLane) {
		return laneVersion
	}
	return retryVersion
}

func (s RetryState) encode() (string, error) {
	s.Version, s.Error = s.version(), cut(s.Error)
	text, err := json.Marshal(s)
	return string(text), err
}

func parseRetry(id, text string) (RetryState, error) {
	var s RetryState
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("state of event %s is not readable: %w", id, err)
	}
	if want := s.version(); s.Version != want {
		return s, fmt.Errorf("state of event %s has version %d, not %d: written by another release", id, s.Version, want)
	}
	s.ID = id
	if key, ok := strings.CutPrefix(s.Lane, plainLane); ok && len(key) > keyShown { // by an earlier release
		s.Lane = KeyLane(key)
		s.SetKey(key)
	}
	return s, nil
}

// cut bounds an error's text.
func cut(text string) string {
	if len(text) <= errorBytes {
		return text
	}
	end := errorBytes
	for end > errorBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
