package retryqueue

import (
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// place sets where a failed event waits.
func (c *Config) place(s *store.RetryState, e redisconn.Entry) {
	key, _ := c.Key(e)
	s.ID = e.ID
	s.SetKey(key)
	switch c.Retry.order() {
	case OrderKey:
		s.Lane = store.KeyLane(key)
	case OrderNone:
		s.Lane = "i" + e.ID
	}
}

// deadly returns the state, without the data of its record, of an event at which as many owners
// ended as it has attempts.
func (c *Config) deadly(e redisconn.Entry) store.RetryState {
	now := c.Store.Now()
	key, _ := e.Values[store.KeyField].(string)
	return store.RetryState{
		ID: e.ID, Key: key, Attempts: max(c.Deaths, 1), First: now, Last: now, Error: crashText, Reason: ReasonCrash,
	}
}

// ungarbled completes states: it takes the key from the event where the state may lack it, and
// gives a former dead letter the lane that the Retry defines.
func (c *Config) ungarbled(states []store.RetryState) (out []store.RetryState, err error) {
	for _, s := range states {
		switch {
		case s.Revived && c.Retry.order() == OrderPartition:
			s.Lane = ""
		case s.Revived && c.Retry.order() == OrderNone:
			s.Lane = "i" + s.ID
		case s.Garbled() || s.Revived && s.Key == "":
			entry, there, err := c.Store.Payload(s.ID)
			if err != nil {
				return nil, err
			}
			if !there { // an operator has dropped it
				continue
			}
			if key, ok := c.Key(entry); ok {
				s.Lane = store.KeyLane(key)
				s.SetKey(key)
			}
		}
		out = append(out, s)
	}
	return out, nil
}
