package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A State is what is stored of a subscriber, always as a whole. Times are in ms since 1970, 0 for never.
type State struct {
	Batches int64            `json:"b"`           // number of the last batch
	Settled map[string]ID    `json:"c,omitempty"` // log → position: up to here everything is settled
	Ended   map[string]ID    `json:"e,omitempty"` // log → where a span has ended that has been delivered to its end
	Open    *Open            `json:"k,omitempty"`
	Alone   map[string]int64 `json:"alone,omitempty"` // log → up to here each event is sent by itself, and once
	Sent    int64            `json:"sent"`
	Dropped int64            `json:"dropped"`
	Dead    int64            `json:"dead"`
	Failed  int64            `json:"failed"`        // attempts
	OK      int64            `json:"ok"`            // last success
	Since   int64            `json:"since"`         // first failure in a row
	Row     int64            `json:"row,omitempty"` // how many failures that is
	Last    Answer           `json:"last,omitzero"`
	Resumed int64            `json:"resumed,omitempty"` // as in the settings that were applied
	Off     string           `json:"off,omitempty"`     // why nothing more is begun; "": it is
}

// An Answer is what became of an attempt.
type Answer struct {
	Status int    `json:"status,omitempty"` // 0: there was no response
	Error  string `json:"error,omitempty"`
	At     int64  `json:"at"`   // ms since 1970; the window sets it
	Took   int64  `json:"took"` // ms
}

// ParseState returns a stored state, without any data that of a new subscriber. What no Window stores is an error, fields that are not known
// are left out.
func ParseState(data []byte) (s State, err error) {
	if len(data) > 0 {
		err = json.Unmarshal(data, &s)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return State{}, fmt.Errorf("state of a subscriber: %w", err)
	}
	return s, nil
}

func (s *State) check() error {
	numbers := []int64{s.Batches, s.Sent, s.Dropped, s.Dead, s.Failed, s.OK, s.Since, s.Row, s.Last.At, s.Last.Took, s.Resumed}
	numbers = slices.AppendSeq(numbers, maps.Values(s.Alone))
	if o := s.Open; o != nil {
		if o.No < 1 || o.No > s.Batches || o.Attempt < 1 || len(o.Members) == 0 {
			return fmt.Errorf("malformed open batch")
		}
		for log, members := range o.Members {
			if !members.valid() {
				return fmt.Errorf("open batch %d: no members of %s, or not ascending", o.No, log)
			}
		}
		numbers = append(numbers, o.Until)
	}
	for _, n := range numbers {
		if n < 0 || n > mostNumber {
			return fmt.Errorf("%d is out of range", n)
		}
	}
	return nil
}

// members returns the numbers of a log in the open batch.
func (s *State) members(log string) Runs {
	if s.Open == nil {
		return nil
	}
	return s.Open.Members[log]
}

// end returns the last number of a log that is delivered, if there is one: at least what has been passed or begun.
func (s *State) end(log string, spans map[string]Span) (n int64, ends bool) {
	span, named := spans[log]
	return max(span.End, s.Settled[log].N, s.members(log).last()), span.End > 0 || !named
}

// begins returns behind which ID a log of the settings is delivered; false: its span has ended.
func (s *State) begins(log string, span Span) (ID, bool) {
	if at, ok := s.Settled[log]; ok {
		return at, true
	}
	end, ended := s.Ended[log]
	switch {
	case ended && span.End > 0 && (span.End <= end.N || span.From.N < end.N):
		return ID{}, false
	case ended && span.From.N < end.N: // it goes on
		return end, true
	}
	return span.From, true
}

// Seen reports whether a span of a log has begun, or is over.
func (s *State) Seen(log string, span Span) bool {
	_, begun := s.Settled[log]
	end, ended := s.Ended[log]
	return begun || ended && span.End <= end.N
}

// pass moves the position over some events, of which one sum counts. The numbers between were removed.
func (s *State) pass(log string, to ID, events int64, sum *int64) {
	s.Dropped += to.N - s.Settled[log].N - events
	*sum += events
	s.Settled[log] = to
}

// failed counts an attempt that has failed, and ends all of them after failures in a row for so long.
func (s *State) failed(now time.Time, disableAfter time.Duration) {
	s.Failed++
	s.Row++
	if s.Since == 0 {
		s.Since = now.UnixMilli()
	}
	since := time.UnixMilli(s.Since)
	if disableAfter > 0 && now.Sub(since) >= disableAfter {
		s.Off = "failing since " + since.UTC().Format(time.RFC3339)
	}
}
